//! Context of an invocation: its inputs, and a reconciler's operations.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use watershed_core::{
    Answer, Call, Epoch, InvocationId, Key, Name, OwnedView, Phase, RefView, Refreshes, Row, Start,
    StateVersion, Timestamp, Uid,
};

use crate::handle::{Handle, answered};
use crate::inbox::call::{Caller, Command, Reply, Signal};
use crate::inbox::shared::Shared;
use crate::sync::flag_cell::FlagCell;
use crate::sync::{AtomicBool, Mutex, Unpoisoned};
use crate::types::error::SetStateError;
use crate::types::message;
use crate::types::observer::InvocationObserver;
use crate::workers::reconciler::Reconciler;

/// An invocation as its reconciler sees it: a snapshot of the resource and its refs at the start, and operations. Cheap
/// to clone.
///
/// Nothing in the snapshot moves while the invocation runs: the controller runs nothing that it reads.
///
/// ```
/// use std::time::Duration;
/// use watershed_controller::{Context, Error, Outcome, Reconciler, Resource, json_message};
///
/// #[derive(PartialEq, serde::Serialize, serde::Deserialize)]
/// struct Total(u64);
/// json_message!(Total, format = 1);
///
/// /// Adds up the totals that a resource reads.
/// struct Adder;
///
/// impl Reconciler for Adder {
///     type Spec = Total;
///     type State = Total;
///
///     async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
///         let mut total = context.spec().0;
///         for view in context.refs() {
///             let read = view.target.as_deref().map(Resource::state_of::<Total>).and_then(Result::ok).flatten();
///             total += read.map_or(0, |read| read.0);
///         }
///         tokio::select! {
///             () = context.cancellation().cancelled() => return Ok(Outcome::default()),
///             () = tokio::time::sleep(Duration::from_millis(10)) => {} // Something that takes its time.
///         }
///         if context.state() == Some(&Total(total)) {
///             return Ok(Outcome::default());
///         }
///         context.set_state(&Total(total)).await?;
///         Ok(Outcome::changed().requeue_after(Duration::from_secs(24 * 60 * 60)))
///     }
/// }
/// ```
pub struct Context<R: Reconciler> {
    snapshot: Arc<Snapshot<R::Spec, R::State>>,
    channel: Arc<InvocationChannel>,
}

/// Inputs of an invocation, which don't change while it runs. Typed by the messages and not by the reconciler, so that
/// reconcilers which wrap each other share it.
struct Snapshot<Spec, State> {
    start: Box<Start>,
    spec: Spec,
    state: Option<State>,
}

impl<R: Reconciler> Clone for Context<R> {
    fn clone(&self) -> Self {
        Self {
            snapshot: Arc::clone(&self.snapshot),
            channel: Arc::clone(&self.channel),
        }
    }
}

impl<R: Reconciler> fmt::Debug for Context<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("start", &self.snapshot.start)
            .finish_non_exhaustive()
    }
}

/// Inputs of the invocation, as of its start.
impl<R: Reconciler> Context<R> {
    /// Returns the desired spec, as of the start.
    pub fn spec(&self) -> &R::Spec {
        &self.snapshot.spec
    }

    /// Returns the stored state as of the start; none before the first is written.
    pub fn state(&self) -> Option<&R::State> {
        self.snapshot.state.as_ref()
    }

    /// Returns the stored row of the resource.
    pub fn row(&self) -> &Row {
        &self.snapshot.start.resource
    }

    /// Returns the uid of the resource, which survives renames.
    pub fn uid(&self) -> Uid {
        self.row().uid
    }

    /// Returns the present name of the resource.
    pub fn name(&self) -> &Name {
        &self.row().name
    }

    /// Returns every name since the last completed rename, oldest first; empty if there is only the present one.
    pub fn former_names(&self) -> &[Name] {
        &self.row().intents.former_names
    }

    /// Returns the counters of requested refreshes. A reconciler stores those that it has answered in its state.
    pub fn refreshes(&self) -> Refreshes {
        self.row().refreshes
    }

    /// Returns the refs in their order, each with its target. Empty for deletes and renames.
    pub fn refs(&self) -> &[RefView] {
        &self.snapshot.start.refs
    }

    /// Returns the ref to this name, if the resource has one.
    pub fn reference(&self, key: &Key) -> Option<&RefView> {
        self.refs()
            .iter()
            .find(|view| view.reference.kind == key.kind && view.reference.name == key.name)
    }

