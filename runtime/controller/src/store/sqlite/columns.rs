//! How a row of the catalog stands in its columns.
//!
//! What is compared or searched has a column of a plain type; lists, maps and errors are JSON text with ordered keys,
//! so that a person can read them in any SQLite shell. Spec, state and the last run are blobs.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Arguments, Row as _};
use uuid::Uuid;
use watershed_core::{
    Epoch, Error, Kind, Name, Refreshes, Revision, Row, SpecVersion, StateVersion, StoredRow, Timestamp, Uid,
};

use super::super::ColumnError;

/// The columns of a resource after `instance` and `epoch`, in the order in which they are bound and read.
pub(super) const COLUMNS: [&str; 28] = [
    "uid",
    "kind",
    "name",
    "refs",
    "owner_uid",
    "paths",
    "labels",
    "marks",
    "revision",
    "spec_version",
    "state_version",
    "error",
    "next_reconcile",
    "attempts",
    "paused",
    "hidden",
    "refresh_plain",
    "refresh_full",
    "created_at",
    "updated_at",
    "spec_format",
    "state_format",
    "runs_total",
    "last_run",
    "last_success",
    "spec",
    "state",
    RETRY,
];

/// The one that came last: catalogs of earlier versions don't have it.
pub(super) const RETRY: &str = "retry";

/// Binds the columns of a row, in the order of [`COLUMNS`].
pub(super) fn bind(row: &Row, arguments: &mut SqliteArguments) -> Result<(), ColumnError> {
    arguments.add(uid_bytes(row.uid))?;
    arguments.add(row.kind.as_str())?;
    arguments.add(row.name.as_str())?;
    arguments.add(json(&row.refs)?)?;
    arguments.add(row.owner.map(uid_bytes))?;
    arguments.add(json(&row.paths)?)?;
    arguments.add(json(&row.labels)?)?;
    arguments.add(json(&row.marks)?)?;
    arguments.add(integer(row.revision.0))?;
    arguments.add(integer(row.spec_version.0))?;
    arguments.add(integer(row.state_version.0))?;
    arguments.add(row.error.as_ref().map(json).transpose()?)?;
    arguments.add(row.next_reconcile.map(|time| time.0))?;
    arguments.add(i64::from(row.attempts))?;
    arguments.add(row.paused)?;
    arguments.add(row.hidden)?;
    arguments.add(integer(row.refreshes.plain))?;
    arguments.add(integer(row.refreshes.full))?;
    arguments.add(row.created_at.0)?;
    arguments.add(row.updated_at.0)?;
    arguments.add(i64::from(row.spec_format))?;
    arguments.add(i64::from(row.state_format))?;
    arguments.add(integer(row.runs_total))?;
    arguments.add(row.last_run.as_ref().map(serde_json::to_vec).transpose()?)?;
    arguments.add(row.last_success.map(|time| time.0))?;
    arguments.add(&*row.spec)?;
    arguments.add(row.state.as_deref())?;
    arguments.add(row.retry.as_ref().map(json).transpose()?)
}

/// Reads the columns of a row.
///
/// A row without a readable identity is an error of the whole catalog. Where another column can't be read, the row
/// comes without it and says so, and the controller leaves what is stored as it is.
pub(super) fn read(row: &SqliteRow) -> Result<StoredRow, ColumnError> {
    let mut unreadable = None;
    let mut tolerate = |column: &'static str, error: serde_json::Error| {
        let message = format!("column `{column}` can't be read: {error}");
        unreadable.get_or_insert_with(|| Error::permanent("unreadable", message));
    };
    let refs = from_json(row, 3).unwrap_or_else(|e| default(&mut tolerate, "refs", e));
    let paths = from_json(row, 5).unwrap_or_else(|e| default(&mut tolerate, "paths", e));
    let labels = from_json(row, 6).unwrap_or_else(|e| default(&mut tolerate, "labels", e));
    let marks = from_json(row, 7).unwrap_or_else(|e| default(&mut tolerate, "marks", e));
    let error = optional_json(row, 11).unwrap_or_else(|e| default(&mut tolerate, "error", e));
    let last_run = optional_json(row, 23).unwrap_or_else(|e| default(&mut tolerate, "last_run", e));
    let retry = optional_json(row, 27).unwrap_or_else(|e| default(&mut tolerate, RETRY, e));
    let row = Row {
        uid: uid(row.try_get(0)?)?,
        kind: Kind::new(row.try_get::<&str, _>(1)?),
        name: Name::new(row.try_get::<&str, _>(2)?),
        refs,
        owner: row.try_get::<Option<&[u8]>, _>(4)?.map(uid).transpose()?,
        paths,
        labels,
        marks,
        revision: Revision(natural(row, 8)?),
        spec_version: SpecVersion(natural(row, 9)?),
        state_version: StateVersion(natural(row, 10)?),
        error,
        next_reconcile: row.try_get::<Option<i64>, _>(12)?.map(Timestamp),
        attempts: row.try_get(13)?,
        retry,
        paused: row.try_get(14)?,
        hidden: row.try_get(15)?,
        refreshes: Refreshes {
            plain: natural(row, 16)?,
            full: natural(row, 17)?,
        },
        created_at: Timestamp(row.try_get(18)?),
        updated_at: Timestamp(row.try_get(19)?),
        spec_format: row.try_get(20)?,
        state_format: row.try_get(21)?,
        runs_total: natural(row, 22)?,
        last_run,
        last_success: row.try_get::<Option<i64>, _>(24)?.map(Timestamp),
        spec: row.try_get::<&[u8], _>(25)?.into(),
        state: row.try_get::<Option<&[u8]>, _>(26)?.map(Arc::from),
    };
    Ok(StoredRow {
        row: Arc::new(row),
        unreadable,
    })
}

fn default<T: Default>(
    tolerate: &mut impl FnMut(&'static str, serde_json::Error),
    column: &'static str,
    error: serde_json::Error,
) -> T {
    tolerate(column, error);
    T::default()
}

/// JSON text. Maps of the core are ordered, so equal values have equal text.
pub(super) fn json<T: Serialize>(value: &T) -> Result<String, serde_json::Error> {
    serde_json::to_string(value)
}

fn from_json<T: DeserializeOwned>(row: &SqliteRow, column: usize) -> Result<T, serde_json::Error> {
    let bytes: &[u8] = row.try_get(column).map_err(serde::de::Error::custom)?;
    serde_json::from_slice(bytes)
}

fn optional_json<T: DeserializeOwned>(
    row: &SqliteRow,
    column: usize,
) -> Result<Option<T>, serde_json::Error> {
    let bytes: Option<&[u8]> = row.try_get(column).map_err(serde::de::Error::custom)?;
    bytes.map(serde_json::from_slice).transpose()
}

pub(super) fn uid_bytes(uid: Uid) -> Vec<u8> {
    uid.0.as_bytes().to_vec()
}

fn uid(bytes: &[u8]) -> Result<Uid, ColumnError> {
    Ok(Uid(Uuid::from_slice(bytes)?))
}

/// SQLite's integers have a sign; counters never come near it.
pub(super) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn natural(row: &SqliteRow, column: usize) -> Result<u64, ColumnError> {
    Ok(u64::try_from(row.try_get::<i64, _>(column)?)?)
}

/// An epoch from its column.
pub(super) fn epoch(row: &SqliteRow, column: usize) -> Result<Epoch, ColumnError> {
    natural(row, column).map(Epoch)
}
