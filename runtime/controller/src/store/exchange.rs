//! The exchange between the processes of one instance, through its store.
//!
//! One process holds the instance. The others follow what it commits, and leave their calls where it finds them: a
//! call is a row, taken by the holder, answered in the very transaction that carries it out. So a holder that dies
//! before has done nothing, and the next one takes the call; one that dies after has answered it.

use std::fmt;
use std::sync::Arc;

use uuid::Uuid;
use watershed_core::{CommitError, Epoch, HistoryRow, Revision, Row, Stored, Uid};

use super::{BoxFuture, StoreError};

/// A call that is left for the leader, as JSON.
///
/// ```
/// use watershed_controller::store::exchange::RemoteCall;
///
/// let asked = RemoteCall { id: uuid::Uuid::from_u128(1), call: "{}".into() };
/// let again = asked.clone();
/// assert_eq!(asked.id, again.id, "asking twice with one id is asking once");
/// ```
#[derive(Debug, Clone)]
pub struct RemoteCall {
    /// A fresh id. Submitting an id twice counts once.
    pub id: Uuid,
    /// The request to the leader, encoded as JSON.
    pub call: String,
}

/// A call of another process that the leader has taken over.
///
/// ```
/// use watershed_controller::store::exchange::{RemoteCall, ClaimedCall};
///
/// let asked = RemoteCall { id: uuid::Uuid::from_u128(1), call: "{}".into() };
/// let taken = ClaimedCall { id: asked.id, call: asked.call, first: None };
/// assert!(taken.first.is_none(), "no holder before this one has answered it");
/// ```
#[derive(Debug, Clone)]
pub struct ClaimedCall {
    /// Id that the caller assigned.
    pub id: Uuid,
    /// The request, encoded as JSON.
    pub call: String,
    /// First answer of an earlier leader as JSON: the request is recorded. None if there was no answer yet.
    pub first: Option<String>,
}

/// Answers to one call, as JSON; none for those not given yet.
///
/// ```
/// use watershed_controller::resource::Revision;
/// use watershed_controller::store::Answers;
///
/// let id = uuid::Uuid::from_u128(1);
/// let given = Answers { id, first: Some("{}".into()), revision: Revision(7), ..Answers::default() };
/// assert!(given.outcome.is_none() && !given.done, "more is to come");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answers {
    /// Id of the answered call.
    pub id: Uuid,
    /// Result, or the confirmation that a request is recorded; none before that.
    pub first: Option<String>,
    /// Outcome of a requested run; none before it is known.
    pub outcome: Option<String>,
    /// Answer that everything below has settled; none before that.
    pub settled: Option<String>,
    /// True if no more answers will come.
    pub done: bool,
    /// Revision of the catalog for which the answers are valid.
    pub revision: Revision,
}

/// The changes after a revision, as of one moment.
///
/// ```
/// use watershed_controller::resource::Revision;
/// use watershed_controller::store::exchange::Delta;
///
/// let nothing = Delta { revision: Revision(7), ..Delta::default() };
/// assert!(nothing.rows.is_empty() && nothing.removed.is_empty());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Delta {
    /// Present revision of the catalog.
    pub revision: Revision,
    /// New and changed rows.
    pub rows: Vec<Arc<Row>>,
    /// Removed resources, each with the revision of its removal.
    pub removed: Vec<(Uid, Revision)>,
}

/// The events that a process wants to be woken for.
///
/// ```
/// use watershed_controller::store::exchange::Interest;
///
/// let caller = uuid::Uuid::from_u128(1);
/// assert_ne!(Interest::Answers(caller), Interest::Calls);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Calls that are left for the leader.
    Calls,
    /// Commits, and answers to this caller.
    Answers(Uuid),
}

/// A source of wake-ups for a process, some of which may be spurious.
///
/// ```
/// use std::time::Duration;
/// use watershed_controller::store::BoxFuture;
/// use watershed_controller::store::exchange::Wake;
///
/// /// For a store that can't tell: looks every second.
/// #[derive(Debug)]
/// struct EverySecond;
///
/// impl Wake for EverySecond {
///     fn next(&mut self) -> BoxFuture<'_, ()> {
///         Box::pin(tokio::time::sleep(Duration::from_secs(1)))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// # tokio::time::pause();
/// let before = tokio::time::Instant::now();
/// EverySecond.next().await;
/// assert!(before.elapsed() >= Duration::from_secs(1));
/// # }
/// ```
pub trait Wake: fmt::Debug + Send {
    /// Waits until an event of interest has happened, or may have.
    ///
    /// Cancel-safe.
    fn next(&mut self) -> BoxFuture<'_, ()>;
}

/// An instance as seen by processes that don't lead it, with the calls that they leave for the leader.
///
/// ```
/// use watershed_controller::store::{MemoryStore, Store};
///
/// // A store in memory is no place for several processes; `PostgresStore` is one.
/// assert!(MemoryStore::new().exchange("default").is_none());
/// ```
pub trait Exchange: fmt::Debug + Send + Sync + 'static {
    /// Reads the whole catalog, with the revision at which a resource was last removed.
    fn read(&self) -> BoxFuture<'_, Result<(Stored, Revision), StoreError>>;

    /// Reads the changes after `from`; none if that is so long ago that the whole catalog must be read.
    fn later(&self, from: Revision) -> BoxFuture<'_, Result<Option<Delta>, StoreError>>;

    /// Reads the newest history of a resource, as [`Catalog::history`](super::Catalog::history) does.
    fn history(&self, uid: Uid, limit: u32) -> BoxFuture<'_, Result<Vec<HistoryRow>, StoreError>>;

    /// Reads the newest history of the instance, as [`Catalog::recent`](super::Catalog::recent) does.
    fn recent(&self, limit: u32) -> BoxFuture<'_, Result<Vec<HistoryRow>, StoreError>>;

    /// Leaves calls for the leader, in this order, and wakes it, even if there are none.
    fn submit<'a>(&'a self, caller: Uuid, calls: &'a [RemoteCall]) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Reads all stored calls of a caller, with the answers so far.
    fn answers(&self, caller: Uuid) -> BoxFuture<'_, Result<Vec<Answers>, StoreError>>;

    /// Withdraws the calls that no leader has claimed; returns their ids.
    fn withdraw<'a>(&'a self, calls: &'a [Uuid]) -> BoxFuture<'a, Result<Vec<Uuid>, StoreError>>;

    /// Removes calls whose answers were read, or are not needed.
    fn forget<'a>(&'a self, calls: &'a [Uuid]) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Records that a caller is still alive.
    fn touch(&self, caller: Uuid) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Claims calls that no leader of this epoch has claimed yet, in order of arrival, at most `limit`.
    fn claim(&self, epoch: Epoch, limit: u32) -> BoxFuture<'_, Result<Vec<ClaimedCall>, StoreError>>;

    /// Stores answers to calls that this epoch claimed, and wakes their callers.
    fn answer<'a>(&'a self, epoch: Epoch, given: &'a [Answers]) -> BoxFuture<'a, Result<(), CommitError>>;

    /// Removes the calls of callers that are long gone; returns the ids of those that are open.
    fn clean_up(&self) -> BoxFuture<'_, Result<Vec<Uuid>, StoreError>>;

    /// Returns a source of wake-ups for this interest, from now on.
    fn follow(&self, interest: Interest) -> Box<dyn Wake>;
}