    /// Returns the owned resources, in order of kind and name, including those that are being deleted. Empty for
    /// deletes and renames, and for kinds whose [`KindOptions::on_owned`](watershed_core::KindOptions::on_owned)
    /// requests nothing.
    pub fn owned(&self) -> &[OwnedView] {
        &self.snapshot.start.owned
    }

    /// Returns the phase, and so the method of the reconciler that runs.
    pub fn phase(&self) -> Phase {
        self.snapshot.start.phase
    }

    /// Returns the id of this invocation, unique within its epoch.
    pub fn invocation(&self) -> InvocationId {
        self.snapshot.start.invocation
    }

    /// Returns the epoch of the controller, to fence operations outside: a later leader has a higher one.
    pub fn epoch(&self) -> Epoch {
        self.snapshot.start.epoch
    }

    /// Returns the same invocation for another reconciler with the same messages.
    ///
    /// A reconciler that wraps another one (to trace it, to limit it, to test it) calls the inner one with it:
    ///
    /// ```
    /// # use watershed_controller::{Context, Error, Outcome, Reconciler};
    /// struct Traced<R>(R);
    ///
    /// impl<R: Reconciler> Reconciler for Traced<R> {
    ///     type Spec = R::Spec;
    ///     type State = R::State;
    ///
    ///     async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
    ///         tracing::debug!(name = %context.name(), "reconciling");
    ///         self.0.reconcile(context.delegate()).await
    ///     }
    /// }
    /// ```
    pub fn delegate<Q>(&self) -> Context<Q>
    where
        Q: Reconciler<Spec = R::Spec, State = R::State>,
    {
        Context {
            snapshot: Arc::clone(&self.snapshot),
            channel: Arc::clone(&self.channel),
        }
    }
}

/// Operations that a reconciler may perform during an invocation.
impl<R: Reconciler> Context<R> {
    /// Returns the token that is cancelled when the invocation should end early.
    pub fn cancellation(&self) -> &CancellationToken {
        self.channel.cancellation()
    }

    /// Returns true if the invocation should end early.
    pub fn is_cancelled(&self) -> bool {
        self.channel.is_cancelled()
    }

    /// Returns true if a caller cancelled the run, so that no other run follows unless somebody asks for one: what the run
    /// leaves going on outside the process has to be stopped by this one. A cancel for another reason that came first
    /// hides one by a caller.
    pub fn is_cancelled_by_caller(&self) -> bool {
        self.channel.is_cancelled() && self.channel.by_caller.load(Ordering::SeqCst)
    }

    /// Writes the resource's state. Accepted even after a cancel, until the invocation returns.
    ///
    /// Returns once the write is queued. Writes of one invocation keep their order and become durable with the next
    /// commit, for which [`committed`](Self::committed) waits; after a crash before that, the resource is reconciled
    /// again. At most one write of an invocation is queued, so a second waits for the first.
    ///
    /// Cancel-safe: a dropped future has written all or nothing.
    pub async fn set_state(&self, state: &R::State) -> Result<(), SetStateError> {
        self.write_state(state, None).await
    }

    /// Writes the resource's state as [`set_state`](Self::set_state) does, but only if the present state has this
    /// version.
    pub async fn replace_state(&self, expected: StateVersion, state: &R::State) -> Result<(), SetStateError> {
        self.write_state(state, Some(expected)).await
    }

    async fn write_state(
        &self,
        state: &R::State,
        expected: Option<StateVersion>,
    ) -> Result<(), SetStateError> {
        let call = Call::WriteState {
            state: message::encode(state)?.into(),
            expected,
        };
        let mut on_the_way = self.channel.state_write.lock().await;
        wait_for(&mut on_the_way).await?;
        let (reply, answer) = oneshot::channel();
        let id = self.channel.shared.call_id();
        let command = Command {
            id,
            by: Some(self.by()),
            call,
            reply: Reply::Once(reply),
            sent: Instant::now(),
        };
        // A loop that has ended drops the reply, which the wait for the commit reports.
        self.channel.signal(Signal::WriteState(command));
        *on_the_way = Some(answer);
        Ok(())
    }

    /// Waits until every state written by this invocation is durable or refused.
    ///
    /// Cancel-safe.
    pub async fn committed(&self) -> Result<(), SetStateError> {
        wait_for(&mut *self.channel.state_write.lock().await).await
    }

    /// Returns the wall time of the controller's clock, which is simulated in tests. Requeue times are based on it.
    pub fn now(&self) -> Timestamp {
        self.channel.now()
    }

    /// Reports the progress of the invocation: shown to people, not stored. Only the latest text counts.
    pub fn progress(&self, text: impl Into<Arc<str>>) {
        let text = text.into();
        tracing::info!("{text}");
        self.channel.leave_progress(self.invocation(), text);
    }

