//! Connectors: access to other systems. Settings of known drivers are checked against types; others are kept as
//! written.

mod settings;

use std::collections::BTreeMap;

use watershed_proto::{ConnectorSpec, MapValue};

use crate::{
    blocks::connector,
    diagnostics::{Code, spot},
    draft::DRIVERS,
    kinds::reader::{Declared, Reader},
    resource::{Kind, Spec},
    template::is_template,
    text::names,
    yaml::{Data, Map, Node, keys::blocks},
};
use settings::{
    AZURE, CATALOGS, COMMAND, DUCKDB, DUCKLAKE, GCS, HTTPS, INSTEAD, LOCAL_FILE, MOTHERDUCK, MYSQL,
    NOT_FOLLOWED, POSTGRES, REQUIRED, S3, SLACK, SMTP, SQLITE, STORES, Type, WEBHOOK, WORDS,
};

blocks! {
    /// Keys of a connector, beside the settings of its driver.
    pub(crate) static CONNECTOR = "connector" Kept {
        "driver": Word(&DRIVERS), "What it is access to.";
        "managed": Any, "Whether the system is kept by the one that runs the project: true, or how.";
    }
}

/// Returns the words that a setting of a driver accepts; empty if it is not limited to words.
pub(crate) fn words_of(driver: &str, setting: &str) -> &'static [&'static str] {
    let found = WORDS
        .iter()
        .find(|(of, name, _)| *of == driver && *name == setting);
    found.map_or(&[], |(_, _, words)| *words)
}

/// Reads a connector from its settings.
pub(crate) fn read(reader: &mut Reader<'_, '_>) -> Declared {
    reader.refuse_sql(Kind::Connector);
    let driver = reader.fields.text_node("driver");
    let name = driver.as_ref().and_then(Node::scalar_text).unwrap_or_default();
    match &driver {
        None => {
            let at = reader.fields.at();
            let hint = "for example, add `driver: duckdb`";
            reader
                .findings()
                .add_with_hint(at, Code::MissingKey, "a connector needs a `driver`", hint);
        }
        Some(node) => driver_is_known(reader, node, &name),
    }
    let mut spec = ConnectorSpec {
        driver: name.clone(),
        builds: reader.about.name.eq_ignore_ascii_case(reader.context.olap),
        ..ConnectorSpec::default()
    };
    managed(reader, &mut spec);
    let rest = reader.fields.take_rest();
    let known = match name.as_str() {
        "duckdb" => DUCKDB,
        "local_file" | "file" => LOCAL_FILE,
        "smtp" => SMTP,
        "slack" => SLACK,
        "webhook" => WEBHOOK,
        "command" => COMMAND,
        "s3" => S3,
        "gcs" => GCS,
        "azure" => AZURE,
        "https" => HTTPS,
        "postgres" => POSTGRES,
        "mysql" => MYSQL,
        "sqlite" => SQLITE,
        "ducklake" => DUCKLAKE,
        _ => &[],
    };
    check(reader, &name, &rest, known);
    if name == "duckdb" && !spec.provision {
        if spec.builds {
            warn_of_file(reader, &rest);
        }
        refuse_motherduck(reader, &rest);
    }
    let mut connectors = Vec::new();
    if name == "ducklake" {
        if spec.builds {
            refuse_reading_alone(reader, &rest);
        }
        connectors.extend(store(reader, &rest));
    }
    for (key, entry) in &rest {
        spec.spots
            .extend(spot(entry.value.at).map(|spot| (key.clone(), spot)));
        if has_template(&entry.value) {
            spec.templated_properties.push(key.clone());
            reader.templates_in(&entry.value);
        }
    }
    let fields: BTreeMap<_, _> = rest
        .into_iter()
        .map(|(key, entry)| (key, entry.value.to_value()))
        .collect();
    spec.properties = Some(MapValue { fields });
    Declared {
        connectors,
        ..Declared::new(Spec::Connector(Box::new(spec)))
    }
}

/// Returns the connector of the object store that holds the files of a lake; reports one of another driver.
fn store(reader: &mut Reader<'_, '_>, settings: &Map) -> Option<String> {
    let node = &settings
        .get("store")
        .filter(|entry| !entry.value.is_null())?
        .value;
    let name = connector::name(node, reader.context, reader.fields.findings());
    let driver = reader.context.driver(&name)?;
    if !STORES.contains(&driver) {
        let message = format!("connector \"{name}\" is no store of files, but `{driver}`");
        let hint = "name one of `s3`, `gcs` or `azure`; files on this machine need no `store`";
        let findings = reader.findings();
        findings.add_with_hint(node.at, Code::InvalidValue, message, hint);
    }
    Some(name)
}

