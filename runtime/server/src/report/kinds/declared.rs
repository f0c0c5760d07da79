//! Parts of documents for resources of kinds other than models.

use serde_json::{Value, json};
use watershed_api::documents::{Diagnostic, ResourceName, Severity};
use watershed_compilers::{Kind, spec_json};
use watershed_core::Row;
use watershed_proto::{
    CanvasState, ComponentState, ConnectorState, ExploreState, FieldProblem, Message, MetricsViewSpec,
    MetricsViewState, MigrationState,
};

/// Returns the spec with keys as in project files; null where it can't be read.
pub(super) fn spec(row: &Row) -> Value {
    let spec = watershed_reconcilers::managed::decode(row);
    spec.map_or(Value::Null, |spec| spec_json::declared(&spec, row.name.as_str()))
}

/// Returns the resource's result; none before the first run.
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
            let queries: Vec<Value> = state.queries.iter().map(Value::from).collect();
            Some(json!({"renderer": renderer, "metrics_view": state.metrics_view, "queries": queries}))
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

/// Returns the fields of a metrics view that can't be computed, as findings, if they are the view's own error.
pub(super) fn problems(row: &Row) -> Vec<Diagnostic> {
    let is_view = Kind::read(row.kind.as_str()) == Some(Kind::MetricsView);
    let state = row.state.as_deref().filter(|_| is_view);
    let state = state.and_then(|state| MetricsViewState::decode(state).ok());
    let (Some(error), Some(state)) = (super::super::health::own_error(row), state) else {
        return Vec::new();
    };
    let is_about = |one: &FieldProblem| {
        let at = error.place.as_ref().map(|place| (place.line, place.column));
        *one.code == *error.code && at == Some((one.line, one.column))
    };
    if !state.problems.first().is_some_and(is_about) {
        return Vec::new();
    }
    let resource = ResourceName {
        kind: row.kind.to_string(),
        name: row.name.to_string(),
    };
    let finding = |one: FieldProblem| Diagnostic {
        severity: Severity::Error,
        code: one.code,
        path: one.path,
        line: one.line,
        column: one.column,
        end_line: one.line,
        end_column: one.column + 1,
        message: format!("{} \"{}\": {}", one.role, one.name, one.message),
        hint: Some(one.hint).filter(|hint| !hint.is_empty()),
        notes: Vec::new(),
        details: None,
        resource: Some(resource.clone()),
        related: Vec::new(),
    };
    state.problems.into_iter().map(finding).collect()
}

/// Returns the stored state; null where there is none or it can't be read.
pub(super) fn state(row: &Row) -> Value {
    super::result(row).unwrap_or_default()
}
