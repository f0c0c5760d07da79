//! The project's manifest: `rill.yaml` or `watershed.yaml` at its root.

use std::collections::BTreeMap;

use super::env_file::is_variable_name;
use crate::{
    diagnostics::{At, Code, Findings, Role},
    draft::Manifest,
    kinds::{self, model},
    resource::{FileKind, Kind},
    text::Text,
    yaml::{self, Data, Fields, Map, Node, overlay},
};

/// Keys of a manifest.
const KEYS: [&str; 33] = [
    "compiler",
    "rill_version",
    "display_name",
    "title",
    "name",
    "description",
    "ai_instructions",
    "ai_connector",
    "ai_prompts",
    "theme",
    "olap_connector",
    "connectors",
    "env",
    "vars",
    "environment_overrides",
    "dev",
    "prod",
    "sources",
    "models",
    "metrics_views",
    "explores",
    "canvases",
    "apis",
    "migrations",
    "dashboards",
    "features",
    "public_paths",
    "ignore_paths",
    "mock_users",
    "version",
    "watershed_version",
    "tags",
    "banner",
];

/// Names that connectors can't have.
const RESERVED: [&str; 3] = ["admin", "repo", "metastore"];

/// Reads a manifest; findings stand in it.
pub(crate) fn read(text: &Text<'_>, environment: &str, findings: &mut Findings) -> Option<Manifest> {
    let root = match yaml::load(text, Role::Manifest) {
        Ok(loaded) => {
            loaded
                .findings
                .into_iter()
                .for_each(|finding| findings.push(finding));
            loaded.root
        }
        Err(finding) => {
            findings.push(*finding);
            return None;
        }
    };
    let mut map = match root.data {
        Data::Map(map) => map,
        Data::Null => Map::new(),
        other => {
            let message = format!("a manifest is a mapping, not {}", other.type_name());
            findings.add(root.at, Code::WrongType, message);
            return None;
        }
    };
    apply_overrides(&mut map, environment, findings);
    let mut fields = Fields::new(map, root.at, findings);
    let manifest = decode(&mut fields);
    fields.finish(&KEYS);
    (!findings.has_errors()).then_some(manifest)
}

/// Lays the environment's part over the rest. In it, keys that are not known are let pass.
fn apply_overrides(map: &mut Map, environment: &str, findings: &mut Findings) {
    let at = At::start(Role::Manifest);
    let legacy = legacy_overrides(map);
    let mut fields = Fields::new(std::mem::take(map), at, findings);
    let all = fields
        .map("environment_overrides")
        .map(|(map, _)| map)
        .unwrap_or_default();
    let short: Vec<_> = ["dev", "prod"]
        .into_iter()
        .map(|name| (name, fields.map(name)))
        .collect();
    let mut rest = fields.rest();
    let from_all = all
        .get(environment)
        .and_then(|entry| entry.value.as_map())
        .cloned();
    let from_short = short
        .into_iter()
        .filter(|(name, _)| *name == environment)
        .filter_map(|(_, map)| map);
    for over in legacy.get(environment).into_iter().chain(&from_all) {
        overlay_known(&mut rest, over);
    }
    from_short.for_each(|(over, _)| overlay_known(&mut rest, &over));
    *map = rest;
}

/// `env: {dev: {...}}` is an old way to write overrides: it is taken out of the variables.
fn legacy_overrides(map: &mut Map) -> BTreeMap<String, Map> {
    let Some(Data::Map(variables)) = map.get_mut("env").map(|entry| &mut entry.value.data) else {
        return BTreeMap::new();
    };
    let mut found = BTreeMap::new();
    for name in ["dev", "prod"] {
        if matches!(
            variables.get(name).map(|entry| &entry.value.data),
            Some(Data::Map(_))
        ) && let Some(entry) = variables.remove(name)
            && let Data::Map(over) = entry.value.data
        {
            // Inside, plain values are variables.
            let (settings, values): (Map, Map) = over
                .into_iter()
                .partition(|(key, _)| KEYS.contains(&key.as_str()));
            let mut over = settings;
            if !values.is_empty() {
                let node = Node::new(entry.key_at, Data::Map(values));
                over.entry("env".to_owned()).or_insert(yaml::Entry {
                    key_at: entry.key_at,
                    value: node,
                });
            }
            found.insert(name.to_owned(), over);
        }
    }
    found
}

fn overlay_known(base: &mut Map, over: &Map) {
    let known: Map = over
        .iter()
        .filter(|(key, _)| KEYS.contains(&key.as_str()))
        .map(|(key, entry)| (key.clone(), entry.clone()))
        .collect();
    overlay(base, &known);
}

