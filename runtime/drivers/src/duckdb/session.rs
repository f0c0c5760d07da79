//! The start of connections: statements of connectors, and settings that migrations left.
//!
//! What acts upon the whole file or process (ATTACH, LOAD, CREATE, ...) is run when the file is opened, on its first
//! connection; everything else, SET above all, on each connection.

use std::sync::{Mutex, MutexGuard};

use watershed_locks::Unpoisoned;

use super::authorities::Authorities;
use super::confine;
use super::lake::Lake;
use super::options::Options;
use super::statements::each_statement;
use super::sys::Connection;
use super::traces;
use super::transaction::Work;
use crate::olap::{Access, Failure, Session, SoleError, SqlError, leading_words, sole_statement};

/// The statements and settings for the start of connections.
#[derive(Default)]
pub(super) struct Beginnings(Mutex<State>);

#[derive(Default)]
struct State {
    sessions: Vec<Session>,
    /// Statements that apply the settings which migrations left in the open file.
    settings: Vec<String>,
    authorities: Authorities,
}

/// The position of a connection among those of an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// First connection to a file.
    First,
    /// First connection to a read-only file: statements that would change the file fail and are skipped.
    Looking,
    /// Any later connection.
    Later,
}

impl Turn {
    fn first(access: Access) -> Self {
        match access {
            Access::ReadWrite => Self::First,
            Access::ReadOnly => Self::Looking,
        }
    }
}

/// First words of statements that affect the whole file or process, so that repeating them would fail or be wrong.
const ONCE: [&str; 12] = [
    "alter",
    "attach",
    "checkpoint",
    "copy",
    "create",
    "delete",
    "detach",
    "drop",
    "insert",
    "install",
    "load",
    "update",
];

/// The most words between CREATE and the name of an object.
const WORDS_BEFORE_NAME: usize = 4;

impl Beginnings {
    /// Replaces the statements of connectors. Returns true if they differ from the previous ones.
    pub(super) fn set(&self, sessions: Vec<Session>) -> bool {
        let mut state = self.state();
        let is_other = state.sessions != sessions;
        state.sessions = sessions;
        is_other
    }

    /// Checks whether certificate files have changed, and rewrites the bundle.
    pub(super) fn look(&self, options: &Options) {
        if let Err(error) = self.state().authorities.look(&options.path) {
            tracing::warn!(%error, "the engine goes on with the authorities of before");
        }
    }

    /// Initialises the first connection of newly opened data, and reads those: what `read` does, and the settings that
    /// migrations left there. The files of a lake may stand where a connector's login is needed, so its connectors come first.
    ///
    /// # Errors
    /// As [`begin`](Self::begin), and those of `read`.
    pub(super) fn begin_first(
        &self,
        connection: &Connection,
        options: &Options,
        lake: Option<&Lake>,
        read: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut state = self.state();
        let (turn, work) = (
            Turn::first(options.access),
            Work::uninterrupted(connection).in_lake(lake),
        );
        if lake.is_some() {
            state.begin_sessions(connection, turn, options)?;
        }
        read()?;
        state.read_settings(&work)?;
        if lake.is_none() {
            state.begin_sessions(connection, turn, options)?;
        }
        state.begin_settings(connection, options)
    }

    /// Initialises a later connection.
    ///
    /// # Errors
    /// [`Failure::Session`] when a connector's statements are at fault.
    pub(super) fn begin(&self, connection: &Connection, options: &Options) -> Result<(), Failure> {
        let mut state = self.state();
        state.begin_sessions(connection, Turn::Later, options)?;
        state.begin_settings(connection, options)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unpoisoned()
    }
}

impl State {
    fn read_settings(&mut self, work: &Work<'_>) -> Result<(), Failure> {
        self.settings.clear();
        if traces::is_set_up(work)? {
            let settings = traces::settings_of(work, None)?;
            self.settings = settings.iter().map(traces::Setting::set).collect();
        }
        Ok(())
    }

