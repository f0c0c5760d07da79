//! Statements that connectors state for the start of every connection of the engine.

use std::collections::BTreeMap;

use watershed_compilers::{Kind, Scope, render_text, sql::statements_digest};
use watershed_core::Row;
use watershed_drivers::olap::Session;
use watershed_proto::{ConnectorSpec, Message as _};

use crate::access::{self, Surroundings};
use crate::secrets::Secrets;
use crate::traces::Version;

/// Returns true if a connector is a separate database file. That on which models are built is the project's own engine,
/// whatever file it names.
pub fn has_file(spec: &ConnectorSpec) -> bool {
    let named = |key: &&str| {
        let text = spec.properties.as_ref().and_then(|all| all.str(key));
        text.is_some_and(|text| !text.is_empty() && text != ":memory:")
    };
    spec.driver == "duckdb" && !spec.provision && !spec.builds && ["path", "db", "dsn"].iter().any(named)
}

/// Settings with statements for the start of every connection, in their order of execution.
pub const SESSION_KEYS: [&str; 4] = ["boot_queries", "init_sql", "init_queries", "conn_init_sql"];

/// Returns the statements of connectors for the start of every connection, by name, with their versions. Omits a text
/// whose template can't be executed, since the connector itself reports the error.
pub fn sessions<'a>(
    connectors: impl Iterator<Item = (&'a str, &'a ConnectorSpec)>,
    around: Surroundings<'_>,
    secrets: &Secrets,
) -> Vec<(Session, Version)> {
    let session = |(name, spec): (&str, &ConnectorSpec)| {
        if access::is_store(&spec.driver) {
            return store_session(name, spec, around);
        }
        let is_own = spec.driver == "duckdb" && !has_file(spec);
        let sql = session_sql(spec, &spec.variables, around.environment).filter(|_| is_own)?;
        let session = Session {
            connector: name.to_owned(),
            sql,
            ..Session::default()
        };
        Some((session, version(spec, secrets)))
    };
    let mut sessions: Vec<_> = connectors.filter_map(session).collect();
    sessions.sort_by(|(a, _), (b, _)| a.connector.cmp(&b.connector));
    sessions
}

/// Returns the statement that gives the engine a connector's store credentials. Not an input of builds: new credentials
/// rebuild nothing.
fn store_session(name: &str, spec: &ConnectorSpec, around: Surroundings<'_>) -> Option<(Session, Version)> {
    let access = access::access(spec, &spec.variables, around).ok()??;
    let prefixes = access::prefixes(spec, access.driver);
    Some((access::session(name, &access, &prefixes)?, Version::default()))
}

/// Returns the statements for the start of every connection from rows of the catalog. Omits statements with values that
/// are not known yet.
pub fn sessions_of_rows<'a>(
    rows: impl Iterator<Item = &'a Row>,
    around: Surroundings<'_>,
    secrets: &Secrets,
) -> Vec<(Session, Version)> {
    let spec = |row: &'a Row| {
        let mut spec = ConnectorSpec::decode(row.spec.as_ref()).ok()?;
        spec.variables = secrets.open(&spec.variables).ok()?;
        Some(spec)
    };
    let connectors: Vec<_> = rows
        .filter(|row| row.kind.as_str() == Kind::Connector.as_str() && !row.intents.is_deleted())
        .filter_map(|row| Some((row.name.as_str(), spec(row)?)))
        .collect();
    sessions(
        connectors.iter().map(|(name, spec)| (*name, spec)),
        around,
        secrets,
    )
}

/// Returns a fingerprint of the statements without comments and whitespace, keyed so that no value can be guessed from
/// it.
fn version(spec: &ConnectorSpec, secrets: &Secrets) -> Version {
    let mut texts = String::new();
    let properties = spec.properties.iter();
    for text in properties.flat_map(|all| SESSION_KEYS.iter().filter_map(|key| all.str(key))) {
        texts.push_str(text);
        texts.push_str("\n;\n");
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update(&statements_digest(&texts));
    for (name, sealed) in secrets.seal_all(&spec.variables) {
        hasher
            .update(name.as_bytes())
            .update(b"=")
            .update(sealed.as_bytes());
    }
    let mut version = Version::default();
    hasher.finalize_xof().fill(&mut version);
    version
}

/// Returns the statements for the start of a connection in a connector's settings, templates executed; none if there
/// are none.
pub fn session_sql(
    spec: &ConnectorSpec,
    variables: &BTreeMap<String, String>,
    environment: &str,
) -> Option<String> {
    let properties = spec.properties.as_ref()?;
    let scope = Scope {
        environment: environment.to_owned(),
        variables: variables.clone(),
        ..Scope::default()
    };
    let texts = SESSION_KEYS.iter().filter_map(|key| properties.str(key));
    let texts: Vec<String> = texts.filter_map(|text| render_text(text, &scope).ok()).collect();
    (!texts.is_empty()).then(|| texts.join("\n;\n"))
}
