//! Statements around a build, and the restoring of global settings that they change.
//!
//! What holds for one connection (SET, SET VARIABLE, temporary tables) ends with it: a connection that ran such
//! statements is spent. What holds for the whole file or process is found as the difference of before and after, seen from
//! a connection of our own, and undone: settings, attached databases, temporary secrets. One build with such statements is
//! at work at a time, so the difference is its own. What is stored (tables, persistent secrets) and extensions stay.

use std::collections::{BTreeMap, BTreeSet};

use watershed_dialect::{DuckDb, Quoting as _};

use super::engine::{Engine, Intent};
use super::failure::{Aftermath, plain_error};
use super::names::{Edit, Entry, Folded};
use super::schema;
use super::statements::each_statement;
use super::transaction::Work;
use crate::olap::{BuildError, Failure, HookError, Hooks, OutputKind, SqlError, Value};

const SETTINGS: &str = "SELECT name, value FROM duckdb_settings()";
/// Query for attached databases other than those that concurrent builds have attached.
const DATABASES: &str = "SELECT database_name FROM duckdb_databases() \
    WHERE NOT internal AND NOT starts_with(database_name, '_watershed_')";
const SECRETS: &str =
    "SELECT name FROM duckdb_secrets() WHERE NOT persistent AND NOT starts_with(name, '_watershed_')";
const DATABASE: &str = "SELECT current_database()";

/// Settings that are aliases of others, or display a rounded limit.
const MEMORY: [&str; 2] = ["memory_limit", "max_memory"];

/// Runs a build between its hooks.
pub(super) fn around<T>(
    engine: &Engine,
    work: &Work<'_>,
    hooks: &Hooks,
    build: impl FnOnce() -> Result<T, BuildError>,
) -> Result<T, BuildError> {
    if hooks.is_empty() {
        return build();
    }
    // Settings and temporary things of the statements are this connection's: nobody else is to get it.
    work.spend();
    let before = EngineSettings::now(engine)?;
    let done = run_before(work, hooks).and_then(|()| {
        // What they wrote into a lake is known before the build begins.
        engine.prepare(work, Intent::Change)?;
        let done = build();
        run_after(work, hooks, done)
    });
    // An engine that has to be opened anew forgets all of it.
    if work.aftermath() != Aftermath::Broken
        && let Err(error) = before.restore(engine)
    {
        tracing::warn!(%error, "what statements around a build have set could not be undone: opening the file anew");
        engine.renew();
    }
    done
}

fn run_before(work: &Work<'_>, hooks: &Hooks) -> Result<(), BuildError> {
    let database = work.run(DATABASE, &[])?;
    let failed = |text: usize, error: SqlError| {
        let error = Box::new(error);
        BuildError::Before(HookError { text, error })
    };
    for (index, text) in hooks.before.iter().enumerate() {
        each_statement(work, text).map_err(|failure| match failure {
            Failure::Sql(error) => failed(index, error),
            failure => failure.into(),
        })?;
        if work.connection().run("ROLLBACK", &[]).is_ok() {
            let error = "the statements leave a transaction open: end it with COMMIT";
            return Err(failed(index, plain_error(error)));
        }
        if work.run(DATABASE, &[])? != database {
            let error = "the statements leave another database in use: end with USE of the one before, and name \
                         what is read as `database.table`";
            return Err(failed(index, plain_error(error)));
        }
    }
    Ok(())
}

/// Runs the statements after a build, unless it was interrupted. Returns the combined result.
fn run_after<T>(work: &Work<'_>, hooks: &Hooks, done: Result<T, BuildError>) -> Result<T, BuildError> {
    let is_over = match &done {
        Err(BuildError::Failed(Failure::Interrupted)) => true,
        _ => work.aftermath() == Aftermath::Broken,
    };
    if is_over {
        return done;
    }
    work.resume_interrupts();
    for (text, sql) in hooks.after.iter().enumerate() {
        let error = match each_statement(work, sql) {
            Ok(()) => continue,
            Err(Failure::Interrupted) => return Err(Failure::Interrupted.into()),
            Err(Failure::Sql(error)) => error,
            // Not as the build's own: that is not to be run again for lack of memory here.
            Err(failure) => SqlError {
                hint: failure.hint(),
                ..plain_error(&failure.to_string())
            },
        };
        return Err(BuildError::After {
            hook: HookError {
                text,
                error: Box::new(error),
            },
            build: done.err().map(Box::new),
        });
    }
    done
}

