//! Writing one commit.

use std::collections::HashMap;
use std::sync::Arc;

use sqlx::postgres::{PgArguments, PgConnection, PgQueryResult};
use sqlx::{Arguments, AssertSqlSafe};
use uuid::Uuid;
use watershed_core::{Commit, CommitError, HistoryRow, InvocationId, QuickHash, Row, Uid, Write};

use super::super::{ColumnError, HISTORY_AGE_MS, HISTORY_PER_RESOURCE, removes};
use super::Database;
use super::columns::{self, escaped, integer};
use super::events::Event;
use super::statements::Statements;

/// Rows that one statement writes: a bound on what it takes in memory on both sides.
const ROWS: usize = 2_000;

/// Entries of history that a resource may have beyond its bound before they are looked for.
const HISTORY_SLACK: u32 = 32;

/// How far apart, by the times of what is written, old history is looked for: an hour.
const AGE_INTERVAL_MS: i64 = 60 * 60 * 1000;

/// When the history of an instance was last cut to its bounds.
#[derive(Debug, Default)]
pub(super) struct Cuts {
    /// By resource, entries written since. One that is not here was not cut by us yet.
    since: HashMap<Uid, u32, QuickHash>,
    aged_at: Option<i64>,
}

impl Cuts {
    /// The resources whose history may be longer than its bound.
    fn due(&self, history: &[HistoryRow]) -> Vec<Uid> {
        let mut uids: Vec<Uid> = history.iter().map(|entry| entry.uid).collect();
        uids.sort_unstable();
        uids.dedup();
        uids.retain(|uid| {
            self.since
                .get(uid)
                .is_none_or(|written| *written >= HISTORY_SLACK)
        });
        uids
    }

    /// The time of the commit if it is time to look for old history.
    fn age_due(&self, history: &[HistoryRow]) -> Option<i64> {
        let now = history.last()?.ended_at.0;
        self.aged_at
            .is_none_or(|last| now - last > AGE_INTERVAL_MS)
            .then_some(now)
    }

    fn done(&mut self, history: &[HistoryRow], cut: &[Uid], aged: Option<i64>) {
        for entry in history {
            *self.since.entry(entry.uid).or_default() += 1;
        }
        for uid in cut {
            self.since.insert(*uid, 0);
        }
        self.aged_at = aged.or(self.aged_at);
    }
}

