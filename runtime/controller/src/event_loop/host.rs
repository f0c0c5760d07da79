//! The host of the core, which works turn by turn.
//!
//! A turn takes what is there up to a bound, hands it to the core, and then carries out the effects. Nothing is awaited
//! in it, so a thing is either taken and applied or still where it was. Turns are run by the [`driver`](super::driver).

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustc_hash::FxBuildHasher;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::Instant;
use watershed_core::{
    Answer, Call, Commit, CommitError, Core, Effect, Epoch, ErrorKind, Input, InvocationId, Kind, Mono, Now,
    Priority, Refusal, Returned, Start, StopReason, Unreturned,
};

use crate::event_loop::commit_delay::CommitDelay;
use crate::event_loop::committer::{self, Begun};
use crate::event_loop::debounce::Debouncer;
use crate::inbox::call::{Caller, Command, Inbox, PendingCalls, Signal, Signals, SignalsOut};
use crate::inbox::shared::{OpenedCatalog, Shared};
use crate::store::{Catalog, Lease, LeaseStatus};
use crate::tasks::AbortOnDrop;
use crate::types::clock::Clock;
use crate::workers::Workers;
use crate::workers::invocation::{Invocation, Runner};
use crate::workers::reconciler::context::InvocationChannel;

/// Maximum number of inputs of each sort per turn: enough to share the cost of a turn, few enough that answers don't
/// wait. Turns go on during a commit, and gather the next one.
const TURN: usize = 64;

/// Time limit for a store to close.
const CLOSE_PATIENCE: Duration = Duration::from_secs(5);

/// State that the loop owns.
pub(crate) struct Host {
    pub(crate) core: Core,
    pub(crate) epoch: Epoch,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) catalog: Arc<dyn Catalog>,
    pub(crate) runners: Arc<BTreeMap<Kind, Arc<dyn Runner>>>,
    pub(crate) commits: mpsc::Sender<Begun>,
    /// Commits that completed as soon as they were begun.
    pub(crate) committed: VecDeque<Signal>,
    pub(crate) commit_delay: CommitDelay,
    pub(crate) inbox: Inbox,
    /// Signals from the tasks of this loop.
    pub(crate) signals: Signals,
    pub(crate) signals_out: SignalsOut,
    /// Reaction to a lost lease: to stop, or to campaign for it again.
    pub(crate) on_lease_lost: OnLeaseLost,
    pub(crate) calls: PendingCalls,
    pub(crate) running: HashMap<InvocationId, Arc<InvocationChannel>, FxBuildHasher>,
    /// Started invocations that the workers don't have yet.
    pub(crate) starting: Vec<Invocation>,
    pub(crate) workers: Workers,
    pub(crate) timer: Option<Mono>,
    /// Debouncer of nudges, in front of the core.
    pub(crate) debouncer: Debouncer,
    /// End of the loop, until the driver handles it.
    pub(crate) stop: Option<Stop>,
    /// Lease as last renewed; none if it can't expire.
    pub(crate) lease: Option<Lease>,
    /// Tasks that write commits, renew the lease and serve other processes.
    pub(crate) tasks: Vec<AbortOnDrop<()>>,
    pub(crate) effects: Vec<Effect>,
    /// Guard that closes the catalog to handles if the loop ends without [`end`](Self::end).
    pub(crate) opened: OpenedCatalog,
}

/// An input that a turn has taken from a queue.
#[derive(Debug)]
pub(crate) enum Inbound {
    Signal(Signal),
    Call(Command),
}

/// Reaction of a process to the loss of its lease.
///
/// See [`Builder`](crate::Builder) for an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnLeaseLost {
    /// Stops the controller; [`Controller::run`](crate::Controller::run) returns the reason.
    #[default]
    Stop,
    /// Follows, and campaigns for the lease again. Handles keep working, because another process answers them
    /// meanwhile.
    Campaign,
}

/// Step of the driver after a turn.
pub(crate) enum AfterTurn {
    /// Wait for an input or a timer.
    Idle,
    /// Run another turn, because more inputs wait.
    MoreWaits,
    /// Run another turn after other tasks, which are about to call.
    CommitDelayed,
    /// End the loop.
    Stopped(Stop),
}

