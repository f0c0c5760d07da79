//! Calls and answers as rows, and the catalog as followers see it.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Row as _};
use uuid::Uuid;
use watershed_core::{CommitError, Epoch, HistoryRow, Revision, Stored, Uid};

use super::super::columns::{integer, unreadable, value};
use super::super::exchange::{Answers, ClaimedCall, Delta, Exchange, Interest, RemoteCall, Wake};
use super::super::{BoxFuture, ColumnError, StoreError};
use super::events::{Event, Follower};
use super::transaction::Transaction;
use super::{Database, database, load};

const ASK: &str = "leave a call for the holder";
const ANSWERS: &str = "read the answers";
const TAKE: &str = "take calls of other processes";

/// One instance, seen from any process.
#[derive(Debug)]
pub(super) struct PostgresExchange {
    pub(super) database: Arc<Database>,
    pub(super) instance: Arc<str>,
    /// Time after which an unrenewed lease of the instance expires.
    pub(super) term: Duration,
}

impl Exchange for PostgresExchange {
    fn read(&self) -> BoxFuture<'_, Result<(Stored, Revision), StoreError>> {
        Box::pin(load::stored(&self.database, &self.instance))
    }

    fn later(&self, from: Revision) -> BoxFuture<'_, Result<Option<Delta>, StoreError>> {
        Box::pin(load::later(&self.database, &self.instance, from))
    }

    fn history(&self, uid: Uid, limit: u32) -> BoxFuture<'_, Result<Vec<HistoryRow>, StoreError>> {
        Box::pin(load::history(&self.database, &self.instance, uid, limit))
    }

    fn recent(&self, limit: u32) -> BoxFuture<'_, Result<Vec<HistoryRow>, StoreError>> {
        Box::pin(load::recent(&self.database, &self.instance, limit))
    }

    fn submit<'a>(&'a self, caller: Uuid, calls: &'a [RemoteCall]) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let failed = database(ASK);
            let mut transaction = Transaction::begin(&self.database.pool).await.map_err(&failed)?;
            if !calls.is_empty() {
                let texts: Vec<&str> = calls.iter().map(|call| call.call.as_str()).collect();
                let ids: Vec<Uuid> = calls.iter().map(|call| call.id).collect();
                let ask = self
                    .query(&self.database.statements.ask)
                    .bind(caller)
                    .bind(ids)
                    .bind(texts);
                ask.execute(&mut *transaction).await.map_err(&failed)?;
            }
            let event = Event::RemoteCall(self.instance.to_string());
            self.notify(&mut transaction, &event).await.map_err(&failed)?;
            transaction.commit().await.map_err(failed)
        })
    }

    fn answers(&self, caller: Uuid) -> BoxFuture<'_, Result<Vec<Answers>, StoreError>> {
        Box::pin(async move {
            let sql = AssertSqlSafe(Arc::clone(&self.database.statements.answers));
            let rows = sqlx::query(sql).bind(caller).fetch_all(&self.database.pool);
            let rows = rows.await.map_err(database(ANSWERS))?;
            let given = rows.iter().map(given).collect::<Result<_, _>>();
            given.map_err(unreadable(ANSWERS))
        })
    }

    fn withdraw<'a>(&'a self, calls: &'a [Uuid]) -> BoxFuture<'a, Result<Vec<Uuid>, StoreError>> {
        Box::pin(async move {
            let sql = AssertSqlSafe(Arc::clone(&self.database.statements.withdraw));
            let rows = sqlx::query(sql)
                .bind(calls.to_vec())
                .fetch_all(&self.database.pool);
            let rows = rows.await.map_err(database(ASK))?;
            let ids = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>();
            ids.map_err(database(ASK))
        })
    }

    fn forget<'a>(&'a self, calls: &'a [Uuid]) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let sql = AssertSqlSafe(Arc::clone(&self.database.statements.forget));
            let forget = sqlx::query(sql).bind(calls.to_vec()).execute(&self.database.pool);
            forget.await.map_err(database(ANSWERS)).map(drop)
        })
    }

    fn touch(&self, caller: Uuid) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let sql = AssertSqlSafe(Arc::clone(&self.database.statements.touch));
            let touch = sqlx::query(sql).bind(caller).execute(&self.database.pool);
            touch.await.map_err(database(ASK)).map(drop)
        })
    }

    fn claim(&self, epoch: Epoch, limit: u32) -> BoxFuture<'_, Result<Vec<ClaimedCall>, StoreError>> {
        Box::pin(async move {
            let query = self.query(&self.database.statements.take_calls);
            let query = query.bind(integer(epoch.0)).bind(i64::from(limit));
            let rows = query
                .fetch_all(&self.database.pool)
                .await
                .map_err(database(TAKE))?;
            let mut taken: Vec<(i64, ClaimedCall)> = rows
                .iter()
                .map(taken)
                .collect::<Result<_, _>>()
                .map_err(unreadable(TAKE))?;
            taken.sort_by_key(|(number, _)| *number);
            Ok(taken.into_iter().map(|(_, call)| call).collect())
        })
    }

    fn answer<'a>(&'a self, epoch: Epoch, given: &'a [Answers]) -> BoxFuture<'a, Result<(), CommitError>> {
        Box::pin(async move {
            let failed = |error: sqlx::Error| CommitError::Failed(error.to_string());
            let mut transaction = Transaction::begin(&self.database.pool).await.map_err(failed)?;
            self.answer_in(&mut transaction, epoch, given)
                .await
                .map_err(failed)?;
            transaction.commit().await.map_err(failed)
        })
    }

    fn clean_up(&self) -> BoxFuture<'_, Result<Vec<Uuid>, StoreError>> {
        Box::pin(async move {
            let failed = database("forget old calls");
            let tidy = self.query(&self.database.statements.tidy);
            tidy.execute(&self.database.pool).await.map_err(&failed)?;
            let open = self.query(&self.database.statements.open_calls);
            let rows = open.fetch_all(&self.database.pool).await.map_err(&failed)?;
            let ids = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>();
            ids.map_err(failed)
        })
    }

    fn follow(&self, interest: Interest) -> Box<dyn Wake> {
        Box::new(PostgresWake {
            interest,
            follower: self.database.events.follow(&self.instance),
        })
    }
}

