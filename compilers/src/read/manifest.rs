//! The project's manifest: `rill.yaml` or `watershed.yaml` at its root.

use std::collections::BTreeMap;

use watershed_proto::{MapValue, value::Kind as ValueKind};

use super::env_file::is_variable_name;
use crate::{
    diagnostics::{At, Code, Findings, Role},
    draft::{Manifest, TextPlace, block::read_template},
    kinds::{self, inert, is_known},
    resource::{FileKind, Kind},
    settings::managers::{self, MANAGERS},
    settings::trash::{self, TRASH},
    settings::workloads::{self, WORKLOADS},
    template::is_template,
    text::Text,
    yaml::{self, Data, Fields, Map, Node, item, keys::blocks, overlay},
};

blocks! {
    /// Keys that a manifest accepts at its top level.
    pub(crate) static MANIFEST = "manifest" Refused + kinds::DEFAULTS {
        "compiler": Any, "Ignored.";
        "rill_version": Any, "Ignored.";
        "watershed_version": Any, "Ignored.";
        "version": Any, "Ignored.";
        "display_name": Text, "The name for people.";
        "title": Text, "The name for people." => "display_name";
        "name": Text, "The name for people." => "display_name";
        "description": Text, "What the project is about.";
        "banner": Text, "A line above its dashboards.";
        "tags": Texts, "Words to find the project by.";
        "ai_instructions": Text, "What an assistant should know.";
        "ai_connector": Text, "The connector of the assistant.";
        "ai_prompts": List(&Any), "Questions to an assistant that are proposed.";
        "theme": Name("theme"), "The theme of dashboards that name none.";
        "olap_connector": Text, "The connector that models are built on.";
        "connectors": List(&Block(&CONNECTOR)), "Connectors without a file of their own.";
        "env": Map(&Text), "Variables with their defaults.";
        "vars": Map(&Text), "Variables with their defaults." => "env";
        "environment_overrides": Map(&Any), "Keys that count in one environment only, by its name.";
        "dev": Any, "Keys that count in the environment `dev` only.";
        "prod": Any, "Keys that count in the environment `prod` only.";
        "sources": Any, "Defaults of sources.";
        "models": Any, "Defaults of models.";
        "features": Either(&[Texts, Map(&Any)]), "Features by name, on or off, or by a template.";
        "public_paths": Texts, "Folders whose files are served to everybody.";
        "ignore_paths": Texts, "Folders and files that are no part of the project; each begins with `/`.";
        "mock_users": List(&Block(&MOCK_USER)), "Users whose view can be tried.";
        "trash": Block(&TRASH), "How much is kept of tables that nothing stands for any more, and how long.";
        "install_extensions": Bool, "Whether the engine may fetch extensions that a resource needs; it may unless this is false.";
        "workloads": Block(&WORKLOADS), "How all jobs and services together are run.";
        "managers": Block(&MANAGERS), "How all managed resources together are worked on.";
    }

    /// Keys of an entry of `connectors` in the manifest.
    pub(crate) static CONNECTOR = "manifest_connector" Refused {
        "type": Text, "The driver.";
        "name": Text, "The connector's name, if it is not the driver's.";
        "defaults": Map(&Any), "Settings.";
    }

    /// Keys that each mock user of a manifest accepts.
    pub(crate) static MOCK_USER = "mock_user" Kept {
        "email": Text, "The e-mail address.";
        "name": Text, "The name.";
        "admin": Bool, "Whether the user administers the project.";
        "groups": Texts, "The groups.";
    }
}

/// Reserved names, which connectors can't have.
const RESERVED: [&str; 3] = ["admin", "repo", "metastore"];

/// Reads a manifest and reports its mistakes.
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
    inert::tell_manifest(&map, findings);
    let mut fields = Fields::new(map, root.at, findings);
    let manifest = decode(&mut fields);
    fields.finish(&MANIFEST);
    (!findings.has_errors()).then_some(manifest)
}

