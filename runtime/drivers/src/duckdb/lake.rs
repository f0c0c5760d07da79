//! A lake as the home of an engine: attached to an engine in memory, and written by one owner at a time.
//!
//! | part | contents |
//! |---|---|
//! | `opening` | attaching, and what a new lake is given |
//! | `catalog` | names, comments and snapshots, from the tables of the lake's own catalog |
//! | `definitions` | views and macros, and what they lead to |
//! | `epoch` | who may write: `take`, and the look at the start of each transaction |
//! | `copies` | copies of its catalog, for backups |
//! | `commit` | how a transaction ended, whatever the connection says |
//! | `keeping` | what is kept for a while, and what goes then |
//! | `partial` | what could not be finished for want of room |
//! | `server` | a look at the newest snapshot without the engine |
//! | `types` | types that lakes lack, and those that stand for them |
//! | `views` | what a view reads besides the lake |
//!
//! Invariants:
//! 1. Every transaction that changes the lake reads the newest epoch and appends to `_watershed.records`; a take does so too,
//!    and changes the comment of that table. So of a transaction and a take at the same time only one is committed, and
//!    nothing is written under an epoch after a higher one was taken.
//! 2. One transaction of this engine writes at a time (`Lake::writer`). What is planned for it holds for the snapshot that was
//!    known then: a transaction that begins on another one is given up before it changes anything.
//! 3. No commit is tried twice. Its first try is refused by the catalog's own database if anybody committed since the
//!    transaction began, for both change what the catalog says of the records. A second try would be held against the snapshots
//!    since, and whoever expires those takes the reason away for which it is to be refused.

mod catalog;
mod commit;
mod copies;
mod definitions;
mod epoch;
mod keeping;
mod opening;
pub(super) mod partial;
mod server;
mod types;
mod views;

use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::{Mutex as Turns, OwnedMutexGuard};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_dialect::{DuckDb, Quoting as _};
use watershed_locks::Unpoisoned;

use super::sys::{Answer, ColumnValue, Connection, Param, RawError};
use crate::olap::{DatabaseCause, DatabaseError, Failure, LakeHome, SqlError, Stamp, System, Value};

pub(super) use catalog::Named;
pub(super) use copies::{copy_catalog, lost_tables, restore_catalog};
pub(super) use definitions::may_read;
pub(super) use epoch::Begun;
pub(super) use keeping::{Keeping, OldBefore};
pub(super) use server::look_at_server;
pub(super) use types::{Held, held};
pub(super) use views::foreign_input;

/// Name of the attached lake in the engine.
pub(super) const ALIAS: &str = "watershed";

/// Class of the error of a transaction that lost against another one.
const CONFLICT: &str = "lake-conflict";

/// The most attempts of one change while others change the lake.
pub(super) const MOST_TRIES: u32 = 8;

/// The most rows that one statement appends.
const ROWS_AT_ONCE: usize = 100;

/// Bits of a record's number that count within a transaction, below those of its snapshot.
const WITHIN: u32 = 20;

/// A lake, with what this engine knows of it.
pub(super) struct Lake {
    home: LakeHome,
    /// Id of this engine among those that write to the lake.
    owner: Uuid,
    known: Mutex<Known>,
    writer: Arc<Turns<()>>,
}

/// The knowledge of an engine about its lake.
#[derive(Debug, Default)]
struct Known {
    /// Newest epoch when the lake was opened; none before the first take.
    newest: Option<u64>,
    /// Epoch under which this engine writes; none before the first take.
    epoch: Option<u64>,
    /// Epoch to take before the next change; none for the one held, or the next.
    told: Option<u64>,
    /// True if the epoch must be taken before the next change.
    must_take: bool,
    /// Newest snapshot as the catalog's server told it; none if it was not asked.
    looked: Option<i64>,
    /// Snapshot that the known names are of; none if they must be read.
    snapshot: Option<i64>,
}

/// The permission to write to a lake, released when dropped.
pub(super) type WriterTurn = OwnedMutexGuard<()>;

/// The reason for which a lake did not do what it was asked to.
#[derive(Debug)]
pub(super) enum Stop {
    /// The engine refused a statement.
    Raw(RawError),
    /// Another owner has taken the lake.
    Fenced,
    /// Somebody else changed the lake at the same time, and nothing was done.
    Conflict,
    /// The transaction was rolled back, although its commit was not refused.
    RolledBack,
    /// The connection ended before anybody knew how the transaction did.
    Unknown(RawError),
    /// Any other failure.
    Failed(Failure),
}

impl From<RawError> for Stop {
    fn from(raw: RawError) -> Self {
        Self::Raw(raw)
    }
}

impl Stop {
    /// Converts the reason to a failure; `failed` converts errors of the engine.
    pub(super) fn into_failure(self, failed: impl Fn(&RawError) -> Failure) -> Failure {
        let sql = |class: &str, message: &str| {
            Failure::Sql(SqlError {
                class: class.to_owned(),
                message: message.to_owned(),
                ..SqlError::default()
            })
        };
        match self {
            Self::Raw(raw) => failed(&raw),
            Self::Fenced => Failure::Fenced,
            Self::Conflict => sql(CONFLICT, "somebody else changed the lake at the same time"),
            Self::RolledBack => sql("transaction", "the transaction was rolled back"),
            Self::Unknown(raw) => Failure::Unknown {
                message: failed(&raw).to_string(),
            },
            Self::Failed(failure) => failure,
        }
    }
}

