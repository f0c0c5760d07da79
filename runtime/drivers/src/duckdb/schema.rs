//! Our metadata in the engine's file: tags on the outputs, and records beside them.
//!
//! A record belongs to a build: it counts as long as the tag of an output names that build. Tag and record are
//! written in one transaction, so an output whose tag has no record was made by nobody of ours.
//!
//! In a lake records are appended, each with a number, and the one with an owner's highest number counts; one without content
//! says that there is none, and has the epoch in place of a number of rows. A row that is appended never conflicts with others, but with a take of the lake.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use watershed_dialect::{DuckDb, Quoting as _};

use super::lake::Named;
use super::names::{Entry, Names, Noted};
use super::sys::{ColumnValue, Param};
use super::transaction::Work;
use crate::olap::{Failure, Location, Output, OutputKind, Tag, Value, is_in_trash};

/// Name of the table with the records.
const RECORDS: &str = "records";

/// Statements that create our schema, and the records of a file.
const SETUP: [&str; 2] = [
    "CREATE SCHEMA IF NOT EXISTS _watershed",
    "CREATE TABLE IF NOT EXISTS _watershed.records \
     (uid UUID NOT NULL, build UUID NOT NULL, row_count BIGINT, record BLOB NOT NULL)",
];

/// Statements that create our other tables.
const TABLES: [&str; 4] = [
    "CREATE TABLE IF NOT EXISTS _watershed.partitions \
     (uid UUID NOT NULL, key VARCHAR NOT NULL, data VARCHAR NOT NULL, watermark VARCHAR, phase VARCHAR NOT NULL, \
      stage VARCHAR NOT NULL, number UBIGINT NOT NULL, at_ms BIGINT NOT NULL, took_ms UBIGINT NOT NULL, \
      row_count UBIGINT, error VARCHAR)",
    "CREATE TABLE IF NOT EXISTS _watershed.trash \
     (build UUID NOT NULL, uid UUID NOT NULL, name VARCHAR NOT NULL, why VARCHAR NOT NULL, at_ms BIGINT NOT NULL, \
      row_count BIGINT, size_bytes BIGINT, protected BOOLEAN NOT NULL, record BLOB)",
    "CREATE TABLE IF NOT EXISTS _watershed.failures \
     (uid UUID NOT NULL, table_name VARCHAR NOT NULL, test VARCHAR NOT NULL, tested_at TIMESTAMP NOT NULL, \
      number BIGINT NOT NULL, data VARCHAR NOT NULL)",
    "CREATE TABLE IF NOT EXISTS _watershed.trash_sightings (at_ms BIGINT NOT NULL)",
];

const OBJECTS: &str = "\
    SELECT table_name, 'table' AS kind, comment FROM duckdb_tables() \
    WHERE database_name = current_database() AND schema_name = 'main' AND NOT internal \
    UNION ALL \
    SELECT view_name, 'view', comment FROM duckdb_views() \
    WHERE database_name = current_database() AND schema_name = 'main' AND NOT internal";

/// Creates our schema if it is missing.
pub(super) fn set_up(work: &Work<'_>) -> Result<(), Failure> {
    match work.lake() {
        Some(lake) => lake.set_up(work.connection(), &TABLES),
        None => {
            let all = SETUP.iter().chain(&TABLES);
            all.into_iter().try_for_each(|sql| work.run(sql, &[]).map(drop))
        }
    }
}

/// Returns true if our tables are in the lake of a reader; a file has them where it is asked.
pub(super) fn is_set_up(work: &Work<'_>) -> Result<bool, Failure> {
    let there = work.lake().map(|lake| lake.is_set_up(work.connection()));
    there.unwrap_or(Ok(true)).map_err(|raw| work.fail(&raw, None))
}

