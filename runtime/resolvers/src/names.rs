//! Checks of names in metrics queries before any viewer runs them.

use watershed_compilers::Kind;
use watershed_core::{Error, RefView};
use watershed_metrics::{Query, View, check};
use watershed_outputs::refs;
use watershed_proto::{DataResolver, MetricsViewState};

use super::{ResolveError, metrics, metrics_sql};
use crate::view;

/// Checks the names and types in a data block. Skips blocks with templates, whose query varies, and views that were
/// never valid, which report their own errors.
///
/// # Errors
/// The first reason for which the question will be refused.
pub fn check_names(data: &DataResolver, refs: &[RefView]) -> Result<(), Error> {
    let Some(query) = read(data, refs).map_err(|error| error.to_error())? else {
        return Ok(());
    };
    let Some(view) = seen(refs, &query.metrics_view) else {
        return Ok(());
    };
    check(&query, &view).map_err(|error| ResolveError::from(metrics::refused(error)).to_error())
}

fn read(data: &DataResolver, refs: &[RefView]) -> Result<Option<Query>, ResolveError> {
    let Some(properties) = data.properties.as_ref() else {
        return Ok(None);
    };
    let json = serde_json::Value::from(properties);
    if json.to_string().contains("{{") {
        return Ok(None);
    }
    let is_measure =
        |view: &str, name: &str| seen(refs, view).is_some_and(|view| view.measure(name).is_some());
    match data.resolver.as_str() {
        "metrics" => {
            let query = Query::from_json(&json).map_err(metrics::refused)?;
            Ok(Some(query))
        }
        "metrics_sql" => {
            let sql = properties.str("sql").unwrap_or_default();
            metrics_sql::read(sql, is_measure).map(Some)
        }
        _ => Ok(None),
    }
}

/// Returns a view among an invocation's refs. Templates in expressions are not executed, since only names and types are
/// needed.
fn seen(all: &[RefView], name: &str) -> Option<View> {
    let found = refs::find(all, Kind::MetricsView.as_str(), name)?;
    let state: MetricsViewState = refs::state(found)?;
    let written = |source: &watershed_proto::SqlSource| Ok(source.text.clone());
    view::view(name, &state, &written).ok()?
}