/// Applies the overrides of the environment, in which unknown keys are ignored.
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

/// Takes overrides in the deprecated form `env: {dev: {...}}` out of the variables.
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
            let (settings, values): (Map, Map) =
                over.into_iter().partition(|(key, _)| MANIFEST.key(key).is_some());
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
        .filter(|(key, _)| MANIFEST.key(key).is_some())
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
        "ai_prompts",
        "tags",
    ] {
        fields.take(ignored);
    }
    for text in ["description", "ai_instructions", "ai_connector", "banner"] {
        fields.text(text);
    }
    fields.deprecations(&MANIFEST);
    features(fields);
    let mock_users = mock_users(fields);
    let (title, name) = (fields.text("title"), fields.text("name"));
    let display_name = fields.text("display_name").or(title).or(name).unwrap_or_default();
    Manifest {
        olap_connector_at: fields.value_at("olap_connector"),
        trash_at: fields.value_at("trash"),
        declared: declared(fields),
        theme: fields.text("theme").unwrap_or_default(),
        display_name,
        olap_connector: olap_connector(fields),
        connectors: connectors(fields),
        variables: variables(fields),
        models: defaults(fields, "models", FileKind::Kind(Kind::Model)),
        sources: defaults(fields, "sources", FileKind::Source),
        ignore_paths: ignore_paths(fields),
        public_paths: public_paths(fields),
        trash: trash::take(fields),
        no_installs: fields.bool("install_extensions") == Some(false),
        mock_users,
        workloads: workloads::take(fields),
        managers: managers::take(fields),
    }
}

/// Takes the connector that models are built on; reports the driver of lakes, which is no connector.
fn olap_connector(fields: &mut Fields<'_>) -> Option<String> {
    let at = fields.value_at("olap_connector");
    let name = fields.text("olap_connector").filter(|name| !name.is_empty())?;
    if let Some(at) = at.filter(|_| name == "ducklake") {
        let findings = fields.findings();
        let message = "`ducklake` is the driver of lakes, and no lake by itself";
        let hint = "declare the lake as `connectors/lake.yaml`, and write `olap_connector: lake`";
        findings.add_with_hint(at, Code::InvalidValue, message, hint);
    }
    Some(name)
}

/// Checks `features`: a list of names, or a mapping of names to booleans or templates.
fn features(fields: &mut Fields<'_>) {
    let Some(node) = fields.take("features").map(|entry| entry.value) else {
        return;
    };
    let wrong = |what: &str, node: &Node, findings: &mut Findings| {
        let message = format!("{what}, not {}", node.data.type_name());
        findings.add(node.at, Code::WrongType, message);
    };
    match &node.data {
        Data::List(items) => {
            for item in items.iter().filter(|item| item.as_str().is_none()) {
                wrong("a feature is a name", item, fields.findings());
            }
        }
        Data::Map(map) => {
            for entry in map.values() {
                let value = &entry.value;
                match (&value.data, value.as_str()) {
                    (_, Some(text)) if is_template(text) => {
                        let place = TextPlace::from_node(value);
                        read_template(text, &place, fields.findings());
                    }
                    (Data::Bool(_) | Data::String(_), _) => {}
                    _ => wrong(
                        "a feature takes true, false or a template",
                        value,
                        fields.findings(),
                    ),
                }
            }
        }
        _ => wrong(
            "\"features\" takes a list of names or a mapping",
            &node,
            fields.findings(),
        ),
    }
}

