//! Parts of documents for resources of particular kinds.

pub(crate) mod alerts;
pub(crate) mod checks;
mod declared;
pub(crate) mod managed;
pub(crate) mod programs;

pub(crate) use alerts::is_alert_or_message;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use watershed_api::documents::{Diagnostic, RelatedPlace, ResourceName, Severity};
use watershed_compilers::Kind;
use watershed_core::Row;
use watershed_proto::{
    Message, ModelSpec, ModelSpecGlance, ModelState, ModelStateGlance, OutputKind, ProjectParserSpec,
    ProjectParserState,
};

use super::Entry;

/// The kind of models: tables and views.
pub(crate) const MODEL: &str = "model";
/// The kind of the resource that parses the project's files.
pub const PROJECT_PARSER: &str = "project_parser";

/// Returns true if this program runs resources of a kind.
pub(crate) fn is_supported(kind: &str) -> bool {
    [
        PROJECT_PARSER,
        watershed_delivery::KIND,
        watershed_workloads::replica::KIND,
    ]
    .contains(&kind)
        || Kind::read(kind).is_some_and(Kind::is_supported)
}

/// Returns the result of a resource, as documents show it.
pub(crate) fn result(row: &Row) -> Option<Value> {
    if row.kind.as_str() != MODEL {
        let result = programs::result(row).or_else(|| managed::result(row));
        let result = result.or_else(|| alerts::result(row));
        return result.or_else(|| declared::result(row));
    }
    let state = glance(row)?;
    if state.result_table.is_empty() {
        return None;
    }
    let mut said = json!({
        "connector": state.result_connector,
        "table": state.result_table,
        "type": output_kind(state.result_kind()),
        "rows": state.rows,
    });
    let spec = ModelSpecGlance::decode(row.spec.as_ref()).ok();
    if let (Some(export), Some(said)) = (spec.and_then(|spec| spec.export), said.as_object_mut()) {
        let key = if export.database.is_empty() {
            "file"
        } else {
            "table_elsewhere"
        };
        said.insert(key.to_owned(), export.path.into());
    }
    Some(said)
}

/// Returns the name of a model's table or view; none if it has none.
pub(crate) fn output(row: &Row) -> Option<String> {
    glance(row)
        .map(|state| state.result_table)
        .filter(|table| !table.is_empty())
}

/// Returns the names of all tables and views of models, in lower case, as the engine compares them.
pub(crate) fn outputs(entries: &[Entry]) -> BTreeSet<String> {
    let live = entries.iter().filter(|entry| !entry.row.intents.is_deleted());
    let names = live.filter_map(|entry| output(&entry.row));
    names.map(|name| name.to_ascii_lowercase()).collect()
}

/// Returns true if a model's output is a view.
#[cfg(feature = "pgwire")]
pub(crate) fn is_view(row: &Row) -> bool {
    glance(row).is_some_and(|state| state.result_kind() == OutputKind::View)
}

/// Returns the number of a model's rows; none if it is unknown.
#[cfg(feature = "pgwire")]
pub(crate) fn rows(row: &Row) -> Option<u64> {
    glance(row).and_then(|state| state.rows)
}

/// Returns the type that a resource's file declares, if it differs from the kind; for some models, `source`.
pub(crate) fn declared_as(row: &Row) -> Option<String> {
    if row.kind.as_str() != MODEL {
        return None;
    }
    let spec = ModelSpecGlance::decode(row.spec.as_ref()).ok()?;
    spec.defined_as_source.then(|| "source".to_owned())
}

/// Returns the spec and state of a model without SQL of its own; none for other resources.
pub(crate) fn source(row: &Row) -> Option<Box<(ModelSpec, ModelState)>> {
    if row.kind.as_str() != MODEL {
        return None;
    }
    let spec = ModelSpec::decode(row.spec.as_ref()).ok()?;
    let state = ModelState::decode(row.state.as_deref()?).ok()?;
    spec.sql.is_none().then(|| Box::new((spec, state)))
}

/// Returns the findings about a resource, each with its place: failing tests, stale rows, fields that can't be
/// computed.
pub(crate) fn problems(row: &Row) -> Vec<Diagnostic> {
    match row.kind.as_str() {
        MODEL => {
            let tests = super::data_tests::findings(row).into_iter();
            let own_name = output(row).and_then(|output| super::own_names::finding(row, &output));
            // Where its last run failed, that is what a person has to know.
            let has_failed = super::health::own_error(row).is_some();
            let age = (!has_failed).then(|| super::freshness::finding(row)).flatten();
            let stale_input = super::stale_input::finding(row);
            tests.chain(age).chain(own_name).chain(stale_input).collect()
        }
        _ => declared::problems(row),
    }
}

