//! A project's resources and findings as a text to compare.

use std::fmt::Write;

use serde_json::{Map, Value};
use watershed_compilers::{
    Health, Project, Resource,
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
        writeln!(text, "  {key}: {value}").expect("writes");
    }
}

/// The keys of a model's spec that differ from a plain view's.
fn telling(spec: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let usual: Value = serde_json::json!({
        "refresh_schedule": {"ref_update": true, "disable": false, "cron": "", "ticker_seconds": 0, "time_zone": ""},
        "timeout_seconds": 10800, "incremental": false, "incremental_state_resolver": "",
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
