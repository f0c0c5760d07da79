//! Connectors: access to another system. Settings of DuckDB, of local files and of what messages go over have types;
//! others are kept as they are.

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

/// The type of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Text,
    Bool,
    Count,
    Number,
    Texts,
    Map,
    Any,
}

/// Settings of DuckDB.
const DUCKDB: &[(&str, Type)] = &[
    ("path", Type::Text),
    ("dsn", Type::Text),
    ("db", Type::Text),
    ("mode", Type::Text),
    ("attach", Type::Text),
    ("init_sql", Type::Text),
    ("conn_init_sql", Type::Text),
    ("boot_queries", Type::Text),
    ("init_queries", Type::Text),
    ("database_name", Type::Text),
    ("schema_name", Type::Text),
    ("secrets", Type::Any),
    ("create_secrets_from_connectors", Type::Texts),
    ("extensions", Type::Texts),
    ("settings", Type::Map),
    ("pool_size", Type::Count),
    ("cpu", Type::Count),
    ("memory_limit_gb", Type::Count),
    ("storage_limit_bytes", Type::Count),
    ("read_write_ratio", Type::Number),
    ("allow_host_access", Type::Bool),
    ("log_queries", Type::Bool),
    ("token", Type::Text),
];

/// Settings of local files.
const LOCAL_FILE: &[(&str, Type)] = &[
    ("path", Type::Text),
    ("root", Type::Text),
    ("dsn", Type::Text),
    ("allow_host_access", Type::Bool),
];

/// Settings of a mail server.
const SMTP: &[(&str, Type)] = &[
    ("host", Type::Text),
    ("port", Type::Count),
    ("tls", Type::Text),
    ("user", Type::Text),
    ("password", Type::Text),
    ("from", Type::Text),
    ("ca_file", Type::Text),
];

/// Settings of Slack.
const SLACK: &[(&str, Type)] = &[("token", Type::Text), ("api", Type::Text)];

/// Settings of a webhook.
const WEBHOOK: &[(&str, Type)] = &[
    ("url", Type::Text),
    ("secret", Type::Text),
    ("previous_secret", Type::Text),
];

/// Settings of a command.
const COMMAND: &[(&str, Type)] = &[("command", Type::Texts), ("environment", Type::Map)];

/// Settings of S3 and of stores that speak it.
const S3: &[(&str, Type)] = &[
    ("aws_access_key_id", Type::Text),
    ("aws_secret_access_key", Type::Text),
    ("aws_session_token", Type::Text),
    ("aws_access_token", Type::Text),
    ("key_id", Type::Text),
    ("secret", Type::Text),
    ("session_token", Type::Text),
    ("region", Type::Text),
    ("aws_region", Type::Text),
    ("endpoint", Type::Text),
    ("aws_endpoint", Type::Text),
    ("path_style", Type::Bool),
    ("url_style", Type::Text),
    ("path_prefixes", Type::Texts),
    ("ca_cert_file", Type::Text),
    ("aws_role_arn", Type::Text),
    ("aws_role_session_name", Type::Text),
    ("aws_external_id", Type::Text),
    ("allow_host_access", Type::Bool),
];

/// Settings of Google Cloud Storage.
const GCS: &[(&str, Type)] = &[
    ("key_id", Type::Text),
    ("secret", Type::Text),
    ("endpoint", Type::Text),
    ("path_style", Type::Bool),
    ("url_style", Type::Text),
    ("path_prefixes", Type::Texts),
    ("ca_cert_file", Type::Text),
    ("google_application_credentials", Type::Text),
    ("allow_host_access", Type::Bool),
];

/// Settings of Azure's Blob Storage.
const AZURE: &[(&str, Type)] = &[
    ("azure_storage_account", Type::Text),
    ("azure_storage_key", Type::Text),
    ("account", Type::Text),
    ("key", Type::Text),
    ("endpoint", Type::Text),
    ("path_prefixes", Type::Texts),
    ("ca_cert_file", Type::Text),
    ("azure_storage_sas_token", Type::Text),
    ("azure_storage_connection_string", Type::Text),
    ("allow_host_access", Type::Bool),
];

