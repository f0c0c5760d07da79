//! Transactions that write commits to Postgres.

use std::sync::Arc;

use sqlx::postgres::{PgArguments, PgConnection, PgQueryResult};
use sqlx::{Arguments, AssertSqlSafe};
use uuid::Uuid;
use watershed_core::{Commit, CommitError, Uid};

use super::super::columns::{HISTORY, RESOURCE, integer};
use super::super::cuts::{Cuts, Failure};
use super::super::{Answers, HISTORY_AGE_MS, HISTORY_SIGHTING_MS, parted, removes, replaced};
use super::dialect;
use super::events::Event;
use super::exchange::PostgresExchange;
use super::load::REMOVALS_KEPT;
use super::statements::Statements;
use super::transaction::Transaction;
use crate::failpoints::{COMMIT_WITHIN, crash_point};

/// Maximum number of rows that one statement writes, which bounds its memory on both sides.
const ROWS: usize = 2_000;

/// Writes a commit with answers to calls in one transaction, if the instance still has its epoch, and announces it.
pub(super) async fn write(
    exchange: &PostgresExchange,
    cuts: &mut Cuts,
    commit: &Commit,
    answers: &[Answers],
) -> Result<(), CommitError> {
    Ok(try_write(exchange, cuts, commit, answers).await?)
}

async fn try_write(
    exchange: &PostgresExchange,
    cuts: &mut Cuts,
    commit: &Commit,
    answers: &[Answers],
) -> Result<(), Failure> {
    let (to_cut, to_age) = (cuts.due(&commit.history), cuts.age_due(&commit.history));
    let mut transaction = Transaction::begin(&exchange.database.pool).await?;
    let mut batch = Batch {
        connection: &mut transaction,
        statements: &exchange.database.statements,
        instance: &exchange.instance,
        commit,
        patience: exchange.patience(),
    };
    batch.advance().await?;
    batch.write().await?;
    batch.record().await?;
    batch.cut(&to_cut, to_age).await?;
    batch.announce().await?;
    if !answers.is_empty() {
        exchange
            .answer_in(&mut transaction, commit.epoch, answers)
            .await?;
    }
    crash_point(COMMIT_WITHIN);
    transaction.commit().await?;
    cuts.done(&commit.history, &to_cut, to_age);
    Ok(())
}

/// Statements of one transaction.
struct Batch<'a> {
    connection: &'a mut PgConnection,
    statements: &'a Statements,
    instance: &'a str,
    commit: &'a Commit,
    patience: String,
}

impl Batch<'_> {
    /// Advances the revision, which fails without the lease. A takeover either precedes this transaction or waits for
    /// it.
    async fn advance(&mut self) -> Result<(), Failure> {
        let mut arguments = self.arguments()?;
        arguments.add(integer(self.commit.revision.0))?;
        arguments.add(integer(self.commit.epoch.0))?;
        arguments.add(removes(self.commit))?;
        arguments.add(&self.patience)?;
        let advanced = self.execute(&self.statements.advance, arguments).await?;
        Failure::unless_moved(advanced.rows_affected())
    }

    async fn write(&mut self) -> Result<(), Failure> {
        let (puts, removes) = parted(self.commit);
        for rows in puts.chunks(ROWS) {
            let mut arguments = self.arguments()?;
            arguments.add(integer(self.commit.epoch.0))?;
            dialect::bind(&RESOURCE, rows, &mut arguments)?;
            self.execute(&self.statements.put, arguments).await?;
        }
        if !removes.is_empty() {
            self.remove(removes.into_iter().map(|uid| uid.0).collect())
                .await?;
        }
        Ok(())
    }

    /// Removes rows, and records their removal for followers.
    async fn remove(&mut self, uids: Vec<Uuid>) -> Result<(), Failure> {
        let revision = self.commit.revision.0;
        let mut arguments = self.arguments()?;
        arguments.add(&uids)?;
        self.execute(&self.statements.remove, arguments).await?;
        let mut arguments = self.arguments()?;
        arguments.add(integer(revision))?;
        arguments.add(uids)?;
        self.execute(&self.statements.note_removals, arguments).await?;
        let mut arguments = self.arguments()?;
        arguments.add(integer(revision.saturating_sub(REMOVALS_KEPT)))?;
        self.execute(&self.statements.forget_removals, arguments).await?;
        Ok(())
    }

    async fn record(&mut self) -> Result<(), Failure> {
        for entries in self.commit.history.chunks(ROWS) {
            let mut arguments = self.arguments()?;
            arguments.add(integer(self.commit.epoch.0))?;
            arguments.add(integer(self.commit.revision.0))?;
            dialect::bind(&HISTORY, entries, &mut arguments)?;
            self.execute(&self.statements.record, arguments).await?;
        }
        for keys in replaced(self.commit).chunks(ROWS) {
            let mut arguments = self.arguments()?;
            arguments.add(keys.iter().map(|(uid, _, _)| uid.0).collect::<Vec<_>>())?;
            arguments.add(
                keys.iter()
                    .map(|(_, epoch, _)| integer(epoch.0))
                    .collect::<Vec<_>>(),
            )?;
            arguments.add(keys.iter().map(|(_, _, id)| integer(id.0)).collect::<Vec<_>>())?;
            self.execute(&self.statements.replace, arguments).await?;
        }
        Ok(())
    }

    async fn cut(&mut self, uids: &[Uid], aged: Option<i64>) -> Result<(), Failure> {
        for uid in uids {
            let mut arguments = self.arguments()?;
            arguments.add(uid.0)?;
            self.execute(&self.statements.prune_resource, arguments).await?;
        }
        if let Some(now) = aged {
            let mut arguments = self.arguments()?;
            arguments.add(now - HISTORY_SIGHTING_MS)?;
            arguments.add(HISTORY_AGE_MS)?;
            self.execute(&self.statements.prune_age, arguments).await?;
        }
        Ok(())
    }

    /// Notifies readers in other processes once the transaction is committed.
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
