//! The context of an invocation: its inputs, and the operations that a reconciler has.

use std::fmt;
use std::sync::Arc;

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
use crate::sync::{Mutex, Unpoisoned};
use crate::types::error::SetStateError;
use crate::types::message;
use crate::workers::reconciler::Reconciler;

/// One invocation as its reconciler sees it: a snapshot of the resource and of what it reads, taken at the start,
/// and the few things that the reconciler may do beside its own work. Cheap to clone.
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

/// The inputs of an invocation, which stay as they are while it runs. It has the types of the messages, not that of the reconciler, so that
/// reconcilers which wrap one another share it.
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

/// The snapshot.
impl<R: Reconciler> Context<R> {
    /// Returns the desired spec.
    pub fn spec(&self) -> &R::Spec {
        &self.snapshot.spec
    }

    /// Returns the last stored state, as of the start; none before the first state was written.
    pub fn state(&self) -> Option<&R::State> {
        self.snapshot.state.as_ref()
    }

    /// The resource: everything that is stored of it.
    pub fn row(&self) -> &Row {
        &self.snapshot.start.resource
    }

    /// Its identity, also through renames.
    pub fn uid(&self) -> Uid {
        self.row().uid
    }

    /// Its present name.
    pub fn name(&self) -> &Name {
        &self.row().name
    }

    /// Every name since the last completed rename, oldest first; empty if it has none but the present one.
    pub fn former_names(&self) -> &[Name] {
        &self.row().intents.former_names
    }

    /// Returns the number of times that a refresh was asked for; a reconciler keeps in its state which ones it has
    /// answered.
    pub fn refreshes(&self) -> Refreshes {
        self.row().refreshes
    }

    /// Its refs in their order, each with the resource that it stood for. Empty for deletes and renames.
    pub fn refs(&self) -> &[RefView] {
        &self.snapshot.start.refs
    }

    /// The ref to this name, if the resource has one.
    pub fn reference(&self, key: &Key) -> Option<&RefView> {
        self.refs()
            .iter()
            .find(|view| view.reference.kind == key.kind && view.reference.name == key.name)
    }

    /// The resources that it owns, in order of kind and name, those that are being deleted among them. Empty for deletes
    /// and renames, and for a kind that is not asked for changes of what it owns
    /// ([`KindOptions::on_owned`](watershed_core::KindOptions::on_owned)).
    pub fn owned(&self) -> &[OwnedView] {
        &self.snapshot.start.owned
    }

    /// Returns the phase, and so the method of the reconciler that runs.
    pub fn phase(&self) -> Phase {
        self.snapshot.start.phase
    }

    /// The number of this invocation, unique together with the epoch.
    pub fn invocation(&self) -> InvocationId {
        self.snapshot.start.invocation
    }

    /// The epoch of the controller, for what is done outside: a later holder of the lease has a higher one.
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

/// Operations of a reconciler.
impl<R: Reconciler> Context<R> {
    /// Cancelled when the invocation is to end early.
    pub fn cancellation(&self) -> &CancellationToken {
        self.channel.cancellation()
    }

    /// Returns true if the invocation is to end early.
    pub fn is_cancelled(&self) -> bool {
        self.channel.is_cancelled()
    }

    /// Writes the resource's state: taken also after a cancel, until the invocation returns.
    ///
    /// Returns once the write is queued. Writes of one invocation keep their order and become durable with the next
    /// commit, for which [`committed`](Self::committed) waits; after a crash before that, the resource is reconciled
    /// again. At most one write of an invocation is queued, so a second waits for the first.
    ///
    /// Cancel-safe: a dropped future has written all or nothing.
    pub async fn set_state(&self, state: &R::State) -> Result<(), SetStateError> {
        self.write_state(state, None).await
    }

    /// Like [`set_state`](Self::set_state), and refused unless the state has this version.
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

    /// Waits until every state that this invocation wrote is durable, or was refused.
    ///
    /// Cancel-safe.
    pub async fn committed(&self) -> Result<(), SetStateError> {
        wait_for(&mut *self.channel.state_write.lock().await).await
    }

    /// The time of day by the controller's clock, which is simulated in tests: retrigger times count from it.
    pub fn now(&self) -> Timestamp {
        self.channel.now()
    }

    /// Says how far the invocation is; shown to people and not stored. Only the latest text counts.
    pub fn progress(&self, text: impl Into<Arc<str>>) {
        let text = text.into();
        tracing::info!("{text}");
        self.channel.leave_progress(self.invocation(), text);
    }

    /// The controller, for reads and edits. Edits are bound to this invocation: refused once it is cancelled or has
    /// returned. Waits for a reconcile are refused at any time.
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
    /// A cancel meets the token, which is made when the reconciler asks for it; most never do.
    cancellation: FlagCell<CancellationToken>,
    /// The end of the controller meets the task that the invocation became if it had to wait.
    task: FlagCell<AbortHandle>,
    shared: Arc<Shared>,
    /// To the loop that started the invocation; a later one of this process is none of its business.
    signals: mpsc::UnboundedSender<Signal>,
    /// The latest progress text that the loop has not taken; it is told when the slot becomes full.
    progress: Mutex<Option<Arc<str>>>,
    /// The answer to the state write that is on its way.
    state_write: AsyncMutex<Option<oneshot::Receiver<Answer>>>,
}

impl InvocationChannel {
    pub(crate) fn new(shared: Arc<Shared>, signals: mpsc::UnboundedSender<Signal>) -> Self {
        Self {
            cancellation: FlagCell::new(),
            task: FlagCell::new(),
            shared,
            signals,
            progress: Mutex::new(None),
            state_write: AsyncMutex::new(None),
        }
    }

    /// The time of day by the controller's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.shared.clock.now().wall
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancellation.is_raised()
    }

    /// The token, made now if need be. A cancel that comes meanwhile finds it or is found by it.
    pub(crate) fn cancellation(&self) -> &CancellationToken {
        let (token, is_cancelled) = self.cancellation.put(CancellationToken::new);
        if is_cancelled {
            token.cancel();
        }
        token
    }

    pub(crate) fn cancel(&self) {
        if let Some(token) = self.cancellation.raise() {
            token.cancel();
        }
    }

    /// The invocation had to wait and is a task of its own from now on.
    pub(crate) fn goes_on_in(&self, task: AbortHandle) {
        let (task, is_aborted) = self.task.put(|| task);
        if is_aborted {
            task.abort();
        }
    }

    /// Drops the invocation where it stands: the controller has stopped and nobody asks for its outcome.
    pub(crate) fn abort(&self) {
        if let Some(task) = self.task.raise() {
            task.abort();
        }
    }

    /// Tells the loop if it has taken what was left before; else it finds the later text instead.
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
