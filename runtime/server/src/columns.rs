//! Columns of outputs, as the engine has them, and of metrics views.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
#[cfg(feature = "pgwire")]
use watershed_api::http::offers::{FieldDocument, MetricsViewDocument};
use watershed_dialect::ENGINE;
use watershed_drivers::olap::{Olap, Query, QueryError, Statement, Statements as _, Value};

/// Time limit for listing the columns.
const WITHIN: Duration = Duration::from_secs(30);

/// A table or view with the names and types of its columns.
pub(crate) type Described = (String, Vec<(String, String)>);

/// Asks the engine for the columns of outputs, by their names in lower case. Those that are not there are left out.
///
/// # Errors
/// Those of the engine.
pub(crate) async fn described(
    engine: &Arc<dyn Olap>,
    names: &[String],
    cancel: &CancellationToken,
) -> Result<Vec<Described>, QueryError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let query = Query {
        timeout: Some(WITHIN),
        ..Query::new(ENGINE.write(&Statement::Described(names)))
    };
    let rows = engine.query(query, cancel).await?.collect().await?;
    let texts = |value: Option<&Value>| -> Vec<String> {
        match value {
            Some(Value::List(values)) => values.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        }
    };
    let described = rows.into_iter().filter_map(|row| {
        let name = row.first()?.to_string();
        let columns = texts(row.get(1)).into_iter().zip(texts(row.get(2)));
        Some((name, columns.collect()))
    });
    Ok(described.collect())
}

/// Returns the columns of a metrics view's table, with the engine's types. A measure whose type is not known before it is asked is
/// a number.
#[cfg(feature = "pgwire")]
pub(crate) fn of_view(view: &MetricsViewDocument) -> Vec<(String, String)> {
    let fields = view.dimensions.iter().chain(&view.measures);
    let column = |field: &FieldDocument| {
        let known = field.data_type.clone();
        (field.name.clone(), known.unwrap_or_else(|| "DOUBLE".to_owned()))
    };
    fields.map(column).collect()
}