/// Reports a lake that models are built in and that may only be read.
fn refuse_reading_alone(reader: &mut Reader<'_, '_>, settings: &Map) {
    let name = reader.about.name.to_owned();
    let mode = settings.get("mode").map(|entry| &entry.value);
    let Some(mode) = mode.filter(|mode| mode.scalar_text().as_deref() == Some("read")) else {
        return;
    };
    let message = format!("models are built in the lake of connector \"{name}\", which is only read");
    let hint = "write `mode: readwrite`, or leave `mode` out";
    let at = mode.at;
    reader
        .findings()
        .add_with_hint(at, Code::InvalidValue, message, hint);
}

/// Warns of a database file in the connector that models are built on, as their tables do not lie in it.
fn warn_of_file(reader: &mut Reader<'_, '_>, settings: &Map) {
    let found = ["path", "db", "dsn"].iter().find_map(|key| {
        let entry = settings.get(*key)?;
        let text = entry.value.scalar_text()?;
        (!text.is_empty() && text != ":memory:").then_some((key, entry.value.at))
    });
    let Some((key, at)) = found else { return };
    let name = reader.about.name.to_owned();
    let message = format!(
        "models are not built in the file of connector \"{name}\", but in the project's own engine: the file is read alone"
    );
    let hint = format!(
        "a source with `connector: {name}` and `table: NAME` reads a table of the file; without one leave `{key}` out"
    );
    reader
        .findings()
        .add_with_hint(at, Code::NoEffectYet, message, hint);
}

fn driver_is_known(reader: &mut Reader<'_, '_>, node: &Node, driver: &str) {
    if matches!(
        driver,
        "duckdb"
            | "local_file"
            | "file"
            | "smtp"
            | "slack"
            | "webhook"
            | "command"
            | "s3"
            | "gcs"
            | "azure"
            | "https"
            | "postgres"
            | "mysql"
            | "sqlite"
            | "ducklake"
    ) {
        return;
    }
    let name = reader.about.name.to_owned();
    let findings = reader.findings();
    if DRIVERS.contains(&driver) {
        let message = format!("connector \"{name}\": driver \"{driver}\" is not supported yet");
        match instead(driver) {
            Some(hint) => findings.add_with_hint(node.at, Code::NotSupportedYet, message, hint),
            None => findings.add(node.at, Code::NotSupportedYet, message),
        }
        return;
    }
    if let Some((_, what, hint)) = CATALOGS.iter().find(|(names, ..)| names.contains(&driver)) {
        let message = format!("connector \"{name}\": {what} are not supported yet");
        findings.add_with_hint(node.at, Code::NotSupportedYet, message, *hint);
        return;
    }
    let message = format!("unknown driver \"{driver}\"");
    match names::nearest(driver, DRIVERS) {
        Some(near) => findings.add_with_hint(
            node.at,
            Code::InvalidValue,
            message,
            format!("did you mean `{near}`?"),
        ),
        None => findings.add_with_hint(
            node.at,
            Code::InvalidValue,
            message,
            "one of `duckdb`, `local_file`, `https`, `s3`, `gcs`, `azure`, `postgres`, `mysql`, `sqlite`, `ducklake`, `smtp`, `slack`, `webhook`, `command`",
        ),
    }
}

fn instead(driver: &str) -> Option<&'static str> {
    let found = INSTEAD.iter().find(|(of, _)| *of == driver);
    found.map(|(_, hint)| *hint)
}

/// Reports a DuckDB connector that names a MotherDuck database as its file.
fn refuse_motherduck(reader: &mut Reader<'_, '_>, settings: &Map) {
    let named = |key: &&str| {
        let entry = settings.get(*key)?;
        let text = entry.value.scalar_text()?;
        let is_theirs = MOTHERDUCK.iter().any(|scheme| text.starts_with(scheme));
        is_theirs.then_some((entry.value.at, text))
    };
    let Some((at, text)) = ["path", "db", "dsn"].iter().find_map(named) else {
        return;
    };
    let message = format!("\"{text}\" is a database of MotherDuck, which is not supported yet");
    let hint = instead("motherduck").unwrap_or_default();
    reader
        .findings()
        .add_with_hint(at, Code::NotSupportedYet, message, hint);
}

