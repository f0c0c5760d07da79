//! The trash in the engine's file: tables under our names, with their details in a table beside the records.
//!
//! A table comes and goes by a rename, which reads no rows. Every move is part of the transaction that makes it necessary.
//! The notes of its partitions belong to the build meanwhile, as if that were a resource.
//!
//! Invariants:
//! 1. A table whose name is one of the trash is no output, whatever its tag says.
//! 2. What is known in [`Names`](super::names::Names) stands in both tables of the engine.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::SystemTime;

use uuid::Uuid;

use watershed_dialect::{DuckDb, Quoting as _};

use super::names::{Edit, Noted};
use super::schema::{self, qualified};
use super::sys::{ColumnValue, Param};
use super::transaction::Work;
use crate::olap::{Failure, Tag, Thrown, Trashed, Value, trash_table};

const IS_THERE: &str = "SELECT 1 FROM duckdb_tables() WHERE database_name = current_database() \
    AND schema_name = '_watershed' AND table_name = 'trash'";

/// Query for all notes of the trash.
const ROWS: &str = "SELECT build, uid, name, why, at_ms, row_count, size_bytes, protected, record \
    FROM _watershed.trash";

/// Condition for those whose table exists; `doctor` handles the others.
const OF_TABLES: &str = " WHERE '_watershed_trash_' || replace(build::VARCHAR, '-', '') IN \
    (SELECT table_name FROM duckdb_tables() WHERE database_name = current_database() AND schema_name = 'main') \
    ORDER BY at_ms, build";

/// Drops tables in the trash and their details.
pub(super) fn let_go(work: &Work<'_>, builds: &[Uuid]) -> Result<(), Failure> {
    for build in builds {
        let table = qualified(&trash_table(*build));
        work.run(&format!("DROP TABLE IF EXISTS {table}"), &[])?;
        work.run(
            "DELETE FROM _watershed.partitions WHERE uid = ?",
            &[Param::Text(&build.to_string())],
        )?;
    }
    forget(work, builds)
}

/// Returns the changes of the known schema after outputs were removed from the trash.
pub(super) fn gone(builds: &[Uuid]) -> impl Iterator<Item = Edit> {
    builds
        .iter()
        .flat_map(|build| [Edit::TakenBack(*build), Edit::Whole(*build)])
}

/// Deletes the details of outputs that are no longer in the trash.
pub(super) fn forget(work: &Work<'_>, builds: &[Uuid]) -> Result<(), Failure> {
    if builds.is_empty() {
        return Ok(());
    }
    let builds: Vec<String> = builds.iter().map(|build| format!("'{build}'")).collect();
    let delete = format!(
        "DELETE FROM _watershed.trash WHERE build IN ({})",
        builds.join(", ")
    );
    work.run(&delete, &[]).map(drop)
}

/// Completes and writes the details of tables that were moved to the trash, including their records, all at once:
/// separate statements would cost more than the moves.
pub(super) fn note(work: &Work<'_>, mut thrown: Vec<&mut Trashed>) -> Result<(), Failure> {
    if thrown.is_empty() {
        return Ok(());
    }
    let tags: Vec<Tag> = thrown.iter().map(|trashed| trashed.tag).collect();
    let mut recorded = schema::read_records(work, &tags)?;
    for trashed in &mut thrown {
        if let Some((rows, record)) = recorded.remove(&trashed.tag) {
            (trashed.rows, trashed.record) = (rows, Some(Arc::from(record)));
        }
    }
    let thrown: Vec<&Trashed> = thrown.into_iter().map(|trashed| &*trashed).collect();
    write(work, &thrown)
}

/// Writes the details of tables in the trash.
pub(super) fn write(work: &Work<'_>, thrown: &[&Trashed]) -> Result<(), Failure> {
    let ids = thrown
        .iter()
        .map(|Trashed { tag, .. }| [tag.build.to_string(), tag.uid.to_string()]);
    let ids: Vec<[String; 2]> = ids.collect();
    let rows = thrown.iter().zip(&ids).map(|(trashed, ids)| row(trashed, ids));
    let rows: Vec<_> = rows.collect();
    work.append("trash", rows.iter().map(<[_; 9]>::as_slice))
}

