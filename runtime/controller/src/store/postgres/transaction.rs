//! Transactions that end with the future that began them.

use std::ops::{Deref, DerefMut};

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{Executor as _, Postgres};

/// A transaction on a connection of the pool. Unless it is committed, the connection is closed, so that the server
/// rolls back.
///
/// Used instead of `sqlx`'s own, which loses track of a transaction whose `BEGIN` is cancelled while the server's
/// answer is on its way: that connection goes back to the pool with a transaction that nobody ends, and every lock that
/// a later borrower takes, such as the one on the lease, is kept.
pub(super) struct Transaction {
    connection: PoolConnection<Postgres>,
    is_over: bool,
}

impl Transaction {
    pub(super) async fn begin(pool: &PgPool) -> Result<Self, sqlx::Error> {
        Self::begin_with(pool, "BEGIN").await
    }

    /// Begins a transaction with a statement, which may set an isolation level.
    pub(super) async fn begin_with(pool: &PgPool, statement: &'static str) -> Result<Self, sqlx::Error> {
        let connection = pool.acquire().await?;
        // From here on, whatever drops this future closes the connection.
        let mut transaction = Self {
            connection,
            is_over: false,
        };
        transaction.connection.execute(statement).await?;
        Ok(transaction)
    }

    /// Commits. If this fails or is cancelled, the transaction may or may not have been committed.
    pub(super) async fn commit(mut self) -> Result<(), sqlx::Error> {
        self.connection.execute("COMMIT").await?;
        self.is_over = true;
        Ok(())
    }
}

impl Deref for Transaction {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if !self.is_over {
            self.connection.close_on_drop();
        }
    }
}