/// Takes `managed`: true, or a mapping with settings.
fn managed(reader: &mut Reader<'_, '_>, spec: &mut ConnectorSpec) {
    let Some(entry) = reader.fields.take("managed") else {
        return;
    };
    match entry.value.data {
        Data::Bool(managed) => spec.provision = managed,
        Data::Map(_) => {
            spec.provision = true;
            let fields = entry.value.to_value().as_map().cloned().unwrap_or_default();
            spec.provision_args = Some(MapValue { fields });
        }
        other => {
            let message = format!(
                "\"managed\" takes true, false or a mapping, not {}",
                other.type_name()
            );
            reader.findings().add(entry.value.at, Code::WrongType, message);
        }
    }
}

/// Checks settings against their types, reports missing ones, and reports keys that resemble a known key.
fn check(reader: &mut Reader<'_, '_>, driver: &str, rest: &Map, known: &[(&str, Type)]) {
    if known.is_empty() {
        return;
    }
    let required = REQUIRED.iter().filter(|(name, _)| *name == driver);
    for key in required
        .flat_map(|(_, keys)| *keys)
        .filter(|key| rest.get(**key).is_none())
    {
        let (at, message) = (
            reader.fields.at(),
            format!("a connector of the driver `{driver}` needs `{key}`"),
        );
        reader.findings().add(at, Code::MissingKey, message);
    }
    for (_, key, instead) in NOT_FOLLOWED.iter().filter(|(of, ..)| *of == driver) {
        if let Some(entry) = rest.get(*key).filter(|entry| !entry.value.is_null()) {
            let message = format!("\"{key}\" of the driver `{driver}` is not supported yet");
            let findings = reader.findings();
            findings.add_with_hint(entry.key_at, Code::NotSupportedYet, message, *instead);
        }
    }
    for (key, entry) in rest {
        let node = &entry.value;
        let Some((_, wanted)) = known.iter().find(|(name, _)| name == key) else {
            if let Some(near) = names::nearest(key, known.iter().map(|(name, _)| *name)) {
                let message = format!("unknown key \"{key}\" is passed on to the driver");
                let hint = format!("did you mean `{near}`?");
                reader
                    .findings()
                    .add_with_hint(entry.key_at, Code::MisspelledKey, message, hint);
            }
            continue;
        };
        if !node.is_null() && !fits(node, *wanted) {
            let message = format!(
                "\"{key}\" takes {}, not {}",
                words(*wanted),
                node.data.type_name()
            );
            reader.findings().add(node.at, Code::WrongType, message);
        }
        let words = words_of(driver, key);
        if let (false, Some(text)) = (words.is_empty(), node.as_str())
            && !words.contains(&text)
            && !is_template(text)
        {
            let message = format!("\"{key}\" can't be \"{text}\"");
            let hint = format!("one of `{}`", words.join("`, `"));
            reader
                .findings()
                .add_with_hint(node.at, Code::InvalidValue, message, hint);
        }
    }
}

fn fits(node: &Node, wanted: Type) -> bool {
    let from_template = node.as_str().is_some_and(is_template);
    from_template
        || match (wanted, &node.data) {
            (Type::Any, _)
            | (Type::Bool, Data::Bool(_))
            | (Type::Number, Data::Int(_) | Data::Float(_))
            | (Type::Map, Data::Map(_)) => true,
            (Type::Count, Data::Int(value)) => *value >= 0,
            (Type::Text, _) => node.scalar_text().is_some(),
            (Type::Texts, Data::List(items)) => items.iter().all(|item| item.scalar_text().is_some()),
            (Type::Texts, _) => node.scalar_text().is_some(),
            _ => false,
        }
}

fn words(wanted: Type) -> &'static str {
    match wanted {
        Type::Text => "text",
        Type::Bool => "true or false",
        Type::Count => "a whole number from 0 up",
        Type::Number => "a number",
        Type::Texts => "a list of texts",
        Type::Map => "a mapping",
        Type::Any => "anything",
    }
}

fn has_template(node: &Node) -> bool {
    match &node.data {
        Data::String(text) => is_template(text),
        Data::List(items) => items.iter().any(has_template),
        Data::Map(map) => map.values().any(|entry| has_template(&entry.value)),
        _ => false,
    }
}