/// Why a commit was not written.
enum Failure {
    LeaseLost,
    Failed(String),
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<ColumnError> for Failure {
    fn from(error: ColumnError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Writes a commit in one transaction, if the instance still has its epoch, and announces it.
pub(super) async fn write(
    database: &Database,
    instance: &str,
    cuts: &mut Cuts,
    commit: &Commit,
) -> Result<(), CommitError> {
    try_write(database, instance, cuts, commit)
        .await
        .map_err(|failure| match failure {
            Failure::LeaseLost => CommitError::LeaseLost,
            Failure::Failed(message) => CommitError::Failed(message),
        })
}

async fn try_write(
    database: &Database,
    instance: &str,
    cuts: &mut Cuts,
    commit: &Commit,
) -> Result<(), Failure> {
    let (to_cut, to_age) = (cuts.due(&commit.history), cuts.age_due(&commit.history));
    let mut transaction = database.pool.begin().await?;
    let mut batch = Batch {
        connection: &mut transaction,
        statements: &database.statements,
        instance,
        commit,
    };
    batch.advance().await?;
    batch.write().await?;
    batch.record().await?;
    batch.cut(&to_cut, to_age).await?;
    batch.announce().await?;
    transaction.commit().await?;
    cuts.done(&commit.history, &to_cut, to_age);
    Ok(())
}

/// The statements of one transaction.
struct Batch<'a> {
    connection: &'a mut PgConnection,
    statements: &'a Statements,
    instance: &'a str,
    commit: &'a Commit,
}

impl Batch<'_> {
    /// Moves the revision, which fails without the lease. A takeover waits for this transaction or comes before it.
    async fn advance(&mut self) -> Result<(), Failure> {
        let mut arguments = self.arguments()?;
        arguments.add(integer(self.commit.revision.0))?;
        arguments.add(integer(self.commit.epoch.0))?;
        arguments.add(removes(self.commit))?;
        let advanced = self.execute(&self.statements.advance, arguments).await?;
        if advanced.rows_affected() == 1 {
            Ok(())
        } else {
            Err(Failure::LeaseLost)
        }
    }

    async fn write(&mut self) -> Result<(), Failure> {
        let mut puts: Vec<&Row> = Vec::new();
        let mut removes: Vec<Uuid> = Vec::new();
        for write in self.commit.writes.iter() {
            match write {
                Write::Put(row) => puts.push(row),
                Write::Remove(uid) => removes.push(uid.0),
            }
        }
        for rows in puts.chunks(ROWS) {
            let mut arguments = self.arguments()?;
            arguments.add(integer(self.commit.epoch.0))?;
            columns::bind(rows, &mut arguments)?;
            self.execute(&self.statements.put, arguments).await?;
        }
        if !removes.is_empty() {
            let mut arguments = self.arguments()?;
            arguments.add(removes)?;
            self.execute(&self.statements.remove, arguments).await?;
        }
        Ok(())
    }

    async fn record(&mut self) -> Result<(), Failure> {
        for entries in self.commit.history.chunks(ROWS) {
            let texts = entries.iter().map(columns::json).collect::<Result<Vec<_>, _>>()?;
            let column = |value: fn(&HistoryRow) -> i64| entries.iter().map(value).collect::<Vec<i64>>();
            let text = |value: fn(&HistoryRow) -> String| entries.iter().map(value).collect::<Vec<String>>();
            let mut arguments = self.arguments()?;
            arguments.add(integer(self.commit.epoch.0))?;
            arguments.add(integer(self.commit.revision.0))?;
            arguments.add(entries.iter().map(|entry| entry.uid.0).collect::<Vec<Uuid>>())?;
            arguments.add(column(|entry| invocation(entry.invocation)))?;
            arguments.add(text(|entry| escaped(entry.key.kind.as_str())))?;
            arguments.add(text(|entry| escaped(entry.key.name.as_str())))?;
            arguments.add(column(|entry| entry.ended_at.0))?;
            arguments.add(texts)?;
            self.execute(&self.statements.record, arguments).await?;
        }
        Ok(())
    }

    async fn cut(&mut self, uids: &[Uid], aged: Option<i64>) -> Result<(), Failure> {
        for uid in uids {
            let mut arguments = self.arguments()?;
            arguments.add(uid.0)?;
            arguments.add(i64::from(HISTORY_PER_RESOURCE))?;
            self.execute(&self.statements.prune_resource, arguments).await?;
        }
        if let Some(now) = aged {
            let mut arguments = self.arguments()?;
            arguments.add(now - HISTORY_AGE_MS)?;
            self.execute(&self.statements.prune_age, arguments).await?;
        }
        Ok(())
    }

    /// Tells readers in other processes, when the transaction is through.
    async fn announce(&mut self) -> Result<(), Failure> {
        let event = Event::Committed(self.instance.to_owned(), self.commit.revision);
        let mut arguments = PgArguments::default();
        arguments.add(event.to_payload())?;
        self.execute(&self.statements.notify, arguments).await?;
        Ok(())
    }

    fn arguments(&self) -> Result<PgArguments, Failure> {
        let mut arguments = PgArguments::default();
        arguments.add(self.instance)?;
        Ok(arguments)
    }

    async fn execute(
        &mut self,
        sql: &Arc<str>,
        arguments: PgArguments,
    ) -> Result<PgQueryResult, sqlx::Error> {
        sqlx::query_with(AssertSqlSafe(Arc::clone(sql)), arguments)
            .execute(&mut *self.connection)
            .await
    }
}

/// A forced delete has no invocation and is the last entry of its resource.
fn invocation(id: Option<InvocationId>) -> i64 {
    id.map_or(i64::MAX, |id| integer(id.0))
}
