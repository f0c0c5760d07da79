//! Names, comments and snapshots of a lake, from the tables of its own catalog: the engine's views of them read the whole
//! catalog again after each change.

use super::{ALIAS, Lake, integer, quoted, run, text};
use crate::duckdb::sys::{Connection, RawError};

const NEWEST: &str = "SELECT id FROM ducklake_current_snapshot('watershed')";

/// An object of the lake's schema `main`.
pub(in crate::duckdb) struct Named {
    pub(in crate::duckdb) name: String,
    pub(in crate::duckdb) is_view: bool,
    pub(in crate::duckdb) comment: Option<String>,
}

impl Lake {
    /// Returns the newest snapshot, or that of the open transaction.
    pub(in crate::duckdb) fn snapshot(&self, connection: &Connection) -> Result<i64, RawError> {
        let rows = run(connection, NEWEST)?;
        Ok(integer(rows.first().and_then(|row| row.first())).unwrap_or_default())
    }

    /// Returns true if the lake has another snapshot than that of which the names are known.
    pub(in crate::duckdb) fn has_moved(&self, connection: &Connection) -> Result<bool, RawError> {
        Ok(self.known_snapshot() != Some(self.snapshot(connection)?))
    }

    /// Returns the objects in the schema of outputs, as of a snapshot.
    pub(in crate::duckdb) fn objects(
        &self,
        connection: &Connection,
        snapshot: i64,
    ) -> Result<Vec<Named>, RawError> {
        let of = |kind: &str| {
            let objects = self.own_table(&format!("ducklake_{kind}"));
            let (schemas, tags) = (self.own_table("ducklake_schema"), self.own_table("ducklake_tag"));
            let at = |table: &str| {
                format!(
                    "{table}.begin_snapshot <= {snapshot} \
                     AND ({table}.end_snapshot IS NULL OR {table}.end_snapshot > {snapshot})"
                )
            };
            format!(
                "SELECT o.{kind}_name, '{kind}', g.value FROM {objects} o \
                 JOIN {schemas} s ON s.schema_id = o.schema_id AND s.schema_name = 'main' AND {} \
                 LEFT JOIN {tags} g ON g.object_id = o.{kind}_id AND g.key = 'comment' AND {} WHERE {}",
                at("s"),
                at("g"),
                at("o")
            )
        };
        let rows = run(connection, &format!("{} UNION ALL {}", of("table"), of("view")))?;
        let named = |row: Vec<_>| {
            let [name, kind, comment] = <[_; 3]>::try_from(row).ok()?;
            Some(Named {
                name: text(name)?,
                is_view: text(kind)? == "view",
                comment: text(comment),
            })
        };
        Ok(rows.into_iter().filter_map(named).collect())
    }

    /// Returns the names of the tables that are ours.
    pub(in crate::duckdb) fn own_tables(&self, connection: &Connection) -> Result<Vec<String>, RawError> {
        let (tables, schemas) = (
            self.own_table("ducklake_table"),
            self.own_table("ducklake_schema"),
        );
        let sql = format!(
            "SELECT t.table_name FROM {tables} t JOIN {schemas} s ON s.schema_id = t.schema_id \
             AND s.schema_name = '_watershed' AND s.end_snapshot IS NULL WHERE t.end_snapshot IS NULL"
        );
        Ok(run(connection, &sql)?
            .into_iter()
            .flatten()
            .filter_map(text)
            .collect())
    }

    /// Returns the bytes of the files of a table, or of all tables.
    pub(in crate::duckdb) fn bytes(
        &self,
        connection: &Connection,
        table: Option<&str>,
    ) -> Result<u64, RawError> {
        let (files, tables) = (
            self.own_table("ducklake_data_file"),
            self.own_table("ducklake_table"),
        );
        let of = table.map(|table| {
            let table = quoted(table);
            format!(
                " AND f.table_id IN (SELECT table_id FROM {tables} WHERE table_name = {table} AND end_snapshot IS NULL)"
            )
        });
        let sql = format!(
            "SELECT coalesce(sum(f.file_size_bytes), 0)::BIGINT FROM {files} f WHERE f.end_snapshot IS NULL{}",
            of.unwrap_or_default()
        );
        let bytes = integer(run(connection, &sql)?.first().and_then(|row| row.first()));
        Ok(bytes
            .and_then(|bytes| u64::try_from(bytes).ok())
            .unwrap_or_default())
    }

    /// Returns the names of other databases that the engine has attached.
    pub(super) fn other_databases(&self, connection: &Connection) -> Result<Vec<String>, RawError> {
        let sql = format!("SELECT database_name FROM duckdb_databases() WHERE database_name <> '{ALIAS}'");
        Ok(run(connection, &sql)?
            .into_iter()
            .flatten()
            .filter_map(text)
            .collect())
    }
}