    /// Makes the engine trust the authorities that connectors name.
    fn trust(&mut self, work: &Work<'_>, options: &Options) {
        if options.sandbox.is_some() {
            // It reaches no server.
            return;
        }
        let trusted = match self.authorities.trust(&self.sessions, &options.path) {
            Ok(Some(statement)) => work.run(&statement, &[]).map_err(|error| error.to_string()),
            Ok(None) => Ok(Default::default()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = trusted {
            tracing::warn!(%error, "the engine can't trust the authorities of a `ca_cert_file`");
        }
    }

    /// Runs the statements of connectors.
    fn begin_sessions(
        &mut self,
        connection: &Connection,
        turn: Turn,
        options: &Options,
    ) -> Result<(), Failure> {
        let work = Work::uninterrupted(connection).confined(options);
        self.trust(&work, options);
        for session in &self.sessions {
            let sql = match turn {
                Turn::First | Turn::Looking => session.sql.clone(),
                Turn::Later => repeated(&session.sql),
            };
            match each_statement(&work, &sql) {
                Ok(()) => {}
                Err(error) if session.optional => {
                    tracing::warn!(%error, connector = session.connector, "the engine has no access by this connector");
                }
                Err(error) if turn == Turn::Looking => {
                    tracing::debug!(%error, connector = session.connector, "statements were left out");
                }
                Err(Failure::Sql(error)) => {
                    return Err(Failure::Session {
                        connector: session.connector.clone(),
                        error: Box::new(error),
                    });
                }
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }

    /// Makes the settings that migrations left.
    fn begin_settings(&self, connection: &Connection, options: &Options) -> Result<(), Failure> {
        let work = Work::uninterrupted(connection).confined(options);
        for setting in &self.settings {
            // An extension that is not loaded yet knows its own settings, and nobody else does.
            if let Err(error) = work.run(setting, &[]) {
                // Otherwise what is built would mean something else than it did.
                if let Failure::Sql(refused) = &error
                    && refused.class == confine::CLASS
                {
                    return Err(Failure::Sql(SqlError {
                        message: format!("{}, and a migration left it", refused.message),
                        ..refused.clone()
                    }));
                }
                tracing::debug!(%error, setting, "a setting could not be made");
            }
        }
        Ok(())
    }
}

/// Returns the statements of a text that every connection needs.
fn repeated(sql: &str) -> String {
    let mut kept = String::new();
    let mut rest = sql;
    loop {
        let (one, next) = match sole_statement(rest) {
            Ok(last) => (last, ""),
            Err(SoleError::Several { offset }) => (
                rest.get(..offset).unwrap_or(rest),
                rest.get(offset..).unwrap_or_default(),
            ),
            Err(SoleError::None) => return kept,
        };
        if !is_once(one) {
            kept.push_str(one);
            kept.push_str("\n;");
        }
        rest = next;
    }
}

fn is_once(statement: &str) -> bool {
    let mut words = leading_words(statement);
    let first = words.next().unwrap_or_default();
    let is_temporary = words
        .take(WORDS_BEFORE_NAME)
        .any(|word| word == "temp" || word == "temporary");
    ONCE.contains(&first.as_str()) && !is_temporary
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_statements_than_before_are_noticed() {
        let beginnings = Beginnings::default();
        let session = |sql: &str| Session {
            sql: sql.to_owned(),
            ..Session::default()
        };
        assert!(!beginnings.set(Vec::new()));
        assert!(beginnings.set(vec![session("SET x = 1")]));
        assert!(!beginnings.set(vec![session("SET x = 1")]));
        assert!(beginnings.set(vec![session("SET x = 2")]));
    }

    #[test]
    fn what_acts_upon_the_whole_file_is_run_once() {
        let sql = "SET threads = 2; -- comment\nATTACH 'a.db' AS a; CREATE OR REPLACE MACRO f() AS 1;\
                   CREATE TEMP MACRO g() AS 2; LOAD json; SET VARIABLE p = 'a;b'";
        let kept = repeated(sql);
        assert!(kept.contains("threads") && kept.contains("MACRO g") && kept.contains("'a;b'"));
        assert!(!kept.contains("ATTACH") && !kept.contains("MACRO f") && !kept.contains("LOAD"));
    }
}