/// The global settings and objects that statements can change.
struct EngineSettings {
    settings: BTreeMap<String, Option<String>>,
    databases: BTreeSet<String>,
    secrets: BTreeSet<String>,
    /// Objects in the schema of outputs that are not ours, by name.
    foreign: BTreeMap<String, OutputKind>,
}

impl EngineSettings {
    fn now(engine: &Engine) -> Result<Self, Failure> {
        let connection = engine.bare_connection()?;
        Self::seen_by(&Work::uninterrupted(&connection).in_lake(engine.lake()))
    }

    fn seen_by(work: &Work<'_>) -> Result<Self, Failure> {
        let names = |sql: &str| -> Result<BTreeSet<String>, Failure> {
            let rows = work.run(sql, &[])?;
            Ok(rows.into_iter().flatten().map(|name| name.to_string()).collect())
        };
        let setting = |row: Vec<Value>| match <[Value; 2]>::try_from(row).ok()? {
            [Value::Text(name), Value::Text(value)] => Some((name, Some(value))),
            [Value::Text(name), _] => Some((name, None)),
            _ => None,
        };
        let settings = work.run(SETTINGS, &[])?;
        let entries = schema::read_entries(work)?;
        Ok(Self {
            settings: settings.into_iter().filter_map(setting).collect(),
            databases: names(DATABASES)?,
            secrets: names(SECRETS)?,
            foreign: entries
                .into_iter()
                .filter(|entry| entry.tag.is_none())
                .map(|entry| (entry.name, entry.kind))
                .collect(),
        })
    }

    /// Restores the settings that have changed since. Applies created and removed objects to the known names.
    fn restore(&self, engine: &Engine) -> Result<(), Failure> {
        let connection = engine.bare_connection()?;
        let work = Work::uninterrupted(&connection).in_lake(engine.lake());
        let now = Self::seen_by(&work)?;
        for (name, value) in &self.settings {
            if now.settings.get(name).is_some_and(|now| now != value) {
                work.run(
                    &reset(name, value.as_deref(), engine.parts.pool.memory_limit()),
                    &[],
                )?;
            }
        }
        for name in now.databases.difference(&self.databases) {
            work.run(&format!("DETACH {}", DuckDb.name(name)), &[])?;
        }
        for name in now.secrets.difference(&self.secrets) {
            work.run(&format!("DROP TEMPORARY SECRET {}", DuckDb.name(name)), &[])?;
        }
        let came = now
            .foreign
            .iter()
            .filter(|(name, _)| !self.foreign.contains_key(*name));
        let came = came.map(|(name, kind)| {
            Edit::Put(Entry {
                name: name.clone(),
                kind: *kind,
                tag: None,
            })
        });
        let went = self
            .foreign
            .keys()
            .filter(|name| !now.foreign.contains_key(*name));
        let went = went.map(|name| Edit::Remove(Folded::new(name)));
        engine.parts.names.apply(went.chain(came));
        Ok(())
    }
}

/// Returns the statement that restores the value of a setting.
fn reset(name: &str, value: Option<&str>, memory_limit: Option<u64>) -> String {
    let quoted = DuckDb.name(name);
    match (value, memory_limit) {
        (_, Some(bytes)) if MEMORY.contains(&name) => format!("SET GLOBAL {quoted} = '{bytes}B'"),
        (Some(value), _) => format!("SET GLOBAL {quoted} = {}", DuckDb.text(value)),
        (None, _) => format!("RESET GLOBAL {quoted}"),
    }
}