fn decode(fields: &mut Fields<'_>) -> Manifest {
    for ignored in [
        "compiler",
        "rill_version",
        "watershed_version",
        "version",
        "features",
        "mock_users",
        "ai_prompts",
        "tags",
    ] {
        fields.take(ignored);
    }
    for text in ["description", "ai_instructions", "ai_connector", "banner"] {
        fields.text(text);
    }
    for (old, new) in [
        ("title", "display_name"),
        ("name", "display_name"),
        ("dashboards", "metrics_views"),
    ] {
        deprecated(fields, old, new);
    }
    let (title, name) = (fields.text("title"), fields.text("name"));
    let display_name = fields.text("display_name").or(title).or(name).unwrap_or_default();
    fields.texts("public_paths");
    fields.map("apis");
    Manifest {
        declared: declared(fields),
        theme: fields.text("theme").unwrap_or_default(),
        display_name,
        olap_connector: fields.text("olap_connector").filter(|name| !name.is_empty()),
        connectors: connectors(fields),
        variables: variables(fields),
        models: defaults(fields, "models", FileKind::Kind(Kind::Model)),
        sources: defaults(fields, "sources", FileKind::Source),
        ignore_paths: ignore_paths(fields),
    }
}

fn deprecated(fields: &mut Fields<'_>, old: &str, new: &str) {
    if let Some(at) = fields.key_at(old) {
        let message = format!("key \"{old}\" is deprecated");
        fields
            .findings()
            .add_with_hint(at, Code::DeprecatedKey, message, format!("use `{new}`"));
    }
}

fn connectors(fields: &mut Fields<'_>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for item in fields.list("connectors").unwrap_or_default() {
        let Data::Map(map) = item.data else {
            let message = format!("a connector is a mapping, not {}", item.data.type_name());
            fields.findings().add(item.at, Code::WrongType, message);
            continue;
        };
        let mut connector = Fields::new(map, item.at, fields.findings());
        let driver = connector.text("type");
        let name_node = connector.text_node("name");
        connector.take("defaults");
        let name = name_node
            .as_ref()
            .and_then(Node::scalar_text)
            .or_else(|| driver.clone());
        let at = name_node.map_or(item.at, |node| node.at);
        connector.finish(&["type", "name", "defaults"]);
        let (Some(driver), Some(name)) = (driver, name) else {
            fields
                .findings()
                .add(item.at, Code::MissingKey, "a connector needs a `type`");
            continue;
        };
        if RESERVED.contains(&name.as_str()) {
            fields.findings().add(
                at,
                Code::InvalidName,
                format!("connector name \"{name}\" is reserved"),
            );
        } else {
            found.insert(name, driver);
        }
    }
    found
}

fn variables(fields: &mut Fields<'_>) -> BTreeMap<String, String> {
    deprecated(fields, "vars", "env");
    let mut found = BTreeMap::new();
    for key in ["vars", "env"] {
        let Some((map, _)) = fields.map(key) else { continue };
        for (name, entry) in map {
            let node = entry.value;
            if !is_variable_name(&name) {
                let message = format!("\"{name}\" is no name for a variable");
                let hint = "use letters, digits, `_` and `.`, beginning with a letter or `_`";
                fields
                    .findings()
                    .add_with_hint(entry.key_at, Code::InvalidVariable, message, hint);
            } else if node.is_null() {
                found.insert(name, String::new());
            } else if let Some(value) = node.scalar_text() {
                found.insert(name, value);
            } else {
                let message = format!("variable \"{name}\" is {}, not text", node.data.type_name());
                fields.findings().add(node.at, Code::InvalidVariable, message);
            }
        }
    }
    found
}

/// Defaults of a kind, tried on an empty file so that a wrong type is found here and once.
fn defaults(fields: &mut Fields<'_>, key: &str, kind: FileKind) -> Map {
    let Some((map, at)) = fields.map(key) else {
        return Map::new();
    };
    let mut trial = Findings::default();
    model::try_defaults(map.clone(), at, kind, &mut trial);
    for finding in trial.iter().filter(|finding| is_about_value(finding.code)) {
        fields.findings().push(finding.clone());
    }
    map
}

/// Defaults of kinds other than models; the older key of a kind wins where both are there.
fn declared(fields: &mut Fields<'_>) -> BTreeMap<Kind, Map> {
    let mut found = BTreeMap::new();
    for (key, kind) in [
        ("metrics_views", Kind::MetricsView),
        ("dashboards", Kind::MetricsView),
        ("explores", Kind::Explore),
        ("canvases", Kind::Canvas),
        ("migrations", Kind::Migration),
    ] {
        let Some((map, at)) = fields.map(key) else {
            continue;
        };
        let mut trial = Findings::default();
        kinds::try_defaults(map.clone(), at, kind, &mut trial);
        for finding in trial.iter().filter(|finding| is_about_value(finding.code)) {
            fields.findings().push(finding.clone());
        }
        found.insert(kind, map);
    }
    found
}

fn is_about_value(code: Code) -> bool {
    matches!(code, Code::WrongType | Code::InvalidValue)
}

fn ignore_paths(fields: &mut Fields<'_>) -> Vec<String> {
    let at = fields.key_at("ignore_paths");
    let mut paths = Vec::new();
    for path in fields.texts("ignore_paths").unwrap_or_default() {
        match path.strip_prefix('/').map(|path| path.trim_end_matches('/')) {
            Some(path) if !path.is_empty() => paths.push(path.to_owned()),
            _ => {
                let at = at.unwrap_or(At::start(Role::Manifest));
                let message = format!("ignored path \"{path}\" does not begin with `/`");
                fields
                    .findings()
                    .add_with_hint(at, Code::InvalidValue, message, format!("write `/{path}`"));
            }
        }
    }
    paths.sort();
    paths
}
