//! Writing one commit.

use std::collections::HashMap;
use std::sync::Arc;

use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteQueryResult};
use sqlx::{Arguments, AssertSqlSafe, Connection};
use watershed_core::{Commit, CommitError, HistoryRow, InvocationId, Row, Uid, Write};

use super::super::{ColumnError, HISTORY_AGE_MS, HISTORY_PER_RESOURCE, removes};
use super::columns::{self, integer, uid_bytes};
use super::statements::Statements;
use crate::crash::{COMMIT_WITHIN, crash_point};

/// Entries of history that a resource may have beyond its bound before they are looked for: the search costs more
/// than the entries.
const HISTORY_SLACK: u32 = 32;

/// How far apart, by the times of what is written, old history is looked for: an hour.
const AGE_INTERVAL_MS: i64 = 60 * 60 * 1000;

/// The one connection that writes.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) connection: SqliteConnection,
    /// By resource, entries written since its history was last cut. One that is not here was not cut by us yet.
    since_cut: HashMap<Uid, u32>,
    /// When old history was last looked for, by instance.
    aged_at: HashMap<Arc<str>, i64>,
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

impl Writer {
    pub(super) fn new(connection: SqliteConnection) -> Self {
        Self {
            connection,
            since_cut: HashMap::new(),
            aged_at: HashMap::new(),
        }
    }

    /// Writes a commit in one transaction, if the instance still has its epoch.
    pub(super) async fn commit(
        &mut self,
        statements: &Statements,
        instance: &Arc<str>,
        commit: &Commit,
    ) -> Result<(), CommitError> {
        self.try_commit(statements, instance, commit)
            .await
            .map_err(|failure| match failure {
                Failure::LeaseLost => CommitError::LeaseLost,
                Failure::Failed(message) => CommitError::Failed(message),
            })
    }

    async fn try_commit(
        &mut self,
        statements: &Statements,
        instance: &Arc<str>,
        commit: &Commit,
    ) -> Result<(), Failure> {
        let to_cut = self.to_cut(&commit.history);
        let to_age = self.to_age(instance, &commit.history);
        let mut transaction = self.connection.begin_with("BEGIN IMMEDIATE").await?;
        let mut batch = Batch {
            connection: &mut transaction,
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
        transaction.commit().await?;
        self.was_cut(&commit.history, &to_cut);
        if let Some(now) = to_age {
            self.aged_at.insert(Arc::clone(instance), now);
        }
        Ok(())
    }

    /// The resources whose history may be longer than its bound.
    fn to_cut(&self, history: &[HistoryRow]) -> Vec<Uid> {
        let mut uids: Vec<Uid> = history.iter().map(|entry| entry.uid).collect();
        uids.sort_unstable();
        uids.dedup();
        uids.retain(|uid| {
            self.since_cut
                .get(uid)
                .is_none_or(|written| *written >= HISTORY_SLACK)
        });
        uids
    }

    fn was_cut(&mut self, history: &[HistoryRow], cut: &[Uid]) {
        for entry in history {
            *self.since_cut.entry(entry.uid).or_default() += 1;
        }
        for uid in cut {
            self.since_cut.insert(*uid, 0);
        }
    }

    /// The time of the commit if it is time to look for old history.
    fn to_age(&self, instance: &Arc<str>, history: &[HistoryRow]) -> Option<i64> {
        let now = history.last()?.ended_at.0;
        let due = self
            .aged_at
            .get(instance)
            .is_none_or(|last| now - last > AGE_INTERVAL_MS);
        due.then_some(now)
    }
}

/// The statements of one transaction.
struct Batch<'a> {
    connection: &'a mut SqliteConnection,
    statements: &'a Statements,
    instance: &'a str,
    commit: &'a Commit,
}

impl Batch<'_> {
    /// Moves the revision, which fails without the lease.
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
        let mut removes: Vec<Uid> = Vec::new();
        for write in self.commit.writes.iter() {
            match write {
                Write::Put(row) => puts.push(row),
                Write::Remove(uid) => removes.push(*uid),
            }
        }
        for (sql, rows) in self.statements.put.cut(&puts) {
            let mut arguments = SqliteArguments::default();
            arguments.reserve(rows.len() * (2 + columns::COLUMNS.len()), 0);
            for row in rows {
                arguments.add(self.instance)?;
                arguments.add(integer(self.commit.epoch.0))?;
                columns::bind(row, &mut arguments)?;
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
                arguments.add(uid_bytes(entry.uid))?;
                arguments.add(invocation(entry.invocation))?;
                arguments.add(integer(self.commit.revision.0))?;
                arguments.add(entry.key.kind.as_str())?;
                arguments.add(entry.key.name.as_str())?;
                arguments.add(entry.ended_at.0)?;
                arguments.add(columns::json(entry).map_err(ColumnError::from)?)?;
            }
            self.execute(&sql, arguments).await?;
        }
        Ok(())
    }

    async fn cut(&mut self, uids: &[Uid]) -> Result<(), Failure> {
        for uid in uids {
            let mut arguments = self.arguments()?;
            arguments.add(uid_bytes(*uid))?;
            arguments.add(HISTORY_PER_RESOURCE)?;
            self.execute(&self.statements.prune_resource, arguments).await?;
        }
        Ok(())
    }

    async fn age(&mut self, now: i64) -> Result<(), Failure> {
        let mut arguments = self.arguments()?;
        arguments.add(now - HISTORY_AGE_MS)?;
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

/// A forced delete has no invocation and is the last entry of its resource.
fn invocation(id: Option<InvocationId>) -> i64 {
    id.map_or(i64::MAX, |id| integer(id.0))
}
