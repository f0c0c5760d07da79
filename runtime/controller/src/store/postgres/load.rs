//! Reading rows and history.

use std::sync::Arc;

use futures::TryStreamExt;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Connection, Row as _};
use watershed_core::{HistoryRow, Revision, Stored, Uid};

use super::super::ColumnError;
use super::statements::Statements;
use super::{Database, HISTORY_AT_ONCE, HISTORY_PER_RESOURCE, StoreError, columns, database};

const CATALOG: &str = "read the catalog";
const HISTORY: &str = "read the history";

/// The catalog of an instance, all of one moment; an instance that is not there is empty.
pub(super) async fn stored(
    connection: &mut PgConnection,
    statements: &Statements,
    instance: &str,
) -> Result<Stored, StoreError> {
    let failed = database(CATALOG);
    let one_moment = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY";
    let mut transaction = connection.begin_with(one_moment).await.map_err(&failed)?;
    let known = sqlx::query(AssertSqlSafe(Arc::clone(&statements.instance))).bind(instance);
    let known = known.fetch_optional(&mut *transaction).await.map_err(&failed)?;
    let mut stored = Stored::default();
    if let Some(row) = known {
        stored.epoch = columns::epoch(&row, 0).map_err(unreadable(CATALOG))?;
        stored.revision = columns::natural(&row, 1)
            .map(Revision)
            .map_err(unreadable(CATALOG))?;
        let query = sqlx::query(AssertSqlSafe(Arc::clone(&statements.load))).bind(instance);
        let mut rows = query.fetch(&mut *transaction);
        while let Some(row) = rows.try_next().await.map_err(&failed)? {
            stored
                .rows
                .push(columns::read(&row).map_err(unreadable(CATALOG))?);
        }
    }
    transaction.commit().await.map_err(failed)?;
    Ok(stored)
}

/// The revision of an instance; 0 if it is not there.
pub(super) async fn revision(shared: &Database, instance: &str) -> Result<Revision, StoreError> {
    let row = sqlx::query(AssertSqlSafe(Arc::clone(&shared.statements.instance)))
        .bind(instance)
        .fetch_optional(&shared.pool);
    match row.await.map_err(database(CATALOG))? {
        Some(row) => columns::natural(&row, 1)
            .map(Revision)
            .map_err(unreadable(CATALOG)),
        None => Ok(Revision(0)),
    }
}

/// The newest entries of one resource.
pub(super) async fn history(
    shared: &Database,
    instance: &str,
    uid: Uid,
    limit: u32,
) -> Result<Vec<HistoryRow>, StoreError> {
    let rows = sqlx::query(AssertSqlSafe(Arc::clone(&shared.statements.history)))
        .bind(instance)
        .bind(uid.0)
        .bind(i64::from(limit.min(HISTORY_PER_RESOURCE)))
        .fetch_all(&shared.pool);
    entries(&rows.await.map_err(database(HISTORY))?)
}

/// The newest entries of all resources.
pub(super) async fn recent(
    shared: &Database,
    instance: &str,
    limit: u32,
) -> Result<Vec<HistoryRow>, StoreError> {
    let rows = sqlx::query(AssertSqlSafe(Arc::clone(&shared.statements.recent)))
        .bind(instance)
        .bind(i64::from(limit.min(HISTORY_AT_ONCE)))
        .fetch_all(&shared.pool);
    entries(&rows.await.map_err(database(HISTORY))?)
}

fn entries(rows: &[PgRow]) -> Result<Vec<HistoryRow>, StoreError> {
    rows.iter()
        .map(entry)
        .collect::<Result<_, _>>()
        .map_err(unreadable(HISTORY))
}

fn entry(row: &PgRow) -> Result<HistoryRow, ColumnError> {
    let json: &str = row.try_get(1)?;
    Ok(HistoryRow {
        epoch: columns::epoch(row, 0)?,
        ..serde_json::from_str(json)?
    })
}

pub(super) fn unreadable(doing: &'static str) -> impl Fn(ColumnError) -> StoreError {
    move |source| StoreError::Database { doing, source }
}
