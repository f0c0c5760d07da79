//! The trash in the engine's file: tables under names of ours, and what is known of each in a table beside the records.
//!
//! A table comes and goes by a rename, which reads no rows. Every move is part of the transaction that makes it necessary.
//! The notes of its partitions belong to the build meanwhile, as if that were a resource.
//!
//! Invariants:
//! 1. A table whose name is one of the trash is no output, whatever its tag says.
//! 2. What is known in [`Names`](super::names::Names) stands in both tables of the engine.

use std::sync::Arc;
use std::time::SystemTime;

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::engine::Engine;
use super::names::{Edit, Entry, Names};
use super::partitions;
use super::schema::{self, qualified};
use super::sys::Param;
use super::work::Work;
use crate::olap::{Failure, OutputKind, Tag, Thrown, TrashLimits, Trashed, Value, quote_literal, trash_table};
use crate::sync::Unpoisoned;

/// Outputs of one resource that builds took the place of: a few edits on one branch, and the way back to another.
pub(super) const MOST_REPLACED: usize = 10;

pub(super) const TABLE: &str = "CREATE TABLE IF NOT EXISTS _watershed.trash \
     (build UUID NOT NULL, uid UUID NOT NULL, name VARCHAR NOT NULL, why VARCHAR NOT NULL, at_ms BIGINT NOT NULL, \
      row_count BIGINT, size_bytes BIGINT, protected BOOLEAN NOT NULL, record BLOB)";

const IS_THERE: &str = "SELECT 1 FROM duckdb_tables() WHERE database_name = current_database() \
    AND schema_name = '_watershed' AND table_name = 'trash'";

/// Those alone whose table stands; the others are for `doctor`.
const ALL: &str = "SELECT build, uid, name, why, at_ms, row_count, size_bytes, protected, record \
    FROM _watershed.trash WHERE '_watershed_trash_' || replace(build::VARCHAR, '-', '') IN \
    (SELECT table_name FROM duckdb_tables() WHERE database_name = current_database() AND schema_name = 'main') \
    ORDER BY at_ms, build";

impl Engine {
    /// Everything in the trash, the latest last.
    pub(super) async fn list_trash(&self, cancel: &CancellationToken) -> Result<Vec<Trashed>, Failure> {
        if self.options().access == super::Access::ReadOnly {
            return self
                .work(cancel, super::engine::Company::Others, |work| read(work))
                .await;
        }
        if !self.is_open() {
            self.open(cancel).await?;
        }
        let mut all: Vec<Trashed> = self.names().trash().cloned().collect();
        all.sort_by_key(|it| (it.at_ms, it.tag));
        Ok(all)
    }

    /// Sets the bounds of the trash, by which it is tidied from now on.
    pub fn limit_trash(&self, limits: TrashLimits) {
        *self.trash_lock().lock().unpoisoned() = Some(limits);
    }

    /// The bounds of the trash: those that were set, or the usual ones.
    pub(super) fn trash_limits(&self) -> TrashLimits {
        self.set_trash_limits().unwrap_or_default()
    }

    pub(super) fn set_trash_limits(&self) -> Option<TrashLimits> {
        *self.trash_lock().lock().unpoisoned()
    }
}

/// A table that goes to the trash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Throw {
    pub(super) entry: Entry,
    pub(super) tag: Tag,
    pub(super) why: Thrown,
    pub(super) bytes: Option<u64>,
    pub(super) protected: bool,
    /// Its owner has notes of partitions.
    pub(super) partitioned: bool,
}

impl Throw {
    /// Moves the table, with what is known of it.
    pub(super) fn carry_out(&self, work: &Work<'_>) -> Result<Trashed, Failure> {
        let Self { entry, tag, .. } = self;
        schema::rename_object(work, entry, *tag, &trash_table(tag.build))?;
        let recorded = schema::read_record(work, *tag)?;
        let (rows, record) = recorded.map_or((None, None), |(rows, record)| (rows, Some(record)));
        let trashed = Trashed {
            tag: *tag,
            name: entry.name.clone(),
            why: self.why,
            at_ms: now_ms(),
            rows,
            bytes: self.bytes,
            record: record.map(Arc::from),
            protected: self.protected,
        };
        write(work, &trashed)?;
        if self.partitioned {
            partitions::lay_aside(work, tag.uid, tag.build)?;
        }
        Ok(trashed)
    }

