//! Transactions that write commits to SQLite.

use std::collections::HashMap;
use std::sync::Arc;

use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteQueryResult};
use sqlx::{Arguments, AssertSqlSafe};
use watershed_core::{Commit, CommitError, Uid};

use super::super::columns::{HISTORY, RESOURCE, integer};
use super::super::cuts::{Cuts, Failure};
use super::super::{HISTORY_AGE_MS, HISTORY_SIGHTING_MS, parted, removes, replaced};
use super::dialect::{self, uid_bytes};
use super::statements::Statements;
use crate::failpoints::{COMMIT_WITHIN, crash_point};

/// The only connection that writes.
///
/// Its transactions are begun and ended by statements of ours. A write that fails for want of room has SQLite end the
/// transaction by itself; sqlx, which counts them, would take it for open and begin no other.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) connection: SqliteConnection,
    /// True if a transaction was begun that may not have ended.
    is_begun: bool,
    cuts: HashMap<Arc<str>, Cuts>,
}

impl Writer {
    pub(super) fn new(connection: SqliteConnection) -> Self {
        Self {
            connection,
            is_begun: false,
            cuts: HashMap::new(),
        }
    }

    /// Begins a write transaction, after rolling back one that may be open.
    ///
    /// # Errors
    /// What the database says. Asked again, it begins anew.
    pub(super) async fn begin(&mut self) -> Result<(), sqlx::Error> {
        self.undo().await;
        self.is_begun = true;
        self.run("BEGIN IMMEDIATE").await
    }

    /// Commits the transaction.
    pub(super) async fn end(&mut self) -> Result<(), sqlx::Error> {
        self.run("COMMIT").await?;
        self.is_begun = false;
        Ok(())
    }

    /// Rolls back an open transaction. An error is ignored, because SQLite may have ended it by itself.
    pub(super) async fn undo(&mut self) {
        if std::mem::take(&mut self.is_begun)
            && let Err(error) = self.run("ROLLBACK").await
        {
            tracing::debug!(%error, "there was nothing to roll back");
        }
    }

    async fn run(&mut self, sql: &'static str) -> Result<(), sqlx::Error> {
        sqlx::raw_sql(sql).execute(&mut self.connection).await.map(drop)
    }

    /// Writes a commit in one transaction, if the instance still has its epoch.
    pub(super) async fn commit(
        &mut self,
        statements: &Statements,
        instance: &Arc<str>,
        commit: &Commit,
    ) -> Result<(), CommitError> {
        let committed = self.try_commit(statements, instance, commit).await;
        if committed.is_err() {
            self.undo().await;
        }
        Ok(committed?)
    }

    async fn try_commit(
        &mut self,
        statements: &Statements,
        instance: &Arc<str>,
        commit: &Commit,
    ) -> Result<(), Failure> {
        let cuts = self.cuts.entry(Arc::clone(instance)).or_default();
        let (to_cut, to_age) = (cuts.due(&commit.history), cuts.age_due(&commit.history));
        self.begin().await?;
        let mut batch = Batch {
            connection: &mut self.connection,
            statements,
            instance,
            commit,
        };
        batch.advance().await?;
        batch.write().await?;
        batch.record().await?;
        batch.cut(&to_cut).await?;
        if let Some(now) = to_age {
            batch.age(now).await?;
        }
        crash_point(COMMIT_WITHIN);
        self.end().await?;
        let cuts = self.cuts.entry(Arc::clone(instance)).or_default();
        cuts.done(&commit.history, &to_cut, to_age);
        Ok(())
    }
}

/// Statements of one transaction.
struct Batch<'a> {
    connection: &'a mut SqliteConnection,
    statements: &'a Statements,
    instance: &'a str,
    commit: &'a Commit,
}

impl Batch<'_> {
    /// Advances the revision, which fails without the lease.
    async fn advance(&mut self) -> Result<(), Failure> {
        let mut arguments = self.arguments()?;
        arguments.add(integer(self.commit.revision.0))?;
        arguments.add(integer(self.commit.epoch.0))?;
        arguments.add(removes(self.commit))?;
        let advanced = self.execute(&self.statements.advance, arguments).await?;
        Failure::unless_moved(advanced.rows_affected())
    }

    async fn write(&mut self) -> Result<(), Failure> {
        let (puts, removes) = parted(self.commit);
        for (sql, rows) in self.statements.put.cut(&puts) {
            let mut arguments = SqliteArguments::default();
            arguments.reserve(rows.size_hint().0 * (2 + RESOURCE.len()), 0);
            for row in rows {
                arguments.add(self.instance)?;
                arguments.add(integer(self.commit.epoch.0))?;
                dialect::bind(&RESOURCE, row, &mut arguments)?;
            }
            self.execute(&sql, arguments).await?;
        }
        for (sql, uids) in self.statements.remove.cut(&removes) {
            let mut arguments = self.arguments()?;
            for uid in uids {
                arguments.add(uid_bytes(*uid))?;
            }
            self.execute(&sql, arguments).await?;
        }
        Ok(())
    }

    async fn record(&mut self) -> Result<(), Failure> {
        for (sql, entries) in self.statements.record.cut(&self.commit.history) {
            let mut arguments = SqliteArguments::default();
            for entry in entries {
                arguments.add(self.instance)?;
                arguments.add(integer(self.commit.epoch.0))?;
                arguments.add(integer(self.commit.revision.0))?;
                dialect::bind(&HISTORY, entry, &mut arguments)?;
            }
            self.execute(&sql, arguments).await?;
        }
        for (sql, keys) in self.statements.replace.cut(&replaced(self.commit)) {
            let mut arguments = self.arguments()?;
            for (uid, epoch, invocation) in keys {
                arguments.add(uid_bytes(*uid))?;
                arguments.add(integer(epoch.0))?;
                arguments.add(integer(invocation.0))?;
            }
            self.execute(&sql, arguments).await?;
        }
        Ok(())
    }

    async fn cut(&mut self, uids: &[Uid]) -> Result<(), Failure> {
        for uid in uids {
            let mut arguments = self.arguments()?;
            arguments.add(uid_bytes(*uid))?;
            self.execute(&self.statements.prune_resource, arguments).await?;
        }
        Ok(())
    }

    async fn age(&mut self, now: i64) -> Result<(), Failure> {
        let mut arguments = self.arguments()?;
        arguments.add(now - HISTORY_SIGHTING_MS)?;
        arguments.add(HISTORY_AGE_MS)?;
        self.execute(&self.statements.prune_age, arguments).await?;
        Ok(())
    }

    fn arguments(&self) -> Result<SqliteArguments, Failure> {
        let mut arguments = SqliteArguments::default();
        arguments.add(self.instance)?;
        Ok(arguments)
    }

    async fn execute(
        &mut self,
        sql: &Arc<str>,
        arguments: SqliteArguments,
    ) -> Result<SqliteQueryResult, sqlx::Error> {
        sqlx::query_with(AssertSqlSafe(Arc::clone(sql)), arguments)
            .execute(&mut *self.connection)
            .await
    }
}
