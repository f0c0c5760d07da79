//! Specs as JSON for people: keys of the project format, with defaults filled in.

use serde_json::{Map, Value, json};
use watershed_proto::{DataResolver, MapValue, ModelChangeMode, ModelSpec, OutputKind};

use super::{Resource, spec::Spec};
use crate::text::names;

/// The default time limit of a build, in seconds.
pub const DEFAULT_TIMEOUT_SECONDS: u32 = 3 * 3600;
/// The default number of attempts at a build.
pub const DEFAULT_ATTEMPTS: u32 = 3;
/// The default wait before the second attempt, in seconds.
pub const DEFAULT_DELAY_SECONDS: u32 = 5;
/// Patterns of errors that are retried by default.
pub const DEFAULT_RETRIED: [&str; 3] = [".*OvercommitTracker.*", ".*Bad Gateway.*", ".*Timeout.*"];

/// Returns the spec of a resource as JSON; null if it has none.
pub fn spec_json(resource: &Resource) -> Value {
    match &resource.spec {
        Spec::Model(spec) => model(spec),
        Spec::None => Value::Null,
        spec => declared(spec, &resource.name),
    }
}

/// Returns the spec of a kind other than models as JSON; a missing display name is derived from `name`.
pub fn declared(spec: &Spec, name: &str) -> Value {
    let mut said = spec.said();
    let (
        Spec::MetricsView(_)
        | Spec::Explore(_)
        | Spec::Canvas(_)
        | Spec::Api(_)
        | Spec::Alert(_)
        | Spec::Report(_),
        Value::Object(map),
    ) = (spec, &mut said)
    else {
        return said;
    };
    name_for_people(map, name);
    for field in ["dimensions", "measures"] {
        let fields = map.get_mut(field).and_then(Value::as_array_mut);
        for field in fields.into_iter().flatten().filter_map(Value::as_object_mut) {
            let name = field.get("name").and_then(Value::as_str).map(str::to_owned);
            name_for_people(field, &name.unwrap_or_default());
        }
    }
    said
}

fn name_for_people(map: &mut Map<String, Value>, name: &str) {
    if map.get("display_name").and_then(Value::as_str) == Some("") {
        map.insert("display_name".to_owned(), names::for_people(name).into());
    }
}

fn model(spec: &ModelSpec) -> Value {
    let schedule = spec.refresh_schedule.clone().unwrap_or_default();
    let retry = spec.retry.clone().unwrap_or_default();
    let freshness = spec.freshness.unwrap_or_default();
    let patterns = match retry.if_error_matches.as_slice() {
        [] => DEFAULT_RETRIED.map(str::to_owned).to_vec(),
        some => some.to_vec(),
    };
    let change_mode = match spec.change_mode() {
        ModelChangeMode::Unspecified | ModelChangeMode::Reset => "reset",
        ModelChangeMode::Manual => "manual",
        ModelChangeMode::Patch => "patch",
    };
    let timeout = if spec.timeout_seconds == 0 {
        DEFAULT_TIMEOUT_SECONDS
    } else {
        spec.timeout_seconds
    };
    let (state, state_properties) = resolver(spec.incremental_state.as_ref());
    let (partitions, partitions_properties) = resolver(spec.partitions.as_ref());
    let tests = spec.tests.iter().map(|test| {
        let (resolver, properties) = resolver(test.data.as_ref());
        let mut said = json!({"name": test.name, "resolver": resolver, "resolver_properties": properties});
        if let (true, Some(said)) = (test.warns, said.as_object_mut()) {
            said.insert("severity".to_owned(), "warn".into());
        }
        if let (1.., Some(said)) = (test.store_failures, said.as_object_mut()) {
            said.insert("store_failures".to_owned(), test.store_failures.into());
        }
        said
    });
    let files = spec
        .local_files
        .iter()
        .map(|files| json!({"pattern": files.pattern, "invalidate_on_change": files.invalidate_on_change}));
    json!({
        "refresh_schedule": {
            "ref_update": schedule.ref_update,
            "disable": schedule.disable,
            "cron": schedule.cron,
            "ticker_seconds": schedule.ticker_seconds,
            "time_zone": schedule.time_zone,
        },
        "timeout_seconds": timeout,
        "incremental": spec.incremental,
        "incremental_state_resolver": state,
        "incremental_state_resolver_properties": state_properties,
        "partitions_resolver": partitions,
        "partitions_resolver_properties": partitions_properties,
        "partitions_watermark_field": spec.partitions_watermark_field,
        "partitions_concurrency_limit": spec.partitions_concurrency_limit,
        "input_connector": spec.input_connector,
        "input_properties": properties(spec.input_properties.as_ref()),
        "stage_connector": spec.stage_connector,
        "stage_properties": properties(spec.stage_properties.as_ref()),
        "output_connector": spec.output_connector,
        "output_properties": output_properties(spec),
        "retry_attempts": retry.attempts.unwrap_or(DEFAULT_ATTEMPTS),
        "retry_delay_seconds": retry.delay_seconds.unwrap_or(DEFAULT_DELAY_SECONDS),
        "retry_exponential_backoff": retry.exponential_backoff.unwrap_or(true),
        "retry_if_error_matches": patterns,
        "change_mode": change_mode,
        "freshness_warn_seconds": freshness.warn_seconds,
        "freshness_error_seconds": freshness.error_seconds,
        "tests": tests.collect::<Vec<_>>(),
        "defined_as_source": spec.defined_as_source,
        "local_files": files.collect::<Vec<_>>(),
    })
}

fn properties(properties: Option<&MapValue>) -> Value {
    properties.map_or_else(|| Value::Object(Map::new()), Value::from)
}

fn output_properties(spec: &ModelSpec) -> Value {
    let mut all = properties(spec.output_properties.as_ref());
    if let Value::Object(all) = &mut all {
        all.insert(
            "materialize".to_owned(),
            (spec.output_kind() == OutputKind::Table).into(),
        );
    }
    all
}

fn resolver(resolver: Option<&DataResolver>) -> (String, Value) {
    match resolver {
        Some(resolver) => (
            resolver.resolver.clone(),
            properties(resolver.properties.as_ref()),
        ),
        None => (String::new(), properties(None)),
    }
}
