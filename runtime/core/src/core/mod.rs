//! The core itself: its components, and the path of an input through them.
//!
//! Each component keeps its state to itself: the graph, the scheduler, the barrier, the timers, the journal, the
//! waiters. What is left here takes several of them: one file for each thing that happens. Invariants are numbered in
//! [`consistency`](crate::consistency).

mod abandoning;
mod applying;
mod calls;
mod due;
pub(crate) mod loading;
mod operations;
mod pausing;
mod removing;
mod retries;
mod returning;
mod starting;
mod stopping;
mod updates;

use self::stopping::Service;
use crate::calls::explain::Explainer;
use crate::calls::waiters::Waiters;
use crate::consistency::Parts;
use crate::graph::Graph;
use crate::graph::lifecycle::Event;
use crate::journal::Journal;
use crate::schedule::barrier::Barrier;
use crate::schedule::decision::{Decider, Decision};
use crate::schedule::retries::Retries;
use crate::schedule::scheduler::{Next, Scheduler};
use crate::schedule::starvation::Starvation;
use crate::timers::Timers;
use crate::types::index::Slot;
use crate::{
    Answer, CallId, Consistency, Effect, Explanation, Finding, Input, Limits, Now, Phase, Refusal, Revision,
    Rule, Settled, StopReason, Stored, Target,
};

/// Counts of the work done since the core was opened. Tests assert that they grow only with what was touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Resources visited by requests, releases and the search for cycles.
    pub nodes: u64,
    /// Edges visited by the same operations.
    pub edges: u64,
    /// Number of invocations that have started since the core was opened.
    pub starts: u64,
    /// Resources released without an invocation.
    pub releases: u64,
}

/// State machine of the controller.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub struct Core {
    now: Now,
    graph: Graph,
    scheduler: Scheduler,
    barrier: Barrier,
    starvation: Starvation,
    retries: Retries,
    timers: Timers,
    journal: Journal,
    waiters: Waiters,
    service: Service,
    limits: Limits,
    /// Resources released without an invocation.
    releases: u64,
    out: Vec<Effect>,
}

/// Tells whether the end of a drain also begins a commit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CommitNow {
    Yes,
    No,
}

impl Core {
    /// Applies one input, and appends the resulting effects.
    pub fn handle(&mut self, now: Now, input: Input, effects: &mut Vec<Effect>) {
        if self.is_stopped() {
            return;
        }
        self.now = now;
        self.journal.begin_input();
        std::mem::swap(&mut self.out, effects);
        match input {
            Input::Call { id, by, call } => self.call(id, by, call),
            Input::Nudge(uid) => {
                if let Some(slot) = self.graph.find(uid).filter(|_| self.is_serving()) {
                    self.nudge(slot);
                }
            }
            Input::Forget(call) => self.waiters.forget(call),
            Input::Progress { invocation, text } => self.progress(invocation, text),
            Input::Returned { invocation, result } => self.returned(invocation, result),
            Input::Committed(commit) => self.journal.committed(&mut self.graph, commit),
            Input::CommitFailed { commit, error } => {
                let failed = (commit, error);
                if let Some(reason) = self.journal.commit_failed(&mut self.timers, now.mono, failed) {
                    self.stop(reason);
                }
            }
            Input::LeaseLost => self.stop(StopReason::LeaseLost),
            Input::Time => {}
            Input::Shutdown { grace } => self.shutdown(grace),
        }
        // After the input: an invocation that returns at its deadline must not be cancelled for it.
        self.run_timers();
        self.pump();
        std::mem::swap(&mut self.out, effects);
    }

    /// Ends a drain: publishes, answers, commits and sets the timer. See the crate's documentation.
    pub fn flush(&mut self, now: Now, effects: &mut Vec<Effect>) {
        self.end_drain(now, CommitNow::Yes, effects);
    }