    /// The edits of the schema once that is committed.
    pub(super) fn edits(&self, trashed: Trashed) -> Vec<Edit> {
        let build = trashed.tag.build;
        let mut edits = vec![
            Edit::Remove(super::names::Folded::new(&self.entry.name)),
            Edit::Thrown(trashed),
        ];
        if self.partitioned {
            edits.push(Edit::Partitioned(build));
        }
        edits
    }
}

/// The outputs of the trash that were made by the builds of tables which are to go there: they hold the same.
pub(super) fn doubles(names: &Names, throw: &[Throw]) -> Vec<Uuid> {
    let builds = throw.iter().map(|throw| throw.tag.build);
    builds.filter(|build| names.trashed(*build).is_some()).collect()
}

/// Gives a table of the trash its place among the outputs. Its partitions come with it.
pub(super) fn take_back(
    work: &Work<'_>,
    trashed: &Trashed,
    (to, tag): (&str, Tag),
    partitioned: bool,
) -> Result<(), Failure> {
    let entry = Entry {
        name: trash_table(trashed.tag.build),
        kind: OutputKind::Table,
        tag: Some(trashed.tag),
    };
    schema::rename_object(work, &entry, tag, to)?;
    forget_row(work, trashed.tag.build)?;
    if partitioned {
        partitions::give(work, trashed.tag.build, tag.uid)?;
    }
    Ok(())
}

/// Lets go of tables of the trash, with all that is known of them.
pub(super) fn let_go(work: &Work<'_>, builds: &[Uuid]) -> Result<(), Failure> {
    for build in builds {
        let table = qualified(&trash_table(*build));
        work.run(&format!("DROP TABLE IF EXISTS {table}"), &[])?;
        forget_row(work, *build)?;
        work.run(
            "DELETE FROM _watershed.partitions WHERE uid = ?",
            &[Param::Text(&build.to_string())],
        )?;
    }
    Ok(())
}

/// The edits of the schema once they are gone.
pub(super) fn gone(builds: &[Uuid]) -> impl Iterator<Item = Edit> {
    builds
        .iter()
        .flat_map(|build| [Edit::TakenBack(*build), Edit::Whole(*build)])
}

pub(super) fn forget_row(work: &Work<'_>, build: Uuid) -> Result<(), Failure> {
    work.run(
        "DELETE FROM _watershed.trash WHERE build = ?",
        &[Param::Text(&build.to_string())],
    )
    .map(drop)
}

/// Writes what is known of a table in the trash.
pub(super) fn write(work: &Work<'_>, trashed: &Trashed) -> Result<(), Failure> {
    let number = |number: Option<u64>| number.map_or_else(|| "NULL".to_owned(), |number| number.to_string());
    let insert = format!(
        "INSERT INTO _watershed.trash VALUES (?, ?, ?, {}, {}, {}, {}, {}, {})",
        quote_literal(trashed.why.as_str()),
        trashed.at_ms,
        number(trashed.rows),
        number(trashed.bytes),
        trashed.protected,
        if trashed.record.is_some() { "?" } else { "NULL" },
    );
    let (build, uid) = (trashed.tag.build.to_string(), trashed.tag.uid.to_string());
    let mut params = vec![
        Param::Text(&build),
        Param::Text(&uid),
        Param::Text(&trashed.name),
    ];
    params.extend(trashed.record.as_deref().map(Param::Blob));
    work.run(&insert, &params).map(drop)
}

/// Everything in the trash of a file, which may be older than its table.
pub(super) fn read(work: &Work<'_>) -> Result<Vec<Trashed>, Failure> {
    if work.run(IS_THERE, &[])?.is_empty() {
        return Ok(Vec::new());
    }
    let rows = work.run(ALL, &[])?;
    Ok(rows.into_iter().filter_map(of_row).collect())
}

fn of_row(row: Vec<Value>) -> Option<Trashed> {
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

/// Bytes of a table in the file. Rows that are in the log alone are counted as if nothing made them smaller.
pub(super) fn measure(work: &Work<'_>, table: &str) -> Result<u64, Failure> {
    let sql = format!(
        "SELECT (coalesce(count(DISTINCT block_id) FILTER (persistent), 0) \
         * (SELECT max(block_size) FROM pragma_database_size() WHERE database_name = current_database()) \
         + coalesce(sum(count) FILTER (NOT persistent), 0) * 16)::BIGINT FROM pragma_storage_info({})",
        quote_literal(&qualified(table))
    );
    Ok(schema::count(&work.run(&sql, &[])?).unwrap_or_default())
}

/// The time now, milliseconds since the epoch.
pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