/// End of a loop, with its reason.
#[derive(Debug, Clone)]
pub(crate) struct Stop {
    pub(crate) reason: StopReason,
    pub(crate) unreturned: Vec<Unreturned>,
}

impl Host {
    /// Carries out the effects of the start, and takes the first calls. Readers see the stored catalog before the first
    /// invocation starts.
    pub(crate) fn begin(&mut self, calls: Vec<Command>) {
        let stop = self.carry_out();
        debug_assert!(stop.is_none(), "the core stopped before it began");
        let now = self.clock.now();
        for call in calls {
            self.call(now, call);
        }
    }

    /// Takes the waiting inputs, and carries out the resulting effects.
    pub(crate) fn turn(&mut self) -> AfterTurn {
        if let Some(stop) = &self.stop {
            return AfterTurn::Stopped(stop.clone());
        }
        let now = self.clock.now();
        self.note_high_water();
        self.drain(now);
        // Noted before anybody is answered, who may read it at once.
        self.note_queue_lengths();
        if self.lease_status() == LeaseStatus::Expired {
            tracing::error!("the lease could not be renewed in time");
            self.core.handle(now, Input::LeaseLost, &mut self.effects);
        }
        let waits = self.commit_delay.delays(self.core.to_commit());
        if waits {
            self.core.flush_but_commit(now, &mut self.effects);
        } else {
            self.core.flush(now, &mut self.effects);
        }
        self.shared.metrics.settled(self.core.is_idle(), now.wall);
        self.stop = self.carry_out();
        self.note_queue_lengths();
        match &self.stop {
            Some(stop) => AfterTurn::Stopped(stop.clone()),
            None if self.has_more() => AfterTurn::MoreWaits,
            None if waits => AfterTurn::CommitDelayed,
            None => AfterTurn::Idle,
        }
    }

    /// Hands the core an input that comes through no channel.
    pub(crate) fn inject(&mut self, input: Input) {
        self.core.handle(self.clock.now(), input, &mut self.effects);
    }

    fn has_more(&self) -> bool {
        !self.committed.is_empty()
            || !self.signals.urgent.is_empty()
            || !self.signals.ordinary.is_empty()
            || !self.inbox.forgotten.is_empty()
            || (self.core.accepts_calls() && !self.inbox.commands.is_empty())
    }

    /// Records the lengths of the queues after a turn.
    fn note_queue_lengths(&self) {
        let lengths = &self.shared.metrics.lengths;
        lengths.calls.note(self.inbox.commands.len());
        lengths.answers.note(self.calls.len());
        lengths.signals.note(self.waiting_signals());
        lengths.forgotten.note(self.inbox.forgotten.len());
        lengths.begins.note(self.starting.len() + self.workers.queued());
    }

    /// Records the longest lengths that the queues have reached since the last turn.
    fn note_high_water(&self) {
        let lengths = &self.shared.metrics.lengths;
        lengths.calls.note_high_water(self.inbox.commands.len());
        lengths.signals.note_high_water(self.waiting_signals());
        lengths.forgotten.note_high_water(self.inbox.forgotten.len());
    }

    fn waiting_signals(&self) -> usize {
        self.signals.urgent.len() + self.signals.ordinary.len()
    }

    /// Checks the workers for a stall, and returns the time of the next turn if no input comes.
    pub(crate) fn next_wakeup(&mut self) -> Option<Instant> {
        let look = self.workers.check_for_stall();
        let times = [look, self.due(), self.lease_change()];
        times.into_iter().flatten().min()
    }

    /// Returns the time of the core's next timer or of the next waiting nudge.
    fn due(&self) -> Option<Instant> {
        let due = [self.timer, self.debouncer.due()].into_iter().flatten().min();
        due.map(|due| self.clock.start() + Duration::from_millis(due.0))
    }

    /// Returns the time at which the lease becomes less certain.
    fn lease_change(&self) -> Option<Instant> {
        self.lease.map(|lease| lease.next_change(Instant::now()))
    }