/// Returns the records that count, as SQL.
fn records(work: &Work<'_>) -> &'static str {
    match work.lake() {
        None => "_watershed.records",
        Some(_) => {
            "(SELECT * FROM (SELECT * FROM _watershed.records \
             QUALIFY row_number() OVER (PARTITION BY uid ORDER BY number DESC) = 1) WHERE record IS NOT NULL)"
        }
    }
}

/// Returns all objects in the schema of outputs, except the trash.
pub(super) fn read_entries(work: &Work<'_>) -> Result<Vec<Entry>, Failure> {
    if let Some(lake) = work.lake() {
        let named = lake.snapshot(work.connection()).and_then(|snapshot| {
            let all = lake.objects(work.connection(), snapshot)?;
            Ok(all.into_iter().filter(|it| !is_in_trash(&it.name)))
        });
        let entry = |it: Named| Entry {
            name: it.name,
            kind: match it.is_view {
                true => OutputKind::View,
                false => OutputKind::Table,
            },
            tag: it.comment.as_deref().and_then(Tag::parse),
        };
        return Ok(named.map_err(|raw| work.fail(&raw, None))?.map(entry).collect());
    }
    let rows = work.run(OBJECTS, &[])?;
    Ok(rows
        .into_iter()
        .filter_map(|row| match <[Value; 3]>::try_from(row).ok()? {
            [Value::Text(name), _, _] if is_in_trash(&name) => None,
            [Value::Text(name), Value::Text(kind), comment] => {
                let kind = if kind == "view" {
                    OutputKind::View
                } else {
                    OutputKind::Table
                };
                let tag = match comment {
                    Value::Text(comment) => Tag::parse(&comment),
                    _ => None,
                };
                Some(Entry { name, kind, tag })
            }
            _ => None,
        })
        .collect())
}

/// Combines tagged objects with their records to outputs.
pub(super) fn read_outputs(work: &Work<'_>, tagged: Vec<(Entry, Tag)>) -> Result<Vec<Output>, Failure> {
    let mut records = select_records(work, "")?;
    Ok(tagged
        .into_iter()
        .map(|(Entry { name, kind, .. }, tag)| {
            let record = records.remove(&tag);
            let (rows, record) = record.map_or((None, None), |(rows, record)| (rows, Some(record)));
            Output {
                location: Location::named(name),
                kind,
                tag,
                record,
                rows,
            }
        })
        .collect())
}

/// The record that a build leaves beside its output.
#[derive(Clone, Copy)]
pub(super) struct Left<'a> {
    pub(super) tag: Tag,
    pub(super) rows: Option<u64>,
    pub(super) record: &'a [u8],
    pub(super) before: Before,
}

/// Writes the record of a build, replacing the owner's previous one.
pub(super) fn write_record(work: &Work<'_>, left: Left<'_>) -> Result<(), Failure> {
    let Left {
        tag, rows, record, ..
    } = left;
    match left.before {
        Before::Record if work.lake().is_none() => {
            let (uid, build) = (tag.uid.to_string(), tag.build.to_string());
            let rows = rows.map_or_else(|| "NULL".to_owned(), |rows| rows.to_string());
            let update = format!(
                "UPDATE _watershed.records SET build = ?, row_count = {rows}, record = ? WHERE uid = ?"
            );
            let params = [Param::Text(&build), Param::Blob(record), Param::Text(&uid)];
            work.run(&update, &params).map(drop)
        }
        Before::Nothing | Before::Record => append_records(work, &[left]),
    }
}

/// Writes the records of several builds of different owners. Deletes the owners' previous records at once, which for a
/// single record would cost more than an update.
pub(super) fn write_records(work: &Work<'_>, all: &[Left<'_>]) -> Result<(), Failure> {
    if let [one] = all {
        return write_record(work, *one);
    }
    let known = all.iter().filter(|left| left.before == Before::Record);
    let known: Vec<String> = known.map(|left| format!("'{}'", left.tag.uid)).collect();
    if !known.is_empty() && work.lake().is_none() {
        let delete = format!(
            "DELETE FROM _watershed.records WHERE uid IN ({})",
            known.join(", ")
        );
        work.run(&delete, &[])?;
    }
    append_records(work, all)
}

fn append_records(work: &Work<'_>, all: &[Left<'_>]) -> Result<(), Failure> {
    let ids: Vec<(String, String)> = all
        .iter()
        .map(|left| (left.tag.uid.to_string(), left.tag.build.to_string()))
        .collect();
    let rows: Vec<[ColumnValue<'_>; 5]> = all
        .iter()
        .zip(&ids)
        .map(|(left, (uid, build))| {
            [
                ColumnValue::Text(uid),
                ColumnValue::Text(build),
                ColumnValue::number(left.rows),
                ColumnValue::Blob(left.record),
                ColumnValue::Number(work.next_number()),
            ]
        })
        .collect();
    // Those of a file have no number.
    let columns = 4 + usize::from(work.lake().is_some());
    work.append(RECORDS, rows.iter().filter_map(|row| row.get(..columns)))
}

/// The record of an owner before a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Before {
    #[default]
    Nothing,
    Record,
}

impl Before {
    pub(super) fn from_names(names: &Names, uid: Uuid) -> Self {
        if names.has_record(uid) {
            Self::Record
        } else {
            Self::Nothing
        }
    }
}

/// Returns the owners of records and of notes of partitions.
pub(super) fn read_noted(work: &Work<'_>) -> Result<Noted, Failure> {
    let owners = |table: &str| -> Result<BTreeSet<Uuid>, Failure> {
        let rows = work.run(&format!("SELECT DISTINCT uid FROM {table}"), &[])?;
        let uids = rows.into_iter().flatten();
        Ok(uids
            .filter_map(|uid| Uuid::try_parse(&uid.to_string()).ok())
            .collect())
    };
    Ok(Noted {
        recorded: owners(records(work))?,
        partitioned: owners("_watershed.partitions")?,
        trash: Vec::new(),
    })
}

/// Returns the number of rows that a build wrote, from its record.
pub(super) fn read_rows(work: &Work<'_>, tag: Tag) -> Result<Option<u64>, Failure> {
    let (uid, build) = (tag.uid.to_string(), tag.build.to_string());
    let records = records(work);
    let sql = format!("SELECT row_count FROM {records} WHERE uid = ? AND build = ?");
    Ok(count(&work.run(&sql, &[Param::Text(&uid), Param::Text(&build)])?))
}