/// Settings of web servers.
const HTTPS: &[(&str, Type)] = &[
    ("path", Type::Text),
    ("headers", Type::Map),
    ("path_prefixes", Type::Texts),
    ("ca_cert_file", Type::Text),
];

/// Settings of Postgres.
const POSTGRES: &[(&str, Type)] = &[
    ("dsn", Type::Text),
    ("database_url", Type::Text),
    ("host", Type::Text),
    ("port", Type::Count),
    ("user", Type::Text),
    ("username", Type::Text),
    ("password", Type::Text),
    ("dbname", Type::Text),
    ("database", Type::Text),
    ("sslmode", Type::Text),
    ("sslrootcert", Type::Text),
    ("connect_timeout", Type::Count),
];

/// Settings of MySQL and MariaDB.
const MYSQL: &[(&str, Type)] = &[
    ("dsn", Type::Text),
    ("host", Type::Text),
    ("port", Type::Count),
    ("user", Type::Text),
    ("username", Type::Text),
    ("password", Type::Text),
    ("database", Type::Text),
    ("dbname", Type::Text),
    ("socket", Type::Text),
    ("ssl_mode", Type::Text),
    ("ssl-mode", Type::Text),
    ("sslmode", Type::Text),
];

/// Settings of SQLite.
const SQLITE: &[(&str, Type)] = &[("dsn", Type::Text), ("path", Type::Text), ("db", Type::Text)];

/// Settings of a DuckLake: those of the database that keeps its catalog, and where its files are.
const DUCKLAKE: &[(&str, Type)] = &[
    ("catalog", Type::Text),
    ("data_path", Type::Text),
    ("store", Type::Text),
    ("mode", Type::Text),
    ("path", Type::Text),
    ("db", Type::Text),
    ("dsn", Type::Text),
    ("database_url", Type::Text),
    ("host", Type::Text),
    ("port", Type::Count),
    ("user", Type::Text),
    ("username", Type::Text),
    ("password", Type::Text),
    ("dbname", Type::Text),
    ("database", Type::Text),
    ("sslmode", Type::Text),
    ("sslrootcert", Type::Text),
    ("connect_timeout", Type::Count),
    ("attach", Type::Text),
];

/// Words for catalogs of lakehouses, which tables are read without.
const CATALOGS: &[(&[&str], &str, &str)] = &[
    (
        &["iceberg", "iceberg_rest", "glue", "nessie", "polaris"],
        "catalogs of Iceberg",
        "read a table by its folder: `format: iceberg` and `path: s3://lake/tables/orders`, through a connector to its store",
    ),
    (
        &["delta", "databricks", "unity", "unity_catalog"],
        "catalogs of Delta",
        "read a table by its folder: `format: delta` and `path: s3://lake/tables/orders`, through a connector to its store",
    ),
];

/// Drivers of stores that hold the files of a lake.
const STORES: [&str; 3] = ["s3", "gcs", "azure"];

/// Settings that are known and not followed: access would fail in words about something else.
const NOT_FOLLOWED: &[(&str, &str, &str)] = &[
    (
        "s3",
        "aws_role_arn",
        "use the keys of a session in that role, with its `aws_session_token`",
    ),
    (
        "gcs",
        "google_application_credentials",
        "use the `key_id` and `secret` of an HMAC key",
    ),
    (
        "azure",
        "azure_storage_sas_token",
        "use `azure_storage_account` and `azure_storage_key`",
    ),
    (
        "azure",
        "azure_storage_connection_string",
        "use `azure_storage_account` and `azure_storage_key`",
    ),
    (
        "ducklake",
        "attach",
        "say `catalog: sqlite` (or `duckdb`, `postgres`), where that is (`path`, or `host` and so on), and `data_path`",
    ),
];

/// Drivers that are known and not supported, with what does the same.
const INSTEAD: &[(&str, &str)] = &[(
    "motherduck",
    "have it write its tables as Parquet into a bucket, which `s3`, `gcs` and `azure` read; a database file of DuckDB is read by `duckdb`",
)];

