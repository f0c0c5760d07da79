//! Keys that are read and checked but have no effect yet.
//!
//! A key that is accepted and ignored is a lie: each of these is a warning where it stands, once. Whoever makes a key act
//! takes it out of the table; a test holds the table to what the readers know.

use crate::{
    diagnostics::{At, Code, Findings, Role},
    kinds::model::keys::FILES,
    resource::{FileKind, Kind},
    yaml::{Data, Map},
};

/// A key without an effect yet.
struct Inert {
    /// The key; `a.b` is a key inside another one, `a.*` the remaining keys inside it.
    key: &'static str,
    /// The behaviour without the key, for the message.
    instead: &'static str,
}

const fn inert(key: &'static str, instead: &'static str) -> Inert {
    Inert { key, instead }
}

const NOBODY_ASKS: &str = "there is no assistant that could be asked";
const KEPT: &str = "the file stands in the project's state, and goes with messages";
const OWN_LIMITS: &str = "`--memory-limit`, `--engine-threads` and `--jobs` set limits";

/// Keys of models and sources that have no effect.
const MODEL: [Inert; 3] = [
    inert("stage", "rows are not staged"),
    inert("create_secrets_from_connectors", "no secret is made"),
    inert("output.*", "the table is made without it"),
];

/// Keys of `output` that have an effect.
const OUTPUT: [&str; 8] = [
    "connector",
    "table",
    "materialize",
    "incremental_strategy",
    "unique_key",
    "partition_by",
    "order_by",
    "on_schema_change",
];

/// Keys of DuckDB connectors that have no effect.
const DUCKDB: [Inert; 13] = [
    inert("attach", "ATTACH in `init_sql` attaches a database"),
    inert("secrets", "CREATE SECRET in `init_sql` makes one"),
    inert(
        "create_secrets_from_connectors",
        "CREATE SECRET in `init_sql` makes one",
    ),
    inert("extensions", "INSTALL and LOAD in `init_sql` bring one"),
    inert("settings", "SET in `init_sql` makes a setting"),
    inert("database_name", "tables stand in the project's own database"),
    inert("schema_name", "tables stand in the schema `main`"),
    inert("pool_size", OWN_LIMITS),
    inert("cpu", OWN_LIMITS),
    inert("memory_limit_gb", OWN_LIMITS),
    inert("storage_limit_bytes", OWN_LIMITS),
    inert("read_write_ratio", OWN_LIMITS),
    inert("log_queries", "`watershed logs NAME` shows what a run said"),
];

const METRICS_VIEW: [Inert; 1] = [inert("rollups", "their tables are checked and not used")];

const REPORT: [Inert; 2] = [
    inert("export.output_connector", KEPT),
    inert("export.output_properties", KEPT),
];

/// Keys of explores and canvases that have no effect.
const DASHBOARD: [Inert; 1] = [inert("ai_prompts", NOBODY_ASKS)];

const API: [Inert; 1] = [inert(
    "openapi",
    "the service describes its own paths, and no single API",
)];

/// Keys of the manifest that have no effect.
const MANIFEST: [Inert; 2] = [
    inert("ai_prompts", NOBODY_ASKS),
    inert("features", "the console has no parts to switch on or off"),
];

/// Reports keys without effect in a resource's merged settings, except those from the manifest's defaults, which are
/// reported there.
pub(crate) fn tell(kind: FileKind, settings: &Map, findings: &mut Findings) {
    tell_of(table(kind, settings), settings, findings, |at| {
        at.role != Role::Manifest
    });
}

/// Reports keys without effect in the manifest's defaults for a kind.
pub(crate) fn tell_defaults(kind: FileKind, defaults: &Map, findings: &mut Findings) {
    tell_of(table(kind, defaults), defaults, findings, |_| true);
}

/// Reports keys without effect in the manifest itself.
pub(crate) fn tell_manifest(manifest: &Map, findings: &mut Findings) {
    tell_of(&MANIFEST, manifest, findings, |_| true);
}

