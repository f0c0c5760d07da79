//! Keeping in a lake: snapshots and files for a while, rows of our own tables as long as they count.
//!
//! A snapshot expires once another one took its place long ago, and its files are deleted some time later: whoever reads them began before it expired.
//! Files that no snapshot names are left of transactions that were given up, or belong to one that is under way.

use super::{ALIAS, Lake, integer, quoted, run, text};
use crate::duckdb::sys::{Connection, RawError};
use crate::olap::System;

/// A day, in milliseconds.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// Beginning of the names of files that a lake writes.
pub(super) const FILE: &str = "ducklake-";
/// Beginning of the name of the file by which a lake claims the place of its files.
const CLAIM: &str = "_watershed_lake_";

/// Rows of our own tables that count no more, with those that say so.
const OUTDATED: [&str; 2] = [
    "DELETE FROM _watershed.records AS old WHERE record IS NULL \
     OR number < (SELECT max(number) FROM _watershed.records AS new WHERE new.uid = old.uid)",
    "DELETE FROM _watershed.epochs WHERE number < (SELECT max(number) FROM _watershed.epochs)",
];

/// Number of records that count no more.
const SUPERFLUOUS: &str = "SELECT count(*) - count(DISTINCT uid) FROM _watershed.records";

/// The times before which things of a lake are old, in milliseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(in crate::duckdb) struct OldBefore {
    /// Of snapshots since they are not the newest any more.
    pub(in crate::duckdb) snapshots_ms: i64,
    /// Of files since they are in no snapshot any more.
    pub(in crate::duckdb) dropped_ms: i64,
    /// Of files that were never in a snapshot.
    pub(in crate::duckdb) orphans_ms: i64,
}

/// Keeping of a lake, by a connection.
pub(in crate::duckdb) struct Keeping<'a> {
    pub(in crate::duckdb) lake: &'a Lake,
    pub(in crate::duckdb) connection: &'a Connection,
}