/// The number of rows that a build wrote, and its record.
pub(super) type Recorded = (Option<u64>, Vec<u8>);

/// Reads the row counts and records of builds, in one statement.
pub(super) fn read_records(work: &Work<'_>, tags: &[Tag]) -> Result<BTreeMap<Tag, Recorded>, Failure> {
    let owners: Vec<String> = tags.iter().map(|tag| format!("'{}'", tag.uid)).collect();
    let of_owners = format!("WHERE uid IN ({})", owners.join(", "));
    let mut records = select_records(work, &of_owners)?;
    records.retain(|tag, _| tags.contains(tag));
    Ok(records)
}

fn select_records(work: &Work<'_>, condition: &str) -> Result<BTreeMap<Tag, Recorded>, Failure> {
    let rows = work.run(
        &format!(
            "SELECT uid, build, row_count, record FROM {} {condition}",
            records(work)
        ),
        &[],
    )?;
    let id = |value: Value| Uuid::try_parse(&value.to_string()).ok();
    let record = |row: Vec<Value>| match <[Value; 4]>::try_from(row).ok()? {
        [uid, build, rows, Value::Blob(record)] => {
            let tag = Tag {
                uid: id(uid)?,
                build: id(build)?,
            };
            Some((tag, (count_of(&rows), record)))
        }
        _ => None,
    };
    Ok(rows.into_iter().filter_map(record).collect())
}

/// Deletes the record of an owner.
pub(super) fn delete_record(work: &Work<'_>, uid: Uuid) -> Result<(), Failure> {
    if let Some(lake) = work.lake() {
        let uid = uid.to_string();
        let row = [
            ColumnValue::Text(&uid),
            ColumnValue::Text(&uid),
            ColumnValue::number(lake.epoch()),
            ColumnValue::Null,
            ColumnValue::Number(work.next_number()),
        ];
        return work.append(RECORDS, [row.as_slice()]);
    }
    work.run(
        "DELETE FROM _watershed.records WHERE uid = ?",
        &[Param::Text(&uid.to_string())],
    )
    .map(drop)
}

/// Writes a tag to an object.
pub(super) fn write_tag(work: &Work<'_>, kind: OutputKind, name: &str, tag: Tag) -> Result<(), Failure> {
    let comment = DuckDb.text(&tag.to_string());
    work.run(
        &format!("COMMENT ON {} {} IS {comment}", keyword(kind), qualified(name)),
        &[],
    )
    .map(drop)
}

/// Drops a table or view from the schema.
pub(super) fn drop_object(work: &Work<'_>, entry: &Entry) -> Result<(), Failure> {
    work.run(
        &format!("DROP {} {}", keyword(entry.kind), qualified(&entry.name)),
        &[],
    )
    .map(drop)
}

/// Renames a tagged object. Tags a view again, since not every version of the engine keeps the comment.
pub(super) fn rename_object(work: &Work<'_>, entry: &Entry, tag: Tag, to: &str) -> Result<(), Failure> {
    let (from, to_quoted) = (qualified(&entry.name), DuckDb.name(to));
    work.run(
        &format!("ALTER {} {from} RENAME TO {to_quoted}", keyword(entry.kind)),
        &[],
    )?;
    match entry.kind {
        OutputKind::Table => Ok(()),
        OutputKind::View => write_tag(work, entry.kind, to, tag),
    }
}

/// Returns the name of an output whose name another object took. Its tag still tells the owner.
pub(super) fn aside_name(uid: Uuid) -> String {
    format!("_watershed_aside_{}", uid.simple())
}

/// Returns the indexes that people made on a table.
pub(super) fn indexes(work: &Work<'_>, table: &str) -> Result<Vec<String>, Failure> {
    let rows = work.run(
        "SELECT index_name FROM duckdb_indexes() \
         WHERE database_name = current_database() AND schema_name = 'main' AND table_name = ? \
         ORDER BY 1",
        &[Param::Text(table)],
    )?;
    Ok(rows.into_iter().flatten().map(|name| name.to_string()).collect())
}

/// Returns a qualified and quoted name: `main."name"`.
pub(super) fn qualified(name: &str) -> String {
    format!("main.{}", DuckDb.name(name))
}

/// Returns the SQL keyword of an output's kind.
pub(super) fn keyword(kind: OutputKind) -> &'static str {
    match kind {
        OutputKind::View => "VIEW",
        OutputKind::Table => "TABLE",
    }
}

/// Returns the number in an answer of a single number.
pub(super) fn count(rows: &[Vec<Value>]) -> Option<u64> {
    count_of(rows.first()?.first()?)
}

fn count_of(value: &Value) -> Option<u64> {
    match value {
        Value::Integer(count) => u64::try_from(*count).ok(),
        _ => None,
    }
}
