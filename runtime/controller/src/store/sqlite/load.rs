//! Reads of rows and history from SQLite.
//!
//! Rows are decoded as they come, so that a catalog of any size costs no more memory than its rows.

use std::sync::Arc;

use futures::TryStreamExt;
use sqlx::AssertSqlSafe;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use watershed_core::{HistoryRow, Stored, Uid};

use super::super::columns::{self, unreadable};
use super::dialect::uid_bytes;
use super::statements::Statements;
use super::{HISTORY_AT_ONCE, StoreError, database};

const CATALOG: &str = "read the catalog";
const HISTORY: &str = "read the history";

/// Reads the catalog of an instance with the statement `load`; `instance_row` has its epoch and revision.
pub(super) async fn stored(
    connection: &mut SqliteConnection,
    load: &Arc<str>,
    instance: &str,
    instance_row: &SqliteRow,
) -> Result<Stored, StoreError> {
    let mut stored = Stored {
        epoch: columns::value(instance_row, 0).map_err(unreadable(CATALOG))?,
        revision: columns::value(instance_row, 1).map_err(unreadable(CATALOG))?,
        rows: Vec::new(),
    };
    let query = sqlx::query(AssertSqlSafe(Arc::clone(load))).bind(instance);
    let mut rows = query.fetch(connection);
    while let Some(row) = rows.try_next().await.map_err(database(CATALOG))? {
        stored
            .rows
            .push(columns::resource(&row).map_err(unreadable(CATALOG))?);
    }
    Ok(stored)
}

/// Reads the newest history entries of one resource.
pub(super) async fn history(
    connection: &mut SqliteConnection,
    statements: &Statements,
    instance: &str,
    uid: Uid,
    limit: u32,
) -> Result<Vec<HistoryRow>, StoreError> {
    let rows = sqlx::query(AssertSqlSafe(Arc::clone(&statements.history)))
        .bind(instance)
        .bind(uid_bytes(uid))
        .bind(limit.min(HISTORY_AT_ONCE))
        .fetch_all(connection);
    columns::history(&rows.await.map_err(database(HISTORY))?)
}

/// Reads the newest history entries of all resources.
pub(super) async fn recent(
    connection: &mut SqliteConnection,
    statements: &Statements,
    instance: &str,
    limit: u32,
) -> Result<Vec<HistoryRow>, StoreError> {
    let rows = sqlx::query(AssertSqlSafe(Arc::clone(&statements.recent)))
        .bind(instance)
        .bind(limit.min(HISTORY_AT_ONCE))
        .fetch_all(connection);
    columns::history(&rows.await.map_err(database(HISTORY))?)
}