impl Keeping<'_> {
    /// Returns the number of records that count no more.
    pub(in crate::duckdb) fn superfluous(&self) -> Result<i64, RawError> {
        let rows = run(self.connection, SUPERFLUOUS)?;
        Ok(integer(rows.first().and_then(|row| row.first())).unwrap_or_default())
    }

    /// Deletes the rows of our own tables that count no more, in the open transaction.
    pub(in crate::duckdb) fn compact(&self) -> Result<(), RawError> {
        OUTDATED
            .iter()
            .try_for_each(|sql| run(self.connection, sql).map(drop))
    }

    /// Lets go of what is old: snapshots, their files, files of nobody, and rows that no snapshot shows.
    pub(in crate::duckdb) fn let_go(&self, old: OldBefore) -> Result<(), RawError> {
        let call = |function: &str, arguments: &str| {
            run(self.connection, &format!("CALL ducklake_{function}({arguments})")).map(drop)
        };
        let expired = expired(self.connection, old.snapshots_ms)?;
        if !expired.is_empty() {
            let versions = expired.join(", ");
            call(
                "expire_snapshots",
                &format!("'{ALIAS}', versions => [{versions}]"),
            )?;
        }
        let dropped_ms = match self.lake.home.database.keeper() {
            // There the times of one day are all older than any time of that day.
            System::Sqlite => old.dropped_ms.div_euclid(DAY_MS) * DAY_MS - 1,
            _ => old.dropped_ms,
        };
        call("cleanup_old_files", &arguments(dropped_ms))?;
        if self.has_orphans_of_its_own(old.orphans_ms)? {
            call("delete_orphaned_files", &arguments(old.orphans_ms))?;
        }
        self.purge()
    }

    /// Returns true if there are files of nobody, and all of them are this lake's.
    fn has_orphans_of_its_own(&self, before_ms: i64) -> Result<bool, RawError> {
        if !self.has_its_place_alone()? {
            return Ok(false);
        }
        let listed = format!(
            "SELECT path FROM ducklake_delete_orphaned_files({}, dry_run => true)",
            arguments(before_ms)
        );
        let paths = run(self.connection, &listed)?
            .into_iter()
            .flatten()
            .filter_map(text);
        let paths: Vec<String> = paths.collect();
        let is_foreign = |path: &&String| !path.rsplit('/').next().is_some_and(|name| name.starts_with(FILE));
        if let Some(foreign) = paths.iter().find(is_foreign) {
            tracing::warn!(
                file = foreign,
                "files among those of a lake are somebody else's, and none is removed"
            );
            return Ok(false);
        }
        Ok(!paths.is_empty())
    }

    /// Returns true if no other lake has its files in the same place.
    fn has_its_place_alone(&self) -> Result<bool, RawError> {
        let (place, own) = (self.place()?, self.claim()?);
        let claims = format!("SELECT file FROM glob({})", quoted(&format!("{place}{CLAIM}*")));
        let claims: Vec<String> = run(self.connection, &claims)?
            .into_iter()
            .flatten()
            .filter_map(text)
            .collect();
        Ok(matches!(&claims[..], [one] if one.ends_with(&own)))
    }

    /// Claims the place of a new lake's files, unless others have files there.
    pub(super) fn claim_place(&self) -> Result<(), RawError> {
        let place = self.place()?;
        if !place.contains("://") {
            // The engine tells that better, once it writes.
            let _ = std::fs::create_dir_all(&place);
        }
        let files = format!(
            "SELECT 1 FROM glob({}) LIMIT 1",
            quoted(&format!("{place}**/*.parquet"))
        );
        if !run(self.connection, &files)?.is_empty() {
            return Ok(());
        }
        let file = format!("{place}{}", self.claim()?);
        let project = quoted(&self.lake.home.project);
        let claim = format!(
            "COPY (SELECT {project} AS project) TO {} (FORMAT csv)",
            quoted(&file)
        );
        run(self.connection, &claim).map(drop)
    }

    /// Returns the name of the file by which the lake claims the place of its files.
    fn claim(&self) -> Result<String, RawError> {
        let schemas = self.lake.own_table("ducklake_schema");
        let sql = format!(
            "SELECT schema_uuid::VARCHAR FROM {schemas} WHERE schema_name = '_watershed' AND end_snapshot IS NULL"
        );
        let id = run(self.connection, &sql)?.into_iter().flatten().next();
        Ok(format!("{CLAIM}{}.csv", id.and_then(text).unwrap_or_default()))
    }

    /// Returns the place of the lake's files, with a separator at its end.
    fn place(&self) -> Result<String, RawError> {
        let settings = self.lake.own_table("ducklake_metadata");
        let sql = format!("SELECT value FROM {settings} WHERE key = 'data_path' AND scope IS NULL");
        let place = run(self.connection, &sql)?.into_iter().flatten().next();
        Ok(place.and_then(text).unwrap_or_default())
    }

    /// Deletes rows of our own tables that no snapshot shows: the catalog holds them itself, and keeps them otherwise.
    fn purge(&self) -> Result<(), RawError> {
        let of = ["inlined_data_tables", "table", "schema", "snapshot"];
        let [inlined, tables, schemas, snapshots] =
            of.map(|table| self.lake.own_table(&format!("ducklake_{table}")));
        let ours = format!(
            "SELECT i.table_name FROM {inlined} i JOIN {tables} t ON t.table_id = i.table_id \
             JOIN {schemas} s ON s.schema_id = t.schema_id AND s.schema_name = '_watershed'"
        );
        for table in run(self.connection, &ours)?
            .into_iter()
            .flatten()
            .filter_map(text)
        {
            let table = self.lake.own_table(&table);
            let gone = format!(
                "DELETE FROM {table} WHERE end_snapshot <= (SELECT min(snapshot_id) FROM {snapshots})"
            );
            run(self.connection, &gone)?;
        }
        Ok(())
    }

    /// Returns the bytes of the files in all snapshots that are kept.
    pub(in crate::duckdb) fn kept_bytes(&self) -> Result<u64, RawError> {
        let files = self.lake.own_table("ducklake_data_file");
        let sql = format!("SELECT coalesce(sum(file_size_bytes), 0)::BIGINT FROM {files}");
        let bytes = integer(run(self.connection, &sql)?.first().and_then(|row| row.first()));
        Ok(bytes
            .and_then(|bytes| u64::try_from(bytes).ok())
            .unwrap_or_default())
    }
}

/// Returns the snapshots that were followed by another one before a time: nobody began to read them since.
fn expired(connection: &Connection, before_ms: i64) -> Result<Vec<String>, RawError> {
    let all = format!("ducklake_snapshots('{ALIAS}')");
    let seconds = before_ms.max(0) / 1_000;
    let sql = format!(
        "SELECT snapshot_id::VARCHAR FROM {all} WHERE snapshot_id < \
         (SELECT max(snapshot_id) FROM {all} WHERE epoch(snapshot_time) < {seconds})"
    );
    let ids = run(connection, &sql)?.into_iter().flatten();
    Ok(ids.filter_map(text).collect())
}

/// Returns the arguments of a function for what is older than a time.
fn arguments(before_ms: i64) -> String {
    format!(
        "'{ALIAS}', older_than => to_timestamp({})",
        before_ms.max(0) / 1_000
    )
}
