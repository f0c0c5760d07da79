//! Copies of a lake's catalog: all of its tables, in a file of the engine.
//!
//! The files of a lake are never written over, so a copy of the catalog is the lake of that moment, as long as nobody removed
//! the files. Rows that the catalog holds itself are tables of it.

use std::path::Path;

use super::{ALIAS, Lake, name, quoted, run, text};
use crate::duckdb::sys::{Connection, RawError};

/// Name of a copy in the engine.
const COPY: &str = "copy_of_lake";

/// Tables of a catalog in the version of the format that the engine knows, besides those with rows.
const TABLES: [&str; 28] = [
    "ducklake_column",
    "ducklake_column_mapping",
    "ducklake_column_tag",
    "ducklake_data_file",
    "ducklake_delete_file",
    "ducklake_file_column_stats",
    "ducklake_file_partition_value",
    "ducklake_file_variant_stats",
    "ducklake_files_scheduled_for_deletion",
    "ducklake_inlined_data_tables",
    "ducklake_macro",
    "ducklake_macro_impl",
    "ducklake_macro_parameters",
    "ducklake_metadata",
    "ducklake_name_mapping",
    "ducklake_partition_column",
    "ducklake_partition_info",
    "ducklake_schema",
    "ducklake_schema_versions",
    "ducklake_snapshot",
    "ducklake_snapshot_changes",
    "ducklake_sort_expression",
    "ducklake_sort_info",
    "ducklake_table",
    "ducklake_table_column_stats",
    "ducklake_table_stats",
    "ducklake_tag",
    "ducklake_view",
];

/// Table with the names of the tables with rows.
const INLINED: &str = "ducklake_inlined_data_tables";

/// Copies the catalog into a new file.
pub(in crate::duckdb) fn copy_catalog(
    lake: &Lake,
    connection: &Connection,
    to: &Path,
) -> Result<(), RawError> {
    attach(connection, to, "")?;
    let copied = in_transaction(connection, || {
        let inlined = names(connection, &lake.own_table(INLINED))?;
        for table in all(&inlined) {
            let own = lake.own_table(table);
            run(
                connection,
                &format!("CREATE TABLE {} AS FROM {own}", of_copy(table)),
            )?;
        }
        Ok(())
    });
    detach(connection);
    copied
}

/// Replaces the catalog by a copy.
pub(in crate::duckdb) fn restore_catalog(
    lake: &Lake,
    connection: &Connection,
    copy: &Path,
) -> Result<(), RawError> {
    attach(connection, copy, " (READ_ONLY)")?;
    let restored = in_transaction(connection, || {
        let there = names(connection, &lake.own_table(INLINED))?;
        let inlined = names(connection, &of_copy(INLINED))?;
        for table in there.iter().filter(|table| !inlined.contains(table)) {
            run(
                connection,
                &format!("DROP TABLE IF EXISTS {}", lake.own_table(table)),
            )?;
        }
        for table in all(&inlined) {
            let (own, copied) = (lake.own_table(table), of_copy(table));
            let is_new = inlined.iter().any(|one| one == table) && !there.iter().any(|one| one == table);
            if is_new {
                run(connection, &format!("CREATE TABLE {own} AS FROM {copied}"))?;
            } else {
                run(connection, &format!("DELETE FROM {own}"))?;
                run(connection, &format!("INSERT INTO {own} BY NAME FROM {copied}"))?;
            }
        }
        Ok(())
    });
    detach(connection);
    restored
}

/// Returns the tables of a copy, by schema and name, of which a file is gone.
pub(in crate::duckdb) fn lost_tables(
    connection: &Connection,
    copy: &Path,
) -> Result<Vec<[String; 2]>, RawError> {
    attach(connection, copy, " (READ_ONLY)")?;
    let lost = find_lost(connection);
    detach(connection);
    lost
}

fn find_lost(connection: &Connection) -> Result<Vec<[String; 2]>, RawError> {
    let path = format!(
        "SELECT value FROM {} WHERE key = 'data_path' AND scope IS NULL",
        of_copy("ducklake_metadata")
    );
    let path = run(connection, &path)?.into_iter().flatten().find_map(text);
    let path = path.unwrap_or_default();
    let (schemas, tables) = (of_copy("ducklake_schema"), of_copy("ducklake_table"));
    let files = |table: &str| {
        let files = of_copy(table);
        format!(
            "SELECT s.schema_name AS schema_name, t.table_name AS table_name, \
             CASE WHEN NOT f.path_is_relative THEN '' WHEN NOT t.path_is_relative THEN t.path \
             WHEN NOT s.path_is_relative THEN s.path || t.path ELSE {} || s.path || t.path END || f.path AS path \
             FROM {files} f JOIN {tables} t ON t.table_id = f.table_id AND t.end_snapshot IS NULL \
             JOIN {schemas} s ON s.schema_id = t.schema_id AND s.end_snapshot IS NULL WHERE f.end_snapshot IS NULL",
            quoted(&path)
        )
    };
    let sql = format!(
        "SELECT DISTINCT schema_name, table_name FROM ({} UNION ALL {}) \
         WHERE path NOT IN (SELECT file FROM glob({})) ORDER BY ALL",
        files("ducklake_data_file"),
        files("ducklake_delete_file"),
        quoted(&format!("{path}**"))
    );
    let lost = run(connection, &sql)?.into_iter().filter_map(|row| {
        let [schema, table] = <[_; 2]>::try_from(row).ok()?;
        Some([text(schema)?, text(table)?])
    });
    Ok(lost.collect())
}

/// Returns all tables of a catalog that holds rows in these.
fn all(inlined: &[String]) -> impl Iterator<Item = &str> {
    TABLES.into_iter().chain(inlined.iter().map(String::as_str))
}

fn names(connection: &Connection, table: &str) -> Result<Vec<String>, RawError> {
    let rows = run(connection, &format!("SELECT table_name FROM {table}"))?;
    Ok(rows.into_iter().flatten().filter_map(text).collect())
}

fn of_copy(table: &str) -> String {
    format!("{COPY}.main.{}", name(table))
}

fn attach(connection: &Connection, file: &Path, options: &str) -> Result<(), RawError> {
    let file = quoted(&file.to_string_lossy());
    run(connection, &format!("ATTACH {file} AS {COPY}{options}")).map(drop)
}

/// Lets go of a copy, which would be locked otherwise as long as the engine is open.
fn detach(connection: &Connection) {
    if let Err(raw) = run(connection, &format!("USE {ALIAS}; DETACH {COPY}")) {
        tracing::warn!(error = %raw.0, "a copy of the lake's catalog stays attached");
    }
}

fn in_transaction(
    connection: &Connection,
    body: impl FnOnce() -> Result<(), RawError>,
) -> Result<(), RawError> {
    run(connection, "BEGIN TRANSACTION")?;
    let done = body().and_then(|()| run(connection, "COMMIT").map(drop));
    if done.is_err() {
        super::epoch::roll_back(connection);
    }
    done
}