    /// Ends a drain like [`flush`](Self::flush), without a commit: for hosts that expect more inputs for it.
    pub fn flush_but_commit(&mut self, now: Now, effects: &mut Vec<Effect>) {
        self.end_drain(now, CommitNow::No, effects);
    }

    fn end_drain(&mut self, now: Now, commit: CommitNow, effects: &mut Vec<Effect>) {
        if self.is_stopped() {
            return;
        }
        self.now = now;
        std::mem::swap(&mut self.out, effects);
        // Before the answers: a caller reads as soon as it is answered, and must find what the answer speaks of.
        self.journal.publish(&mut self.graph, &mut self.out);
        self.journal.release_answers(&mut self.out);
        if commit == CommitNow::Yes {
            self.journal.start_commit(&mut self.graph, &mut self.out);
        }
        self.stop_if_done();
        if !self.is_stopped() {
            self.set_host_timer();
        }
        std::mem::swap(&mut self.out, effects);
    }

    /// Returns true if the core accepts calls now; see [`Limits::backlog`].
    pub fn accepts_calls(&self) -> bool {
        self.journal.has_room()
    }

    /// Returns true if everything has settled. Future timers don't count.
    pub fn is_idle(&self) -> bool {
        self.graph.unsettled() == 0
    }

    /// Returns the counts of work since the core was opened.
    pub fn counters(&self) -> Counters {
        let (nodes, edges) = self.graph.visits();
        Counters {
            nodes,
            edges,
            starts: self.scheduler.starts(),
            releases: self.releases,
        }
    }

    /// Returns the catalog's revision, including changes that are not committed yet.
    pub fn revision(&self) -> Revision {
        self.journal.revision()
    }

    /// Returns how many answers wait for this revision to be durable: right after its commit is emitted, the number of
    /// calls in that commit.
    pub fn answers_through(&self, revision: Revision) -> impl Iterator<Item = (CallId, &Answer)> {
        self.journal.answers_through(revision)
    }

    /// Returns how many answers the next flush releases.
    pub fn answers_to_release(&self) -> usize {
        self.journal.answers_to_release()
    }

    /// Returns how many rows the next flush hands to the store; 0 while the store is busy.
    pub fn to_commit(&self) -> usize {
        self.journal.to_commit()
    }

    /// Explains why a resource is not running now, also one that is being deleted.
    ///
    /// # Errors
    /// If nothing is found under that name.
    pub fn explain(&self, target: &Target) -> Result<Explanation, Refusal> {
        let components = (&self.scheduler, &self.barrier, &self.timers);
        Explainer::new(&self.graph, components, self.journal.durable(), self.now).explain(target)
    }

    /// Checks every rule from scratch, in time proportional to the catalog; valid between any two inputs. Reports at
    /// most 20 findings per rule.
    pub fn check_consistency(&self) -> Vec<Finding> {
        self.parts().check()
    }

    /// Checks every rule, and compares the stored catalog with the core.
    pub fn check_against(&self, stored: Option<&Stored>) -> Consistency {
        self.parts().check_against(stored)
    }

    /// Lists the rules that are checked, in order.
    pub fn checked_rules() -> impl Iterator<Item = Rule> {
        Parts::rules()
    }