type Query = sqlx::query::Query<'static, sqlx::Postgres, sqlx::postgres::PgArguments>;

impl PostgresExchange {
    /// Returns the idle limit, in ms, of a transaction that locks the instance: the lock ends before another process
    /// can get the lease.
    pub(super) fn patience(&self) -> String {
        (self.term * 2 / 3).as_millis().max(1).to_string()
    }

    /// Creates a query whose first parameter is the instance.
    fn query(&self, sql: &Arc<str>) -> Query {
        sqlx::query(AssertSqlSafe(Arc::clone(sql))).bind(self.instance.to_string())
    }

    async fn notify(&self, connection: &mut PgConnection, event: &Event) -> Result<(), sqlx::Error> {
        let sql = AssertSqlSafe(Arc::clone(&self.database.statements.notify));
        sqlx::query(sql)
            .bind(event.to_payload())
            .execute(connection)
            .await?;
        Ok(())
    }

    /// Stores answers within a transaction: of a commit, or of their own.
    pub(super) async fn answer_in(
        &self,
        connection: &mut PgConnection,
        epoch: Epoch,
        given: &[Answers],
    ) -> Result<(), sqlx::Error> {
        let text = |part: fn(&Answers) -> &Option<String>| -> Vec<Option<String>> {
            given.iter().map(|one| part(one).clone()).collect()
        };
        let rows = self
            .query(&self.database.statements.answer)
            .bind(integer(epoch.0))
            .bind(given.iter().map(|one| one.id).collect::<Vec<_>>())
            .bind(text(|one| &one.first))
            .bind(text(|one| &one.outcome))
            .bind(text(|one| &one.settled))
            .bind(given.iter().map(|one| one.done).collect::<Vec<_>>())
            .bind(
                given
                    .iter()
                    .map(|one| integer(one.revision.0))
                    .collect::<Vec<_>>(),
            )
            .bind(self.patience())
            .fetch_all(&mut *connection)
            .await?;
        let mut callers: Vec<Uuid> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
        callers.sort_unstable();
        callers.dedup();
        for caller in callers {
            let event = Event::Answered(self.instance.to_string(), caller);
            self.notify(connection, &event).await?;
        }
        Ok(())
    }
}

/// A source of wake-ups for one interest.
#[derive(Debug)]
struct PostgresWake {
    interest: Interest,
    follower: Follower,
}

impl Wake for PostgresWake {
    fn next(&mut self) -> BoxFuture<'_, ()> {
        let interest = self.interest;
        Box::pin(self.follower.until(move |event| match (interest, event) {
            (Interest::Calls, Event::RemoteCall(_)) | (Interest::Answers(_), Event::Committed(..)) => true,
            (Interest::Answers(caller), Event::Answered(_, of)) => caller == *of,
            _ => false,
        }))
    }
}

fn given(row: &PgRow) -> Result<Answers, ColumnError> {
    Ok(Answers {
        id: row.try_get(0)?,
        first: row.try_get(1)?,
        outcome: row.try_get(2)?,
        settled: row.try_get(3)?,
        done: row.try_get(4)?,
        revision: value(row, 5)?,
    })
}

fn taken(row: &PgRow) -> Result<(i64, ClaimedCall), ColumnError> {
    let call = ClaimedCall {
        id: row.try_get(1)?,
        call: row.try_get(2)?,
        first: row.try_get(3)?,
    };
    Ok((row.try_get(0)?, call))
}