    /// Drains every queue up to its bound, so that none starves another.
    fn drain(&mut self, now: Now) {
        if let Some(signal) = self.committed.pop_front() {
            self.input(now, Inbound::Signal(signal));
        }
        let sources = [Self::next_urgent, Self::next_ordinary, Self::next_call];
        for (index, next) in sources.into_iter().enumerate() {
            if index == 2 {
                self.drain_forgotten(now);
            }
            for _ in 0..TURN {
                let Some(taken) = next(self) else { break };
                self.input(now, taken);
            }
        }
        let is_due = |due: Option<Mono>| due.is_some_and(|due| due <= now.mono);
        if is_due(self.timer) {
            self.timer = None;
            self.core.handle(now, Input::Time, &mut self.effects);
        }
        while let Some(uid) = self.debouncer.take(now.mono) {
            self.core.handle(now, Input::Nudge(uid), &mut self.effects);
        }
    }

    fn next_urgent(&mut self) -> Option<Inbound> {
        self.signals.urgent.try_recv().ok().map(Inbound::Signal)
    }

    fn next_ordinary(&mut self) -> Option<Inbound> {
        self.signals.ordinary.try_recv().ok().map(Inbound::Signal)
    }

    fn next_call(&mut self) -> Option<Inbound> {
        let accepts = self.core.accepts_calls();
        let taken = accepts.then(|| self.inbox.commands.try_recv().ok());
        taken.flatten().map(Inbound::Call)
    }

    fn drain_forgotten(&mut self, now: Now) {
        for _ in 0..TURN {
            let Ok(call) = self.inbox.forgotten.try_recv() else {
                break;
            };
            self.calls.forget(call);
            self.core.handle(now, Input::Forget(call), &mut self.effects);
        }
    }

    fn input(&mut self, now: Now, taken: Inbound) {
        match taken {
            Inbound::Signal(signal) => self.take(now, signal),
            Inbound::Call(command) => self.call(now, command),
        }
    }

    /// Turns a signal into an input for the core.
    fn take(&mut self, now: Now, signal: Signal) {
        let input = match signal {
            Signal::Renewed => {
                self.lease = self.catalog.lease();
                return;
            }
            Signal::LeaseLost => Input::LeaseLost,
            Signal::WriteState(command) => {
                return self.call(now, command);
            }
            Signal::Returned { invocation, result } => {
                self.running.remove(&invocation);
                self.shared.metrics.returned(&result);
                match result {
                    Returned::Failed(error) if error.kind == ErrorKind::Fenced => {
                        tracing::error!(code = %error.code, "the lease is lost: {}", error.message);
                        Input::LeaseLost
                    }
                    result => Input::Returned { invocation, result },
                }
            }
            Signal::Progress(invocation) => {
                let running = self.running.get(&invocation);
                let Some(text) = running.and_then(|channel| channel.take_progress()) else {
                    return;
                };
                Input::Progress { invocation, text }
            }
            Signal::Committed {
                commit,
                result: Ok(()),
            } => {
                self.core.handle(now, Input::Committed(commit), &mut self.effects);
                return self.commit_delay.committed(self.core.answers_to_release());
            }
            Signal::Committed {
                commit,
                result: Err(error),
            } => {
                log_failure(&error);
                Input::CommitFailed { commit, error }
            }
        };
        self.core.handle(now, input, &mut self.effects);
    }

    /// Takes a call. Refuses one from an invocation of an earlier epoch of this process.
    fn call(&mut self, now: Now, command: Command) {
        let Command {
            id,
            by,
            call,
            reply,
            sent,
        } = command;
        self.commit_delay.called();
        let taken = Instant::now();
        self.shared
            .metrics
            .lag
            .record(taken.saturating_duration_since(sent), taken);
        let of_another = |by: &Caller| by.epoch != self.epoch;
        if by.as_ref().is_some_and(of_another) {
            reply.answer(
                Answer::Refused(Refusal::InvocationCancelled),
                self.shared.view.revision(),
            );
            return;
        }
        if let Call::Nudge(target) = &call
            && self.core.is_serving()
            && let Ok(resource) = self.shared.view.get(target)
            && !self
                .debouncer
                .admit(now.mono, resource.row.uid, &resource.row.kind)
        {
            reply.answer(Answer::Done, self.shared.view.revision());
            return;
        }
        self.calls.insert(id, reply);
        let by = by.map(|by| by.invocation);
        self.core
            .handle(now, Input::Call { id, by, call }, &mut self.effects);
    }