    /// Returns a handle for reads and edits. Edits are refused once the invocation is cancelled or has returned; waits
    /// for a reconcile are always refused.
    pub fn controller(&self) -> Handle {
        Handle::inside(Arc::clone(&self.channel.shared), self.by())
    }

    fn by(&self) -> Caller {
        Caller {
            epoch: self.epoch(),
            invocation: self.invocation(),
        }
    }
}

impl<R: Reconciler> Context<R> {
    pub(crate) fn new(
        start: Box<Start>,
        spec: R::Spec,
        state: Option<R::State>,
        channel: Arc<InvocationChannel>,
    ) -> Self {
        Self {
            snapshot: Arc::new(Snapshot { start, spec, state }),
            channel,
        }
    }
}

async fn wait_for(on_the_way: &mut Option<oneshot::Receiver<Answer>>) -> Result<(), SetStateError> {
    if let Some(answer) = on_the_way {
        let answer = answered(answer).await;
        *on_the_way = None;
        answer?;
    }
    Ok(())
}

/// The channel between an invocation and the loop, held by both sides.
#[derive(Debug)]
pub(crate) struct InvocationChannel {
    /// Flag of a cancel, and the token that is created when the reconciler asks for it; most never do.
    cancellation: FlagCell<CancellationToken>,
    /// True if the cancel is that of a caller; set before the flag is.
    by_caller: AtomicBool,
    /// Flag of the controller's end, and the task of an invocation that had to wait.
    task: FlagCell<AbortHandle>,
    shared: Arc<Shared>,
    /// Queue to the loop that started the invocation, even if this process later runs another loop.
    signals: mpsc::UnboundedSender<Signal>,
    /// Latest progress text that the loop has not taken. The loop is told when the slot is filled.
    progress: Mutex<Option<Arc<str>>>,
    /// Answer to the state write under way; none if no write is.
    state_write: AsyncMutex<Option<oneshot::Receiver<Answer>>>,
}

impl InvocationChannel {
    /// Returns the observer of invocations, if there is one.
    pub(crate) fn observer(&self) -> Option<&dyn InvocationObserver> {
        self.shared.observer.as_deref()
    }

    pub(crate) fn new(shared: Arc<Shared>, signals: mpsc::UnboundedSender<Signal>) -> Self {
        Self {
            cancellation: FlagCell::new(),
            by_caller: AtomicBool::new(false),
            task: FlagCell::new(),
            shared,
            signals,
            progress: Mutex::new(None),
            state_write: AsyncMutex::new(None),
        }
    }

    /// Returns the wall time of the controller's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.shared.clock.now().wall
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancellation.is_raised()
    }

    /// Returns the token, creating it if necessary. A simultaneous cancel is not missed.
    pub(crate) fn cancellation(&self) -> &CancellationToken {
        let (token, is_cancelled) = self.cancellation.put(CancellationToken::new);
        if is_cancelled {
            token.cancel();
        }
        token
    }

    /// Cancels the invocation, and says whether a caller did.
    pub(crate) fn cancel_by(&self, caller: bool) {
        self.by_caller.store(caller, Ordering::SeqCst);
        self.cancel();
    }

    pub(crate) fn cancel(&self) {
        if let Some(token) = self.cancellation.raise() {
            token.cancel();
        }
    }

    /// Notes that the invocation had to wait and continues in a task of its own.
    pub(crate) fn goes_on_in(&self, task: AbortHandle) {
        let (task, is_aborted) = self.task.put(|| task);
        if is_aborted {
            task.abort();
        }
    }

    /// Drops the invocation where it is: the controller has stopped and needs no outcome.
    pub(crate) fn abort(&self) {
        if let Some(task) = self.task.raise() {
            task.abort();
        }
    }

    /// Stores a progress text. Tells the loop only if it has taken the text before; otherwise it finds the later text.
    pub(crate) fn leave_progress(&self, invocation: InvocationId, text: Arc<str>) {
        let mut slot = self.progress.lock().unpoisoned();
        let is_first = slot.replace(text).is_none();
        drop(slot);
        if is_first {
            self.signal(Signal::Progress(invocation));
        }
    }

    pub(crate) fn take_progress(&self) -> Option<Arc<str>> {
        self.progress.lock().unpoisoned().take()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        // A loop that has ended needs no signals.
        let _ = self.signals.send(signal);
        // Before that its worker tells the loop, which looks after it has put the task here.
        if self.task.is_put() {
            self.shared.wake();
        }
    }
}