    fn parts(&self) -> Parts<'_> {
        Parts::new(
            &self.graph,
            (&self.scheduler, &self.barrier),
            &self.timers,
            &self.journal,
            &self.waiters,
            self.is_serving(),
        )
    }

    /// Evaluates resources and starts invocations until nothing changes.
    fn pump(&mut self) {
        if !self.is_serving() {
            return;
        }
        loop {
            while let Some(slot) = self.graph.next_on_agenda() {
                self.consider(slot);
            }
            self.start_ready();
            if self.graph.agenda().is_empty() && !self.open_gate_if_stuck() {
                break;
            }
        }
        // Asked once nothing moves any more: in between, all may be settled while a request is on its way.
        if self.is_idle() {
            for call in self.waiters.take_idle() {
                self.answer(call, Answer::Done);
            }
        }
    }

    /// Starts ready resources within the limits: deletes, renames, then reconciles, each by rank, kind and name.
    fn start_ready(&mut self) {
        for phase in [Phase::Delete, Phase::Rename, Phase::Reconcile] {
            while let Some(next) = self.scheduler.pop(&mut self.graph, &self.barrier, phase) {
                match next {
                    Next::Start(slot) => self.start_if_still_ready(slot, phase),
                    Next::Consider(slot) => self.consider(slot),
                    Next::Stale => {}
                }
            }
        }
        self.scheduler.promote_later(&mut self.timers, self.now.mono);
    }

    /// Evaluates a resource after an event, and applies the decision.
    fn consider(&mut self, slot: Slot) {
        self.graph.visit();
        match self.decision(slot) {
            Decision::Wait => {}
            Decision::AwaitCommit(revision) => self.journal.await_commit(revision, slot),
            Decision::LeaveTo(first) => self.graph.enqueue(first),
            Decision::Release(why) => self.release(slot, &why),
            Decision::Start(phase) => {
                self.scheduler
                    .push_ready(&mut self.graph, slot, phase, self.now.mono);
            }
        }
    }

    fn decision(&self, slot: Slot) -> Decision {
        Decider::new(&self.graph, &self.timers, self.journal.durable()).of(slot)
    }

    fn release(&mut self, slot: Slot, why: &Settled) {
        self.releases += 1;
        if *why == Settled::Paused {
            self.graph.hold_back(slot);
        }
        if self.graph[slot].is_live() {
            self.settle(slot, why);
        } else {
            self.on(slot, Event::Settled(why.clone()));
            self.on_settled(slot);
        }
    }

    fn start_if_still_ready(&mut self, slot: Slot, phase: Phase) {
        match self.decision(slot) {
            Decision::Start(now) if now == phase => {}
            // Something else became of it meanwhile, which the next look at it finds out.
            _ => return self.consider(slot),
        }
        if self.graph.user_of_its_names(slot).is_some() {
            return; // the return of that invocation has it considered again
        }
        if phase == Phase::Reconcile
            // Settled instead of waiting: the delete or rename that has the name no longer counts, and may fail for ever.
            && let Some(why) = self.graph.held_name(slot)
        {
            return self.release(slot, &why);
        }
        self.start(slot, phase);
    }

    /// Opens the gate if nothing runs, waits for a commit or counts in the barrier; returns whether it was closed.
    fn open_gate_if_stuck(&mut self) -> bool {
        // Each of these can still let the gate open by itself. Opened too early, it would protect nothing.
        let stuck = self.graph.active() == 0
            && self.journal.awaiting().is_empty()
            && !self.barrier.blocks(Phase::Reconcile);
        stuck && self.scheduler.open_gate(&mut self.graph)
    }
}

/// Access to components, for tests that inspect and break them.
#[cfg(test)]
impl Core {
    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    pub(crate) fn graph_mut(&mut self) -> &mut Graph {
        &mut self.graph
    }

    pub(crate) fn scheduler_mut(&mut self) -> &mut Scheduler {
        &mut self.scheduler
    }

    pub(crate) fn barrier(&self) -> &Barrier {
        &self.barrier
    }

    pub(crate) fn timers_mut(&mut self) -> &mut Timers {
        &mut self.timers
    }

    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    pub(crate) fn journal_mut(&mut self) -> &mut Journal {
        &mut self.journal
    }

    pub(crate) fn waiters(&self) -> &Waiters {
        &self.waiters
    }

    pub(crate) fn waiters_mut(&mut self) -> &mut Waiters {
        &mut self.waiters
    }

    pub(crate) fn plant_handle(&mut self, call: CallId, slot: Slot) {
        self.open_handle(call, slot);
    }
}
