//! What documents say about resources of kinds other than models.

use serde_json::{Value, json};
use watershed_compilers::{Kind, Spec, spec_json};
use watershed_core::Row;
use watershed_proto::{
    CanvasState, ComponentState, ConnectorState, ExploreState, Message, MetricsViewSpec, MetricsViewState,
    MigrationState,
};

/// What is wanted, keys named as in project files; null where it can't be read.
pub(super) fn spec(row: &Row) -> Value {
    let kind = Kind::read(row.kind.as_str());
    let spec = kind.and_then(|kind| Spec::decode(kind, row.spec.as_ref()));
    spec.map_or(Value::Null, |spec| spec_json::declared(&spec, row.name.as_str()))
}

/// What was found; none before anything was.
pub(super) fn result(row: &Row) -> Option<Value> {
    let kind = Kind::read(row.kind.as_str())?;
    let state = row.state.as_deref()?;
    match kind {
        Kind::MetricsView => MetricsViewState::decode(state).ok().map(|state| view(&state)),
        Kind::Explore => {
            let valid = ExploreState::decode(state).ok()?.valid_spec?;
            Some(json!({
                "metrics_view": valid.metrics_view,
                "dimensions": valid.dimensions.unwrap_or_default().fields,
                "measures": valid.measures.unwrap_or_default().fields,
            }))
        }
        Kind::Component => {
            let state = ComponentState::decode(state).ok()?;
            let renderer = state.valid_spec.unwrap_or_default().renderer;
            Some(json!({"renderer": renderer, "metrics_view": state.metrics_view}))
        }
        Kind::Canvas => {
            let valid = CanvasState::decode(state).ok()?.valid_spec?;
            Some(json!({"board_rows": valid.rows.len()}))
        }
        Kind::Connector => {
            let answered = ConnectorState::decode(state).ok()?.answered;
            Some(json!({"answered": answered}))
        }
        Kind::Migration => {
            let version = MigrationState::decode(state).ok()?.version;
            Some(json!({"version": version}))
        }
        _ => None,
    }
}

fn view(state: &MetricsViewState) -> Value {
    let valid = state.valid_spec.clone().unwrap_or_default();
    let MetricsViewSpec {
        dimensions, measures, ..
    } = valid;
    let dimensions: Vec<_> = dimensions.iter().map(|one| one.name.as_str()).collect();
    let measures: Vec<_> = measures.iter().map(|one| one.name.as_str()).collect();
    let problems = state.problems.iter().map(|one| {
        json!({
            "role": one.role,
            "name": one.name,
            "code": one.code,
            "message": one.message,
            "hint": Some(&one.hint).filter(|hint| !hint.is_empty()),
            "at": {"path": one.path, "line": one.line, "column": one.column},
        })
    });
    json!({
        "table": state.table.replace('"', ""),
        "dimensions": dimensions,
        "measures": measures,
        "types": state.types,
        "streaming": state.streaming,
        "problems": problems.collect::<Vec<_>>(),
    })
}

/// What was achieved; null where nothing was, or it can't be read.
pub(super) fn state(row: &Row) -> Value {
    result(row).unwrap_or_default()
}