/// Returns the parts of a model's state that listings show.
fn glance(row: &Row) -> Option<ModelStateGlance> {
    if row.kind.as_str() != MODEL {
        return None;
    }
    ModelStateGlance::decode(row.state.as_deref()?).ok()
}

fn model_state(row: &Row) -> Option<ModelState> {
    if row.kind.as_str() != MODEL {
        return None;
    }
    ModelState::decode(row.state.as_deref()?).ok()
}

fn output_kind(kind: OutputKind) -> &'static str {
    match kind {
        OutputKind::View => "view",
        OutputKind::Table | OutputKind::Unspecified => "table",
    }
}

/// Returns the findings of the last parse; none for resources that parse nothing.
pub(crate) fn findings(row: &Row) -> Option<Vec<Diagnostic>> {
    if row.kind.as_str() != PROJECT_PARSER {
        return None;
    }
    let state = ProjectParserState::decode(row.state.as_deref()?).ok()?;
    Some(state.diagnostics.into_iter().map(finding).collect())
}

fn finding(found: watershed_proto::Diagnostic) -> Diagnostic {
    use watershed_proto::Severity as Stored;
    let severity = match found.severity() {
        Stored::Warning => Severity::Warning,
        Stored::Hint => Severity::Hint,
        Stored::Error | Stored::Unspecified => Severity::Error,
    };
    let about = !found.resource_name.is_empty();
    Diagnostic {
        severity,
        code: found.code,
        path: found.path,
        line: found.line,
        column: found.column,
        end_line: found.end_line,
        end_column: found.end_column,
        message: found.message,
        hint: Some(found.hint).filter(|hint| !hint.is_empty()),
        notes: Vec::new(),
        details: None,
        resource: about.then(|| ResourceName::new(&found.resource_kind, &found.resource_name)),
        related: found.related.into_iter().map(related).collect(),
    }
}

fn related(place: watershed_proto::RelatedPlace) -> RelatedPlace {
    RelatedPlace {
        path: place.path,
        line: place.line,
        column: place.column,
        end_line: place.end_line,
        end_column: place.end_column,
        message: place.message,
    }
}

/// Returns the spec with keys as in project files; null where it can't be read.
pub(crate) fn spec(row: &Row) -> Value {
    let mut spec = stored_spec(row);
    watershed_outputs::secrets::show(&mut spec, "");
    spec
}

fn stored_spec(row: &Row) -> Value {
    match row.kind.as_str() {
        MODEL => ModelSpec::decode(row.spec.as_ref())
            .map(|spec| model_spec(&spec))
            .unwrap_or_default(),
        PROJECT_PARSER => ProjectParserSpec::decode(row.spec.as_ref())
            .map(|spec| json!({"environment": spec.environment, "env": spec.variables}))
            .unwrap_or_default(),
        _ => declared::spec(row),
    }
}

/// Returns the stored state; null where there is none or it can't be read.
pub(crate) fn state(row: &Row) -> Value {
    if let Some(state) = model_state(row) {
        let mut said = json!({
            "connector": state.result_connector,
            "table": state.result_table,
            "type": output_kind(state.result_kind()),
            "build_id": state.build_id,
            "rows": state.rows,
            "refreshed_on": watershed_api::documents::Time::from_millis(state.refreshed_on_ms),
            "latest_execution_duration_ms": state.latest_execution_duration_ms,
            "local_files": state.local_files.keys().collect::<Vec<_>>(),
        });
        if let (Some(files), Some(said)) = (state.export.and_then(|it| it.now), said.as_object_mut()) {
            let names = files.files.keys().filter(|name| !name.is_empty());
            let files = json!({"path": files.path, "files": names.collect::<Vec<_>>(), "rows": files.rows});
            said.insert("export".to_owned(), files);
        }
        if let (Some(partitions), Some(said)) = (state.partitions, said.as_object_mut()) {
            let partitions = json!({"done": partitions.done, "failed": partitions.failed});
            said.insert("partitions".to_owned(), partitions);
        }
        return said;
    }
    let parser = row
        .state
        .as_deref()
        .filter(|_| row.kind.as_str() == PROJECT_PARSER);
    match parser.map(ProjectParserState::decode) {
        Some(Ok(state)) => json!({"display_name": state.display_name, "files": state.files}),
        _ => managed::state(row).unwrap_or_else(|| declared::state(row)),
    }
}