/// Takes the mock users with all their attributes; each needs an e-mail address.
fn mock_users(fields: &mut Fields<'_>) -> Vec<MapValue> {
    let mut users = Vec::new();
    for node in fields.list("mock_users").unwrap_or_default() {
        let attributes = node.to_value();
        let Some((map, at)) = item(node, "a mock user", fields.findings()) else {
            continue;
        };
        let mut user = Fields::new(map, at, fields.findings());
        user.text("email");
        user.text("name");
        user.bool("admin");
        user.texts("groups");
        if let Some(ValueKind::Map(attributes)) = attributes.kind {
            users.push(attributes);
        }
    }
    users
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
        connector.finish(&CONNECTOR);
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
    let mut found = BTreeMap::new();
    for key in ["vars", "env"] {
        let Some((map, _)) = fields.map(key) else { continue };
        for (name, entry) in map {
            let node = entry.value;
            if !is_variable_name(&name) {
                let message = format!("`{key}`: \"{name}\" is no name for a variable");
                let hint = "use letters, digits, `_` and `.`, beginning with a letter or `_`";
                fields
                    .findings()
                    .add_with_hint(entry.key_at, Code::InvalidVariable, message, hint);
            } else if node.is_null() {
                found.insert(name, String::new());
            } else if let Some(value) = node.scalar_text() {
                found.insert(name, value);
            } else {
                let message = format!(
                    "`{key}`: variable \"{name}\" is {}, not text",
                    node.data.type_name()
                );
                fields.findings().add(node.at, Code::InvalidVariable, message);
            }
        }
    }
    found
}

/// Takes the defaults of a kind, and reports wrong values by trying them on an empty resource.
fn defaults(fields: &mut Fields<'_>, key: &str, kind: FileKind) -> Map {
    let Some((map, at)) = fields.map(key) else {
        return Map::new();
    };
    inert::tell_defaults(kind, &map, fields.findings());
    let map = without_folders(map, key, fields.findings());
    kinds::try_defaults(map.clone(), at, kind, fields.findings());
    map
}

/// Drops defaults for single folders, which are not supported, and reports them.
fn without_folders(defaults: Map, kind: &str, findings: &mut Findings) -> Map {
    let is_folder = |key: &str, value: &Node| matches!(value.data, Data::Map(_)) && !is_known(key);
    let (folders, rest): (Map, Map) = defaults
        .into_iter()
        .partition(|(key, entry)| is_folder(key, &entry.value));
    for (key, entry) in folders {
        let message = format!("`{key}` is no key of {kind}: defaults hold for all of them, not for a folder");
        let hint = "write the key at the top of `models:`, or into each file, as in `-- @materialize: true`";
        findings.add_with_hint(entry.key_at, Code::MisspelledKey, message, hint);
    }
    rest
}

/// Takes the defaults of kinds other than models; of two keys for one kind, the deprecated one wins.
fn declared(fields: &mut Fields<'_>) -> BTreeMap<Kind, Map> {
    let mut found = BTreeMap::new();
    for key in kinds::DEFAULTS.iter().map(|key| key.name) {
        let Some(kind) = kinds::kind_of_defaults(key) else {
            continue;
        };
        let Some((map, at)) = fields.map(key) else {
            continue;
        };
        inert::tell_defaults(FileKind::Kind(kind), &map, fields.findings());
        kinds::try_defaults(map.clone(), at, FileKind::Kind(kind), fields.findings());
        found.insert(kind, map);
    }
    found
}

/// Folders whose files everybody may read: `public`, unless the manifest names others.
fn public_paths(fields: &mut Fields<'_>) -> Vec<String> {
    let at = fields.key_at("public_paths");
    let Some(named) = fields.texts("public_paths") else {
        return vec!["public".to_owned()];
    };
    let mut paths = Vec::new();
    for path in named {
        let plain = path.trim_start_matches("./").trim_matches('/');
        if plain.split('/').all(|part| !matches!(part, "" | "." | "..")) {
            paths.push(plain.to_owned());
            continue;
        }
        let at = at.unwrap_or(At::start(Role::Manifest));
        let message = format!("public path \"{path}\" names no folder below the project");
        let hint = "name one of its folders, such as `public`";
        fields
            .findings()
            .add_with_hint(at, Code::InvalidValue, message, hint);
    }
    paths
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
