//! A project's resources and findings as a text to compare.

use std::fmt::Write;

use serde_json::{Map, Value};
use watershed_compilers::{
    Health, Kind, Project, Resource,
    diagnostics::{Colour, draw},
    spec_json,
};

/// All that a project came to.
pub(crate) fn report(project: &Project) -> String {
    let mut text = String::new();
    for resource in project.resources() {
        line(&mut text, resource);
    }
    if project.trust() != watershed_compilers::Trust::Whole {
        writeln!(text, "trust: {:?}", project.trust()).expect("writes");
    }
    let broken = project.broken_paths();
    if !broken.is_empty() {
        writeln!(
            text,
            "broken: {}",
            broken.into_iter().collect::<Vec<_>>().join(", ")
        )
        .expect("writes");
    }
    for diagnostic in project.diagnostics() {
        let source = project.source(&diagnostic.path);
        writeln!(text, "\n{}", draw(diagnostic, source.as_deref(), Colour::Never)).expect("writes");
    }
    text
}

fn line(text: &mut String, resource: &Resource) {
    let health = match resource.health {
        Health::Ok => "",
        Health::Broken => " (broken)",
        Health::Unsupported => " (unsupported)",
    };
    writeln!(
        text,
        "{} {}{health} [{}]",
        resource.kind,
        resource.name,
        resource.paths.join(", ")
    )
    .expect("writes");
    if !resource.refs.is_empty() {
        let refs: Vec<_> = resource
            .refs
            .iter()
            .map(|one| format!("{}/{}", one.kind, one.name))
            .collect();
        writeln!(text, "  refs: {}", refs.join(", ")).expect("writes");
    }
    if !resource.tags.is_empty() {
        writeln!(text, "  tags: {}", resource.tags.join(", ")).expect("writes");
    }
    if let Some(cycle) = &resource.cycle {
        writeln!(text, "  cycle: {}", cycle.join(" -> ")).expect("writes");
    }
    let Value::Object(spec) = spec_json(resource) else {
        return;
    };
    for (key, value) in telling(&spec) {
        if resource.kind != Kind::Model && is_empty(value) {
            continue;
        }
        let value = if resource.kind == Kind::Model {
            value.clone()
        } else {
            compact(value)
        };
        writeln!(text, "  {key}: {value}").expect("writes");
    }
}

/// Returns true if a value says nothing.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_u64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(true) => false,
    }
}

/// A value without the parts that say nothing.
fn compact(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(_, value)| !is_empty(value))
            .map(|(key, value)| (key.clone(), compact(value)))
            .collect(),
        Value::Array(items) => items.iter().map(compact).collect(),
        other => other.clone(),
    }
}

/// The keys of a model's spec that differ from a plain view's.
fn telling(spec: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let usual: Value = serde_json::json!({
        "refresh_schedule": {"ref_update": true, "disable": false, "cron": "", "ticker_seconds": 0, "time_zone": ""},
        "timeout_seconds": 10800, "freshness_warn_seconds": null, "freshness_error_seconds": null, "incremental": false, "incremental_state_resolver": "",
        "incremental_state_resolver_properties": {}, "partitions_resolver": "",
        "partitions_resolver_properties": {}, "partitions_watermark_field": "", "partitions_concurrency_limit": 0,
        "input_connector": "duckdb", "stage_connector": "", "stage_properties": {}, "output_connector": "duckdb",
        "output_properties": {"materialize": false}, "retry_attempts": 3, "retry_delay_seconds": 5,
        "retry_exponential_backoff": true,
        "retry_if_error_matches": [".*OvercommitTracker.*", ".*Bad Gateway.*", ".*Timeout.*"],
        "change_mode": "reset", "tests": [], "defined_as_source": false, "local_files": [],
    });
    spec.iter()
        .filter(move |(key, value)| usual.get(key.as_str()) != Some(value))
}