/// Returns true if a transaction lost against another one and may be tried again.
pub(super) fn is_conflict(failure: &Failure) -> bool {
    matches!(failure, Failure::Sql(error) if error.class == CONFLICT)
}

impl Lake {
    pub(super) fn new(home: LakeHome) -> Self {
        Self {
            home,
            owner: Uuid::new_v4(),
            known: Mutex::default(),
            writer: Arc::default(),
        }
    }

    /// Waits until no other work of this engine writes to the lake.
    ///
    /// # Cancel safety
    /// Dropping the future gives the place in the queue back.
    pub(super) async fn writer(&self, cancel: &CancellationToken) -> Result<WriterTurn, Failure> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Failure::Interrupted),
            turn = Arc::clone(&self.writer).lock_owned() => Ok(turn),
        }
    }

    /// Returns a stamp of the lake's data that no other lake has.
    pub(super) fn stamp(&self, data: &Stamp) -> Stamp {
        let LakeHome { database, project } = &self.home;
        // Whose password it is makes no difference to the data.
        let login = database.login.iter().filter(|(option, _)| *option != "PASSWORD");
        let login: Vec<_> = login.collect();
        let place = format!("{} {login:?} {:?} {project}", database.target, database.lake);
        let hash = blake3::hash(place.as_bytes()).to_hex();
        Stamp::new(format!(r#"{{"lake":"{hash}","data":{}}}"#, data.as_str()))
    }

    /// Returns the file of the lake's catalog; none if a server has it.
    pub(super) fn file(&self) -> Option<&std::path::Path> {
        self.home.database.file()
    }

    /// Notes the snapshot of which the names are known.
    pub(super) fn know(&self, snapshot: i64) {
        self.known().snapshot = Some(snapshot);
    }

    /// Returns the snapshot of which the names are known.
    pub(super) fn known_snapshot(&self) -> Option<i64> {
        self.known().snapshot
    }

    /// Returns the newest snapshot as the catalog's server told it; none if it was not asked.
    pub(super) fn looked(&self) -> Option<i64> {
        self.known().looked
    }

    /// Returns the failure of a connection to the catalog that is gone; none for other failures. Nothing was done then.
    pub(super) fn lost(&self, failure: &Failure) -> Option<Failure> {
        let message = match failure {
            Failure::Sql(error) => &error.message,
            Failure::Fatal { message } => message,
            _ => return None,
        };
        commit::is_lost(message).then(|| {
            Failure::Database(DatabaseError {
                connector: self.home.database.connector.clone(),
                cause: DatabaseCause::Other,
                message: self.hide(message),
            })
        })
    }

    /// Removes settings of the catalog's connection, which may contain a password, from a message.
    pub(super) fn hide(&self, message: &str) -> String {
        self.home.database.hide(message)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unpoisoned()
    }

    /// Returns the quoted name of a table of the lake's own catalog.
    fn own_table(&self, table: &str) -> String {
        DuckDb.path(&[&format!("__ducklake_metadata_{ALIAS}"), self.schema(), table])
    }

    /// Returns the schema of the catalog in its database.
    fn schema(&self) -> &str {
        let lake = self.home.database.lake.as_ref();
        let usual = match self.home.database.keeper() {
            System::Postgres => "public",
            _ => "main",
        };
        lake.and_then(|lake| lake.schema.as_deref()).unwrap_or(usual)
    }
}

/// Appends rows to one of our tables, as a statement: the engine's appender knows no lakes.
pub(super) fn append<'r>(
    connection: &Connection,
    table: &str,
    rows: impl IntoIterator<Item = &'r [ColumnValue<'r>]>,
) -> Result<(), RawError> {
    let rows: Vec<&[ColumnValue<'_>]> = rows.into_iter().collect();
    for some in rows.chunks(ROWS_AT_ONCE) {
        let places = some
            .iter()
            .map(|row| format!("({})", vec!["?"; row.len()].join(", ")));
        let places: Vec<String> = places.collect();
        let values = some.iter().flat_map(|row| row.iter()).map(|value| match *value {
            ColumnValue::Null => Param::Null,
            ColumnValue::Number(number) => Param::Integer(number),
            ColumnValue::Flag(flag) => Param::Boolean(flag),
            ColumnValue::Text(text) => Param::Text(text),
            ColumnValue::Blob(bytes) => Param::Blob(bytes),
        });
        let values: Vec<Param<'_>> = values.collect();
        let insert = format!("INSERT INTO _watershed.{table} VALUES {}", places.join(", "));
        connection.run(&insert, &values).and_then(Answer::collect)?;
    }
    Ok(())
}

/// Runs a statement to its end.
fn run(connection: &Connection, sql: &str) -> Result<Vec<Vec<Value>>, RawError> {
    connection.run(sql, &[]).and_then(Answer::collect)
}

/// Returns a text as SQL.
fn quoted(text: &str) -> String {
    DuckDb.text(text)
}

/// Returns a name as SQL.
fn name(name: &str) -> String {
    DuckDb.name(name)
}

fn integer(value: Option<&Value>) -> Option<i64> {
    match value {
        Some(Value::Integer(number)) => i64::try_from(*number).ok(),
        _ => None,
    }
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}