fn table(kind: FileKind, settings: &Map) -> &'static [Inert] {
    match kind {
        FileKind::Source | FileKind::Kind(Kind::Model) => &MODEL,
        FileKind::Kind(Kind::MetricsView) => &METRICS_VIEW,
        FileKind::Kind(Kind::Report) => &REPORT,
        FileKind::Kind(Kind::Api) => &API,
        FileKind::Kind(Kind::Explore | Kind::Canvas) => &DASHBOARD,
        FileKind::Kind(Kind::Connector) => {
            let driver = settings.get("driver").and_then(|entry| entry.value.as_str());
            if driver == Some("duckdb") { &DUCKDB } else { &[] }
        }
        FileKind::Kind(_) => &[],
    }
}

fn tell_of(table: &[Inert], settings: &Map, findings: &mut Findings, is_told: impl Fn(At) -> bool) {
    for inert in table {
        for (key, at) in found(inert.key, settings) {
            if is_told(at) {
                let message = format!("`{key}` has no effect yet: {}", inert.instead);
                findings.add(at, Code::NoEffectYet, message);
            }
        }
    }
}

/// Returns the settings that a table entry matches, with their places.
fn found(key: &str, settings: &Map) -> Vec<(String, At)> {
    let Some((outer, inner)) = key.split_once('.') else {
        let entry = settings.get(key).filter(|entry| !entry.value.is_null());
        return entry
            .map(|entry| (key.to_owned(), entry.key_at))
            .into_iter()
            .collect();
    };
    let Some(Data::Map(block)) = settings.get(outer).map(|entry| &entry.value.data) else {
        return Vec::new();
    };
    let connector = block.get("connector").and_then(|entry| entry.value.as_str());
    let is_files = connector.is_some_and(|connector| connector != "duckdb");
    let is_meant = |name: &str| match inner {
        "*" if is_files && FILES.key(name).is_some() => false,
        "*" => !OUTPUT.contains(&name) && !has_own_row(outer, name),
        _ => name == inner,
    };
    block
        .iter()
        .filter(|(name, entry)| is_meant(name) && !entry.value.is_null())
        .map(|(name, entry)| (format!("{outer}.{name}"), entry.key_at))
        .collect()
}

fn has_own_row(outer: &str, name: &str) -> bool {
    let key = format!("{outer}.{name}");
    MODEL.iter().any(|inert| inert.key == key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{COMMON, model::keys::MODEL as KEYS};

    /// Keys of models that have an effect or are meant for people.
    const ACTS: [&str; 50] = [
        "args",
        "batch_size",
        "change_mode",
        "connector",
        "database_url",
        "db",
        "defined_as_source",
        "description",
        "dev",
        "display_name",
        "dsn",
        "duckdb",
        "endpoint",
        "env",
        "environment_overrides",
        "extract",
        "format",
        "freshness",
        "glob",
        "incremental",
        "init_queries",
        "invalidate_on_change",
        "kind",
        "materialize",
        "name",
        "namespace",
        "output",
        "parser",
        "partitions",
        "partitions_concurrency",
        "partitions_watermark",
        "path",
        "post_exec",
        "pre_exec",
        "prod",
        "project_id",
        "protect",
        "refresh",
        "refs",
        "region",
        "retry",
        "splits",
        "sql",
        "state",
        "table",
        "tags",
        "tests",
        "timeout",
        "type",
        "unit_tests",
    ];

    #[test]
    fn every_key_of_models_acts_or_is_in_the_table() {
        let inert: Vec<&str> = MODEL.iter().map(|inert| inert.key).collect();
        for key in COMMON.names().chain(KEYS.names()) {
            let acts = ACTS.contains(&key) || ["uri", "version"].contains(&key);
            assert!(
                acts != inert.contains(&key),
                "`{key}` acts, or it is told that it does not"
            );
        }
    }
}