/// Returns the spec of a model as its YAML file would state it, with defaults filled in.
pub(crate) fn model_spec(spec: &ModelSpec) -> Value {
    let mut out = Map::new();
    let kind = if spec.defined_as_source { "source" } else { "model" };
    out.insert("type".into(), kind.into());
    out.insert("connector".into(), spec.input_connector.clone().into());
    let inputs = spec.input_properties.as_ref().map(fields).unwrap_or_default();
    out.extend(inputs);
    let schedule = spec.refresh_schedule.clone().unwrap_or_default();
    out.insert(
        "refresh".into(),
        json!({
            "ref_update": schedule.ref_update,
            "disable": schedule.disable,
            "cron": schedule.cron,
            "every": schedule.ticker_seconds,
            "time_zone": schedule.time_zone,
        }),
    );
    out.insert("timeout".into(), spec.timeout_seconds.into());
    out.insert("incremental".into(), spec.incremental.into());
    out.insert("change_mode".into(), change_mode(spec).into());
    out.insert("state".into(), resolver(spec.incremental_state.as_ref()));
    out.insert("partitions".into(), resolver(spec.partitions.as_ref()));
    out.insert(
        "partitions_watermark".into(),
        spec.partitions_watermark_field.clone().into(),
    );
    out.insert(
        "partitions_concurrency".into(),
        spec.partitions_concurrency_limit.into(),
    );
    out.insert(
        "stage".into(),
        place(&spec.stage_connector, spec.stage_properties.as_ref()),
    );
    out.insert(
        "output".into(),
        place(&spec.output_connector, spec.output_properties.as_ref()),
    );
    if let Some(export) = spec.export.as_ref().filter(|export| !export.database.is_empty()) {
        let table = json!({"connector": export.connector, "table": export.path});
        out.insert("table_elsewhere".to_owned(), table);
    } else if let Some(export) = &spec.export {
        out.insert(
            "files".to_owned(),
            json!({
                "connector": export.connector,
                "path": export.path,
                "format": export.format,
                "partition_by": export.partition_by,
            }),
        );
    }
    if let Some(freshness) = &spec.freshness {
        let bounds = json!({"warn": freshness.warn_seconds, "error": freshness.error_seconds});
        out.insert("freshness".into(), bounds);
    }
    out.insert("retry".into(), retry(spec));
    let tests = spec.tests.iter().map(|test| {
        let severity = if test.warns { "warn" } else { "error" };
        json!({
            "name": test.name,
            "severity": severity,
            "store_failures": test.store_failures,
            "data": resolver(test.data.as_ref()),
        })
    });
    out.insert("tests".into(), tests.collect());
    Value::Object(out)
}

fn change_mode(spec: &ModelSpec) -> &'static str {
    use watershed_proto::ModelChangeMode as Mode;
    match spec.change_mode() {
        Mode::Manual => "manual",
        Mode::Patch => "patch",
        Mode::Reset | Mode::Unspecified => "reset",
    }
}

fn retry(spec: &ModelSpec) -> Value {
    let Some(retry) = &spec.retry else {
        return Value::Null;
    };
    json!({
        "attempts": retry.attempts,
        "delay": retry.delay_seconds,
        "exponential_backoff": retry.exponential_backoff,
        "if_error_matches": retry.if_error_matches,
    })
}

fn resolver(resolver: Option<&watershed_proto::DataResolver>) -> Value {
    let Some(resolver) = resolver else {
        return Value::Null;
    };
    let properties = resolver.properties.as_ref().map(fields).unwrap_or_default();
    json!({"resolver": resolver.resolver, "properties": properties})
}

fn place(connector: &str, properties: Option<&watershed_proto::MapValue>) -> Value {
    let mut out = properties.map(fields).unwrap_or_default();
    if out.is_empty() && connector.is_empty() {
        return Value::Null;
    }
    out.insert("connector".into(), connector.into());
    Value::Object(out)
}

fn fields(map: &watershed_proto::MapValue) -> Map<String, Value> {
    map.fields
        .iter()
        .map(|(key, value)| (key.clone(), plain(value)))
        .collect()
}

fn plain(value: &watershed_proto::Value) -> Value {
    use watershed_proto::value::Kind;
    match &value.kind {
        None => Value::Null,
        Some(Kind::Bool(value)) => (*value).into(),
        Some(Kind::Int(value)) => (*value).into(),
        Some(Kind::Float(value)) => (*value).into(),
        Some(Kind::String(value)) => value.clone().into(),
        Some(Kind::List(list)) => list.values.iter().map(plain).collect(),
        Some(Kind::Map(map)) => Value::Object(fields(map)),
    }
}
