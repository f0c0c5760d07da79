//! Columns of outputs, as the engine has them.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
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