/// Beginnings of paths that name a database of MotherDuck and no file.
const MOTHERDUCK: [&str; 2] = ["md:", "motherduck:"];

/// Settings without which a driver can do nothing.
const REQUIRED: &[(&str, &[&str])] = &[
    ("smtp", &["host", "from"]),
    ("webhook", &["url"]),
    ("command", &["command"]),
    ("ducklake", &["catalog"]),
];

/// Words that a setting may be.
const WORDS: &[(&str, &str, &[&str])] = &[
    ("duckdb", "mode", &["read", "readwrite"]),
    ("ducklake", "catalog", &["duckdb", "sqlite", "postgres"]),
    ("ducklake", "mode", &["read", "readwrite"]),
    ("smtp", "tls", &["starttls", "implicit", "none"]),
    ("s3", "url_style", &["path", "vhost"]),
    ("gcs", "url_style", &["path", "vhost"]),
];

blocks! {
    /// Keys of a connector, beside the settings of its driver.
    pub(crate) static CONNECTOR = "connector" Kept {
        "driver": Word(&DRIVERS), "What it is access to.";
        "managed": Any, "Whether the system is kept by the one that runs the project: true, or how.";
    }
}

/// Returns the words that a setting of a driver may be; none if it may be more.
pub(crate) fn words_of(driver: &str, setting: &str) -> &'static [&'static str] {
    let found = WORDS
        .iter()
        .find(|(of, name, _)| *of == driver && *name == setting);
    found.map_or(&[], |(_, _, words)| *words)
}

/// Reads a connector.
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
        refuse_elsewhere(reader, &rest);
        refuse_motherduck(reader, &rest);
    }
    let mut connectors = Vec::new();
    if name == "ducklake" {
        refuse_builds(reader, driver.as_ref());
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

/// Returns the connector of the store that holds the files of a lake.
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

/// Refuses a lake as the engine that models are built on.
fn refuse_builds(reader: &mut Reader<'_, '_>, driver: Option<&Node>) {
    let name = reader.about.name.to_owned();
    if !name.eq_ignore_ascii_case(reader.context.olap) {
        return;
    }
    let at = driver.map_or(reader.fields.at(), |node| node.at);
    let findings = reader.findings();
    findings.add_with_hint(
        at,
        Code::InvalidValue,
        connector::LAKE_BUILDS,
        connector::LAKE_BUILDS_HINT,
    );
}

/// Refuses a database file for the connector that models are built on: whoever names one expects their tables there.
fn refuse_elsewhere(reader: &mut Reader<'_, '_>, settings: &Map) {
    let name = reader.about.name.to_owned();
    if !name.eq_ignore_ascii_case(reader.context.olap) {
        return;
    }
    let named = |key: &&str| {
        let entry = settings.get(*key)?;
        let text = entry
            .value
            .scalar_text()
            .filter(|text| !text.is_empty() && text != ":memory:")?;
        Some((entry.value.at, text))
    };
    let found = ["path", "db", "dsn"]
        .iter()
        .find_map(|key| Some((*key, named(key)?)));
    let Some((key, (at, file))) = found else { return };
    let message =
        format!("models are built on connector \"{name}\", whose tables can't be kept in \"{file}\"");
    let hint = format!(
        "leave `{key}` out and, if the state folder is to stand elsewhere, call with `--state-dir`; \
         a database that is only read is a connector of another name"
    );
    reader
        .findings()
        .add_with_hint(at, Code::InvalidValue, message, hint);
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

/// Says so where a connector of DuckDB, other than the one that models are built on, names a database of MotherDuck in the
/// place of a file.
fn refuse_motherduck(reader: &mut Reader<'_, '_>, settings: &Map) {
    if reader.about.name.eq_ignore_ascii_case(reader.context.olap) {
        return;
    }
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

/// `managed: true`, or a mapping that says how.
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

/// Settings against their types; keys that are nearly known are told and passed on.
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