fn row<'a>(trashed: &'a Trashed, [build, uid]: &'a [String; 2]) -> [ColumnValue<'a>; 9] {
    let record = trashed.record.as_deref();
    [
        ColumnValue::Text(build),
        ColumnValue::Text(uid),
        ColumnValue::Text(&trashed.name),
        ColumnValue::Text(trashed.why.as_str()),
        ColumnValue::Number(trashed.at_ms),
        ColumnValue::number(trashed.rows),
        ColumnValue::number(trashed.bytes),
        ColumnValue::Flag(trashed.protected),
        record.map_or(ColumnValue::Null, ColumnValue::Blob),
    ]
}

/// Returns the owners of records and of notes of partitions, and the outputs in the trash.
pub(super) fn read_noted(work: &Work<'_>) -> Result<Noted, Failure> {
    Ok(Noted {
        trash: read(work)?,
        ..schema::read_noted(work)?
    })
}

fn is_there(work: &Work<'_>) -> Result<bool, Failure> {
    match work.lake() {
        Some(_) => schema::is_set_up(work),
        None => Ok(!work.run(IS_THERE, &[])?.is_empty()),
    }
}

/// Returns all outputs in the trash; none if the file is older than the trash.
pub(super) fn read(work: &Work<'_>) -> Result<Vec<Trashed>, Failure> {
    if !is_there(work)? {
        return Ok(Vec::new());
    }
    if let Some(lake) = work.lake() {
        let objects = lake
            .snapshot(work.connection())
            .and_then(|snapshot| lake.objects(work.connection(), snapshot));
        let tables: BTreeSet<String> = objects
            .map_err(|raw| work.fail(&raw, None))?
            .into_iter()
            .map(|it| it.name)
            .collect();
        let rows = work.run(&format!("{ROWS} ORDER BY at_ms, build"), &[])?;
        let all = rows.into_iter().filter_map(from_row);
        return Ok(all
            .filter(|it| tables.contains(&trash_table(it.tag.build)))
            .collect());
    }
    let rows = work.run(&format!("{ROWS}{OF_TABLES}"), &[])?;
    Ok(rows.into_iter().filter_map(from_row).collect())
}

/// Returns the builds in the notes of the trash, with the former names of their outputs.
pub(super) fn builds(work: &Work<'_>) -> Result<Vec<(Uuid, String)>, Failure> {
    if !is_there(work)? {
        return Ok(Vec::new());
    }
    let rows = work.run(
        "SELECT build, name FROM _watershed.trash ORDER BY name, build",
        &[],
    )?;
    let pair = |row: Vec<Value>| match <[Value; 2]>::try_from(row).ok()? {
        [build, Value::Text(name)] => Some((Uuid::try_parse(&build.to_string()).ok()?, name)),
        _ => None,
    };
    Ok(rows.into_iter().filter_map(pair).collect())
}

fn from_row(row: Vec<Value>) -> Option<Trashed> {
    let [
        build,
        uid,
        Value::Text(name),
        Value::Text(why),
        Value::Integer(at),
        rows,
        bytes,
        Value::Boolean(protected),
        record,
    ] = <[Value; 9]>::try_from(row).ok()?
    else {
        return None;
    };
    let id = |value: Value| Uuid::try_parse(&value.to_string()).ok();
    let number = |value: Value| match value {
        Value::Integer(number) => u64::try_from(number).ok(),
        _ => None,
    };
    Some(Trashed {
        tag: Tag {
            uid: id(uid)?,
            build: id(build)?,
        },
        name,
        why: Thrown::ALL.into_iter().find(|known| known.as_str() == why)?,
        at_ms: i64::try_from(at).ok()?,
        rows: number(rows),
        bytes: number(bytes),
        record: match record {
            Value::Blob(bytes) => Some(Arc::from(bytes)),
            _ => None,
        },
        protected,
    })
}

/// Returns the size of a table in the file in bytes. Rows that are only in the log count uncompressed.
pub(super) fn measure(work: &Work<'_>, table: &str) -> Result<u64, Failure> {
    if let Some(lake) = work.lake() {
        let bytes = lake.bytes(work.connection(), Some(table));
        return bytes.map_err(|raw| work.fail(&raw, None));
    }
    let sql = format!(
        "SELECT (coalesce(count(DISTINCT block_id) FILTER (persistent), 0) \
         * (SELECT max(block_size) FROM pragma_database_size() WHERE database_name = current_database()) \
         + coalesce(sum(count) FILTER (NOT persistent), 0) * 16)::BIGINT FROM pragma_storage_info({})",
        DuckDb.text(&qualified(table))
    );
    Ok(schema::count(&work.run(&sql, &[])?).unwrap_or_default())
}

/// Returns the current time, in milliseconds since 1970.
pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
