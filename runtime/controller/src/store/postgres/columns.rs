//! How a row of the catalog stands in its columns: as in SQLite, with Postgres's own types for uids and flags.
//!
//! Postgres takes no NUL in text. JSON escapes it by itself; in kinds and names it is written `\0`, and `\` as `\\`.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::Row as _;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::{Arguments, Postgres};
use uuid::Uuid;
use watershed_core::{
    Epoch, Error, Kind, Name, Refreshes, Revision, Row, SpecVersion, StateVersion, StoredRow, Timestamp, Uid,
};

use super::super::ColumnError;

/// Binds one array for each column, in their order.
pub(super) fn bind(rows: &[&Row], arguments: &mut PgArguments) -> Result<(), ColumnError> {
    let columns = &mut Columns { rows, arguments };
    columns.add(|row| Ok(row.uid.0))?;
    columns.add(|row| Ok(escaped(row.kind.as_str())))?;
    columns.add(|row| Ok(escaped(row.name.as_str())))?;
    columns.add(|row| json(&row.refs))?;
    columns.add(|row| Ok(row.owner.map(|owner| owner.0)))?;
    columns.add(|row| json(&row.paths))?;
    columns.add(|row| json(&row.labels))?;
    columns.add(|row| json(&row.marks))?;
    columns.add(|row| Ok(integer(row.revision.0)))?;
    columns.add(|row| Ok(integer(row.spec_version.0)))?;
    columns.add(|row| Ok(integer(row.state_version.0)))?;
    columns.add(|row| row.error.as_ref().map(json).transpose())?;
    columns.add(|row| Ok(row.next_reconcile.map(|time| time.0)))?;
    columns.add(|row| Ok(i64::from(row.attempts)))?;
    columns.add(|row| Ok(row.paused))?;
    columns.add(|row| Ok(row.hidden))?;
    columns.add(|row| Ok(integer(row.refreshes.plain)))?;
    columns.add(|row| Ok(integer(row.refreshes.full)))?;
    columns.add(|row| Ok(row.created_at.0))?;
    columns.add(|row| Ok(row.updated_at.0))?;
    columns.add(|row| Ok(i64::from(row.spec_format)))?;
    columns.add(|row| Ok(i64::from(row.state_format)))?;
    columns.add(|row| Ok(integer(row.runs_total)))?;
    columns.add(|row| row.last_run.as_ref().map(json).transpose())?;
    columns.add(|row| Ok(row.last_success.map(|time| time.0)))?;
    columns.add(|row| Ok(row.spec.to_vec()))?;
    columns.add(|row| Ok(row.state.as_deref().map(<[u8]>::to_vec)))?;
    columns.add(|row| row.retry.as_ref().map(json).transpose())
}

/// Rows on their way into arrays.
struct Columns<'a> {
    rows: &'a [&'a Row],
    arguments: &'a mut PgArguments,
}

impl Columns<'_> {
    fn add<T>(&mut self, value: impl Fn(&Row) -> Result<T, ColumnError>) -> Result<(), ColumnError>
    where
        Vec<T>: for<'q> sqlx::Encode<'q, Postgres> + sqlx::Type<Postgres>,
    {
        let values: Vec<T> = self.rows.iter().map(|row| value(row)).collect::<Result<_, _>>()?;
        self.arguments.add(values)
    }
}

/// Reads the columns of a row.
///
/// A row without a readable identity is an error of the whole catalog. Where another column can't be read, the row
/// comes without it and says so, and the controller leaves what is stored as it is.
pub(super) fn read(row: &PgRow) -> Result<StoredRow, ColumnError> {
    let mut tolerance = Tolerance::default();
    let read = Row {
        uid: Uid(row.try_get(0)?),
        kind: Kind::new(unescaped(row.try_get(1)?)),
        name: Name::new(unescaped(row.try_get(2)?)),
        refs: tolerance.json(row, 3, "refs"),
        owner: row.try_get::<Option<Uuid>, _>(4)?.map(Uid),
        paths: tolerance.json(row, 5, "paths"),
        labels: tolerance.json(row, 6, "labels"),
        marks: tolerance.json(row, 7, "marks"),
        revision: Revision(natural(row, 8)?),
        spec_version: SpecVersion(natural(row, 9)?),
        state_version: StateVersion(natural(row, 10)?),
        error: tolerance.optional_json(row, 11, "error"),
        next_reconcile: row.try_get::<Option<i64>, _>(12)?.map(Timestamp),
        attempts: u32::try_from(row.try_get::<i64, _>(13)?)?,
        retry: tolerance.optional_json(row, 27, "retry"),
        paused: row.try_get(14)?,
        hidden: row.try_get(15)?,
        refreshes: Refreshes {
            plain: natural(row, 16)?,
            full: natural(row, 17)?,
        },
        created_at: Timestamp(row.try_get(18)?),
        updated_at: Timestamp(row.try_get(19)?),
        spec_format: u32::try_from(row.try_get::<i64, _>(20)?)?,
        state_format: u32::try_from(row.try_get::<i64, _>(21)?)?,
        runs_total: natural(row, 22)?,
        last_run: tolerance.optional_json(row, 23, "last_run"),
        last_success: row.try_get::<Option<i64>, _>(24)?.map(Timestamp),
        spec: row.try_get::<&[u8], _>(25)?.into(),
        state: row.try_get::<Option<&[u8]>, _>(26)?.map(Arc::from),
    };
    Ok(StoredRow {
        row: Arc::new(read),
        unreadable: tolerance.unreadable,
    })
}

/// Remembers the first column that could not be read.
#[derive(Default)]
struct Tolerance {
    unreadable: Option<Error>,
}

impl Tolerance {
    fn json<T: DeserializeOwned + Default>(&mut self, row: &PgRow, column: usize, name: &str) -> T {
        self.optional_json(row, column, name).unwrap_or_default()
    }

    fn optional_json<T: DeserializeOwned>(&mut self, row: &PgRow, column: usize, name: &str) -> Option<T> {
        let read = || {
            let text: Option<&str> = row.try_get(column)?;
            text.map(serde_json::from_str)
                .transpose()
                .map_err(ColumnError::from)
        };
        read().unwrap_or_else(|error| {
            let message = format!("column `{name}` can't be read: {error}");
            self.unreadable
                .get_or_insert_with(|| Error::permanent("unreadable", message));
            None
        })
    }
}

pub(super) fn json<T: Serialize>(value: &T) -> Result<String, ColumnError> {
    Ok(serde_json::to_string(value)?)
}

/// Text without NUL.
pub(super) fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\0', "\\0")
}

fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, letter == '\\') {
            (_, false) => plain.push(letter),
            (_, true) => plain.push(if letters.next() == Some('0') { '\0' } else { '\\' }),
        }
    }
    plain
}

/// Postgres's integers have a sign; counters never come near it.
pub(super) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn natural(row: &PgRow, column: usize) -> Result<u64, ColumnError> {
    Ok(u64::try_from(row.try_get::<i64, _>(column)?)?)
}

/// An epoch from its column.
pub(super) fn epoch(row: &PgRow, column: usize) -> Result<Epoch, ColumnError> {
    natural(row, column).map(Epoch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_whatever_is_in_them() {
        for name in ["", "plain", "a\0b", "\\0", "\\", "\0\\\0", "ü\\n"] {
            assert!(!escaped(name).contains('\0'));
            assert_eq!(unescaped(&escaped(name)), name);
        }
    }
}
