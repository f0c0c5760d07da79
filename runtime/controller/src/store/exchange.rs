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

/// A call that is left for the holder. Its text is JSON.
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
    /// Fresh; asking twice with one id is asking once.
    pub id: Uuid,
    /// The call.
    pub call: String,
}

/// A call as the holder finds it.
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
    /// Its id.
    pub id: Uuid,
    /// The call.
    pub call: String,
    /// The answer of an earlier holder before it was gone: that the request stands.
    pub first: Option<String>,
}

/// Answers to one call, by holder or for its caller; none is not given yet. Texts are JSON.
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
    /// The id of the call.
    pub id: Uuid,
    /// The answer, or that a request stands.
    pub first: Option<String>,
    /// The outcome of a request.
    pub outcome: Option<String>,
    /// That everything below has settled.
    pub settled: Option<String>,
    /// No more answers will come.
    pub done: bool,
    /// The catalog's revision that the answers speak of.
    pub revision: Revision,
}

/// The commits after a revision, all of one moment.
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
    /// The revision now.
    pub revision: Revision,
    /// Rows that are new or changed.
    pub rows: Vec<Arc<Row>>,
    /// Resources that went, with the revision of that.
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
    /// Calls that are left for the holder.
    Calls,
    /// Commits, and answers to this caller.
    Answers(Uuid),
}

/// Wakes a process; now and then for nothing.
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
    /// Waits until something of interest has happened, or may have.
    ///
    /// Cancel-safe.
    fn next(&mut self) -> BoxFuture<'_, ()>;
}

/// One instance as its processes see it that do not, or not yet, hold it.
///
/// ```
/// use watershed_controller::store::{MemoryStore, Store};
///
/// // A store in memory is no place for several processes; `PostgresStore` is one.
/// assert!(MemoryStore::new().exchange("default").is_none());
/// ```
pub trait Exchange: fmt::Debug + Send + Sync + 'static {
    /// The whole catalog, with the revision at which something was last removed.
    fn read(&self) -> BoxFuture<'_, Result<(Stored, Revision), StoreError>>;

    /// Reads the commits after `from`; none if that is too long ago to be told apart from the whole.
    fn later(&self, from: Revision) -> BoxFuture<'_, Result<Option<Delta>, StoreError>>;

    /// As [`Catalog::history`](super::Catalog::history).
    fn history(&self, uid: Uid, limit: u32) -> BoxFuture<'_, Result<Vec<HistoryRow>, StoreError>>;

    /// As [`Catalog::recent`](super::Catalog::recent).
    fn recent(&self, limit: u32) -> BoxFuture<'_, Result<Vec<HistoryRow>, StoreError>>;

    /// Leaves calls for the holder, in this order, and wakes it; also without any.
    fn submit<'a>(&'a self, caller: Uuid, calls: &'a [RemoteCall]) -> BoxFuture<'a, Result<(), StoreError>>;

    /// All calls of a caller that are there, with the answers so far.
    fn answers(&self, caller: Uuid) -> BoxFuture<'_, Result<Vec<Answers>, StoreError>>;

    /// Takes calls back that no holder has taken; says which.
    fn withdraw<'a>(&'a self, calls: &'a [Uuid]) -> BoxFuture<'a, Result<Vec<Uuid>, StoreError>>;

    /// Forgets calls: their answers were read, or are of no use.
    fn forget<'a>(&'a self, calls: &'a [Uuid]) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Says that a caller is still there.
    fn touch(&self, caller: Uuid) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Takes calls that no holder of this epoch has taken, in the order in which they came, at most `limit`.
    fn claim(&self, epoch: Epoch, limit: u32) -> BoxFuture<'_, Result<Vec<ClaimedCall>, StoreError>>;

    /// Answers calls that this epoch took, and wakes their callers.
    fn answer<'a>(&'a self, epoch: Epoch, given: &'a [Answers]) -> BoxFuture<'a, Result<(), CommitError>>;

    /// Forgets the calls of callers that are long gone; the ids of those that are open.
    fn clean_up(&self) -> BoxFuture<'_, Result<Vec<Uuid>, StoreError>>;

    /// Wakes a process from now on.
    fn follow(&self, interest: Interest) -> Box<dyn Wake>;
}