    /// Carries out the core's effects in order; returns the stop if there is one.
    fn carry_out(&mut self) -> Option<Stop> {
        let mut effects = std::mem::take(&mut self.effects);
        let mut stop = None;
        for effect in effects.drain(..) {
            match effect {
                Effect::Start(start) => self.start(start),
                Effect::Cancel {
                    invocation,
                    by_caller,
                } => {
                    if let Some(channel) = self.running.get(&invocation) {
                        channel.cancel_by(by_caller);
                    }
                }
                Effect::Timer(due) => self.timer = due,
                Effect::Commit(commit) => {
                    self.commit(commit);
                }
                Effect::Answer { call, answer } => {
                    if matches!(answer, Answer::Applied(_)) {
                        // Who is woken last goes on in this thread: it is the caller, and another thread takes the work.
                        self.begin_starting();
                    }
                    let revision = self.shared.view.revision();
                    let lengths = &self.shared.metrics.lengths.answers;
                    self.calls
                        .answer(call, answer, revision, |left| lengths.note(left));
                }
                Effect::Publish(publish) => self.shared.publish(publish),
                Effect::Stopped { reason, unreturned } => stop = Some(Stop { reason, unreturned }),
            }
        }
        self.effects = effects;
        self.begin_starting();
        stop
    }

    fn commit(&mut self, commit: Commit) {
        let answers = self.core.answers_through(commit.revision);
        let answers = self.calls.with_commit(answers, commit.revision);
        match committer::begin(&self.shared, &self.catalog, commit, answers) {
            Ok(signal) => self.committed.push_back(signal),
            Err(begun) => {
                self.commit_delay.begun();
                // Closed is what it is when the runtime is being dropped around this loop, which is next.
                let taken = self.commits.try_send(begun);
                assert!(
                    !matches!(taken, Err(TrySendError::Full(_))),
                    "the core asked for a commit while one was under way"
                );
            }
        }
    }

    /// Hands started invocations to the workers, unless the lease is in doubt; then they wait for the next turn.
    fn begin_starting(&mut self) {
        if !self.starting.is_empty() && self.lease_status() == LeaseStatus::Valid {
            let begins = self.workers.begin(&mut self.starting);
            self.shared.metrics.lengths.begins.note_high_water(begins);
        }
    }

    fn lease_status(&self) -> LeaseStatus {
        self.lease
            .map_or(LeaseStatus::Valid, |lease| lease.status(Instant::now()))
    }

    fn start(&mut self, start: Box<Start>) {
        let invocation = start.invocation;
        self.shared.metrics.started.fetch_add(1, Ordering::Relaxed);
        let runner = self.runners.get(&start.resource.kind);
        let runner = runner.expect("the core starts only what is of a registered kind");
        let signals = match start.reason.priority() {
            Priority::Requested => &self.signals_out.urgent,
            _ => &self.signals_out.ordinary,
        };
        let begun = Invocation::new(start, Arc::clone(runner), &self.shared, signals);
        self.running.insert(invocation, begun.channel());
        self.starting.push(begun);
    }

    /// Releases everything: refuses waiting calls, drops unreturned invocations, and closes the catalog. Readers keep
    /// the last snapshot; a process that campaigns again keeps its handles.
    pub(crate) async fn end(&mut self, stop: &Stop) {
        self.shared.holds.store(false, Ordering::SeqCst);
        let goes_on = stop.reason == StopReason::LeaseLost && self.on_lease_lost == OnLeaseLost::Campaign;
        if !goes_on {
            self.shared.stop(&stop.reason, &mut self.inbox).await;
        }
        for channel in self.running.values() {
            channel.cancel();
            channel.abort();
        }
        // Whatever they do now is of no use: everything is committed, or nothing more can be.
        self.tasks.clear();
        // A store that hangs may hang here as well; what it holds goes with the process then.
        self.opened.is_closed = true;
        let closed = tokio::time::timeout(CLOSE_PATIENCE, self.catalog.close()).await;
        if closed.is_err() {
            tracing::warn!("the store did not close in time");
        }
    }
}

fn log_failure(error: &CommitError) {
    match error {
        CommitError::Failed(message) => {
            tracing::warn!(error = %message, "a commit failed and is tried again")
        }
        CommitError::Full(message) => {
            // A target of its own, for programs that tell it in words of theirs.
            tracing::error!(target: "watershed_controller::room", error = %message, "the store has no room left")
        }
        CommitError::LeaseLost => tracing::error!("another controller has taken the instance"),
    }
}
