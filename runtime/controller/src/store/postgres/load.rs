//! Reads of rows and history from Postgres.

use std::sync::Arc;

use futures::TryStreamExt;
use sqlx::{AssertSqlSafe, Row as _};
use watershed_core::{HistoryRow, Revision, Stored, Uid};

use super::super::columns::{self, integer, unreadable};
use super::super::exchange::Delta;
use super::transaction::Transaction;
use super::{Database, HISTORY_AT_ONCE, StoreError, database as failed};

const CATALOG: &str = "read the catalog";
const HISTORY: &str = "read the history";

const ONE_MOMENT: &str = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY";

/// Number of revisions for which removals are remembered. A follower further behind reads the whole catalog.
pub(super) const REMOVALS_KEPT: u64 = 10_000;

/// Reads the catalog of an instance as of one moment. A new instance is empty.
pub(super) async fn stored(database: &Database, instance: &str) -> Result<(Stored, Revision), StoreError> {
    let (failed, statements) = (failed(CATALOG), &database.statements);
    let transaction = Transaction::begin_with(&database.pool, ONE_MOMENT).await;
    let mut transaction = transaction.map_err(&failed)?;
    let known = sqlx::query(AssertSqlSafe(Arc::clone(&statements.instance))).bind(instance);
    let known = known.fetch_optional(&mut *transaction).await.map_err(&failed)?;
    let (mut stored, mut removed) = (Stored::default(), Revision(0));
    if let Some(row) = known {
        stored.epoch = columns::value(&row, 0).map_err(unreadable(CATALOG))?;
        stored.revision = columns::value(&row, 1).map_err(unreadable(CATALOG))?;
        removed = columns::value(&row, 2).map_err(unreadable(CATALOG))?;
        let query = sqlx::query(AssertSqlSafe(Arc::clone(&statements.load))).bind(instance);
        let mut rows = query.fetch(&mut *transaction);
        while let Some(row) = rows.try_next().await.map_err(&failed)? {
            stored
                .rows
                .push(columns::resource(&row).map_err(unreadable(CATALOG))?);
        }
    }
    transaction.commit().await.map_err(failed)?;
    Ok((stored, removed))
}

/// Reads the changes after a revision as of one moment; none if removals since then may be forgotten.
pub(super) async fn later(
    database: &Database,
    instance: &str,
    from: Revision,
) -> Result<Option<Delta>, StoreError> {
    let (failed, statements) = (failed(CATALOG), &database.statements);
    let transaction = Transaction::begin_with(&database.pool, ONE_MOMENT).await;
    let mut transaction = transaction.map_err(&failed)?;
    let known = sqlx::query(AssertSqlSafe(Arc::clone(&statements.instance))).bind(instance);
    let known = known.fetch_optional(&mut *transaction).await.map_err(&failed)?;
    let revision = known
        .as_ref()
        .map_or(Ok(Revision(0)), |row| columns::value(row, 1));
    let mut later = Delta {
        revision: revision.map_err(unreadable(CATALOG))?,
        ..Delta::default()
    };
    if later.revision.0 > from.0.saturating_add(REMOVALS_KEPT) {
        return Ok(None);
    }
    if later.revision > from {
        let since = integer(from.0);
        let rows = sqlx::query(AssertSqlSafe(Arc::clone(&statements.later)));
        let rows = rows.bind(instance).bind(since).fetch_all(&mut *transaction);
        for row in rows.await.map_err(&failed)? {
            // What of it can't be read is said by the holder; here it is shown as far as it goes.
            let stored = columns::resource(&row).map_err(unreadable(CATALOG))?;
            later.rows.push(stored.row);
        }
        let removed = sqlx::query(AssertSqlSafe(Arc::clone(&statements.removed)));
        let removed = removed.bind(instance).bind(since).fetch_all(&mut *transaction);
        for row in removed.await.map_err(&failed)? {
            let uid = row.try_get(0).map_err(&failed)?;
            let revision = columns::value(&row, 1).map_err(unreadable(CATALOG))?;
            later.removed.push((Uid(uid), revision));
        }
    }
    transaction.commit().await.map_err(failed)?;
    Ok(Some(later))
}

/// Returns the revision of an instance; 0 for a new one.
pub(super) async fn revision(shared: &Database, instance: &str) -> Result<Revision, StoreError> {
    let row = sqlx::query(AssertSqlSafe(Arc::clone(&shared.statements.instance)))
        .bind(instance)
        .fetch_optional(&shared.pool);
    match row.await.map_err(failed(CATALOG))? {
        Some(row) => columns::value(&row, 1).map_err(unreadable(CATALOG)),
        None => Ok(Revision(0)),
    }
}

/// Reads the newest history entries of one resource.
pub(super) async fn history(
    shared: &Database,
    instance: &str,
    uid: Uid,
    limit: u32,
) -> Result<Vec<HistoryRow>, StoreError> {
    let rows = sqlx::query(AssertSqlSafe(Arc::clone(&shared.statements.history)))
        .bind(instance)
        .bind(uid.0)
        .bind(i64::from(limit.min(HISTORY_AT_ONCE)))
        .fetch_all(&shared.pool);
    columns::history(&rows.await.map_err(failed(HISTORY))?)
}

/// Reads the newest history entries of all resources.
pub(super) async fn recent(
    shared: &Database,
    instance: &str,
    limit: u32,
) -> Result<Vec<HistoryRow>, StoreError> {
    let rows = sqlx::query(AssertSqlSafe(Arc::clone(&shared.statements.recent)))
        .bind(instance)
        .bind(i64::from(limit.min(HISTORY_AT_ONCE)))
        .fetch_all(&shared.pool);
    columns::history(&rows.await.map_err(failed(HISTORY))?)
}
