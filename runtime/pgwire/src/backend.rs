//! Those who answer: who may sign in, and what a statement reads.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use watershed_api::Problem;
use watershed_callers::Verifier;
use watershed_drivers::olap::{QueryError, Rows};

/// The users and databases of a server.
pub trait Backend: Send + Sync + 'static {
    /// Returns the verifier of a user's secret; none for a user who is unknown or has no secret.
    fn verifier(&self, user: &str) -> Option<Verifier>;

    /// Records that somebody failed to prove who they are.
    ///
    /// # Errors
    /// When this address has failed too often.
    fn failed(&self, address: Option<IpAddr>) -> Result<(), Problem>;

    /// Opens a database for a user who has proved the secret of a verifier. Since the verifier was asked for, the user may have
    /// been revoked, or be another under the same name: whoever answers looks again.
    ///
    /// # Errors
    /// When the user may not read there, which looks as if there were no such database.
    fn open(&self, user: &str, proved: &Verifier, database: &str) -> Result<Box<dyn Session>, Problem>;
}

/// A user's access to a database.
pub trait Session: Send + Sync {
    /// Runs a statement that reads, up to a number of rows.
    ///
    /// # Errors
    /// Those of the statement, in words that the user may read.
    fn run<'a>(
        &'a self,
        sql: String,
        limit: Option<u64>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Answer, Problem>>;

    /// Returns the engine's types of a statement's parameters, by their numbers, as far as they follow from the statement. One that
    /// can't be read has none: whoever runs the statement says why. The first form is the statement; in the form N its
    /// parameter N stands alone, as `$1`.
    ///
    /// # Errors
    /// When too many ask already.
    fn parameters<'a>(
        &'a self,
        forms: Vec<String>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<BTreeMap<usize, String>, Problem>>;

    /// Looks for names without a schema in these schemas first, from now on.
    fn look_in(&self, schemas: Vec<String>);

    /// Returns the token that is cancelled when the user's access is revoked.
    fn ended(&self) -> CancellationToken;

    /// Returns the time until the user's access expires.
    fn expires_in(&self) -> Duration;
}

/// A place among the readers, which is kept as long as rows are read.
pub trait Place: Send {
    /// Gives the place back while the client takes no rows. Returns false where too many wait so already: the place is kept.
    fn leave(&mut self) -> bool;

    /// Waits for the place that was given back.
    ///
    /// # Cancel safety
    /// Dropping the future gives nothing away: the place can be waited for again.
    fn enter(&mut self) -> BoxFuture<'_, ()>;
}

/// Returns the problem of an error that came between rows, in words that the user may read.
pub type Words = Box<dyn Fn(&QueryError) -> Problem + Send + Sync>;

/// The rows of a statement.
pub struct Answer {
    /// The rows, as the engine makes them.
    pub rows: Rows,
    /// The words for errors that come between rows.
    pub words: Words,
    /// The place of the reader, dropped with the last row.
    pub place: Box<dyn Place>,
}

/// Bounds of a session.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The time for all that comes before the first statement.
    pub opening: Duration,
    /// The longest message, in bytes.
    pub message_bytes: usize,
    /// The time after which a session that asks nothing ends.
    pub idle: Duration,
    /// The time after which a transaction that asks nothing ends, with its session.
    pub idle_in_transaction: Duration,
    /// The time after which a client that takes nothing is left.
    pub takes_nothing: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            opening: Duration::from_secs(10),
            message_bytes: 1 << 20,
            // Pools of clients keep sessions for half an hour, and each costs little.
            idle: Duration::from_secs(3_600),
            idle_in_transaction: Duration::from_secs(60),
            takes_nothing: Duration::from_secs(30),
        }
    }
}
