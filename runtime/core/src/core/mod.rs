//! The machine's front: its parts, and the way of an input through them.
//!
//! Each file of this crate adds the methods of one responsibility to [`Core`]; state that belongs to one of them
//! alone lives in a type of its own there. Invariants are numbered in [`consistency`](crate::consistency).

pub(crate) mod clockwork;
pub(crate) mod loading;
pub(crate) mod returning;
pub(crate) mod starting;
pub(crate) mod stopping;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use crate::calls::handles::Handles;
use crate::core::stopping::Service;
use crate::graph::cycles::Cycles;
use crate::graph::names::Names;
use crate::graph::slots::Slots;
use crate::journal::Commits;
use crate::resource::Slot;
use crate::schedule::barrier::Barrier;
use crate::schedule::kinds::Kinds;
use crate::schedule::starvation::Starvation;
use crate::timers::Timers;
use crate::{Effect, Epoch, Input, InvocationId, Limits, Now, QuickHash, Revision, StopReason, Uid};

/// How much the core has looked at since it was opened; tests assert that it grows with what was touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Resources visited while asking, releasing and looking for cycles.
    pub nodes: u64,
    /// Edges visited meanwhile.
    pub edges: u64,
    /// Invocations started.
    pub starts: u64,
    /// Resources released without an invocation.
    pub releases: u64,
}

/// The state machine.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub struct Core {
    pub(crate) limits: Limits,
    pub(crate) now: Now,
    pub(crate) epoch: Epoch,
    pub(crate) revision: Revision,
    pub(crate) kinds: Kinds,
    pub(crate) names: Names,
    pub(crate) slots: Slots,
    pub(crate) cycles: Cycles,
    /// What each owner owns.
    pub(crate) owned: HashMap<Uid, BTreeSet<Slot>, QuickHash>,
    /// Resources to be considered, each at most once.
    pub(crate) queue: VecDeque<Slot>,
    /// Resources that wait for a commit, by the revision that they wait for.
    pub(crate) awaiting: BTreeMap<Revision, Vec<Slot>>,
    pub(crate) runs: HashMap<InvocationId, Slot, QuickHash>,
    pub(crate) next_invocation: InvocationId,
    /// How many of them are abandoned.
    pub(crate) abandoned: usize,
    /// How many resources are pending or running.
    pub(crate) unsettled: usize,
    pub(crate) starvation: Starvation,
    /// Those of `first` kinds that hold the others back; empty once they have settled.
    pub(crate) gate: BTreeSet<Slot>,
    pub(crate) barrier: Barrier,
    pub(crate) timers: Timers,
    pub(crate) handles: Handles,
    pub(crate) commits: Commits,
    pub(crate) service: Service,
    pub(crate) counters: Counters,
    pub(crate) out: Vec<Effect>,
}

/// Whether a drain ends with the commit of what it has changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CommitNow {
    Yes,
    No,
}

impl Core {
    pub(crate) fn empty(limits: Limits) -> Self {
        Self {
            limits,
            now: Now::default(),
            epoch: Epoch(0),
            revision: Revision(0),
            kinds: Kinds::default(),
            names: Names::default(),
            slots: Slots::default(),
            cycles: Cycles::default(),
            owned: HashMap::default(),
            queue: VecDeque::new(),
            awaiting: BTreeMap::new(),
            runs: HashMap::default(),
            next_invocation: InvocationId(1),
            abandoned: 0,
            unsettled: 0,
            starvation: Starvation::default(),
            gate: BTreeSet::new(),
            barrier: Barrier::default(),
            timers: Timers::default(),
            handles: Handles::default(),
            commits: Commits::default(),
            service: Service::Serving,
            counters: Counters::default(),
            out: Vec::new(),
        }
    }

    /// Takes one input; pushes what is to be done for it.
    pub fn handle(&mut self, now: Now, input: Input, effects: &mut Vec<Effect>) {
        if self.is_stopped() {
            return;
        }
        self.now = now;
        self.commits.begin_input();
        std::mem::swap(&mut self.out, effects);
        match input {
            Input::Call { id, by, call } => self.call(id, by, call),
            Input::Nudge(uid) => {
                if let Some(slot) = self.slots.find(uid).filter(|_| self.is_serving()) {
                    self.nudge(slot);
                }
            }
            Input::Forget(call) => self.handles.forget(call),
            Input::Progress { invocation, text } => self.progress(invocation, text),
            Input::Returned { invocation, result } => self.returned(invocation, result),
            Input::Committed(commit) => self.committed(commit),
            Input::CommitFailed { commit, error } => self.commit_failed(commit, error),
            Input::LeaseLost => self.stop(StopReason::LeaseLost),
            Input::Time => {}
            Input::Shutdown { grace } => self.shutdown(grace),
        }
        self.run_timers();
        self.pump();
        std::mem::swap(&mut self.out, effects);
    }

    /// Ends a drain: publishes, answers, commits and sets the timer. See the crate's documentation.
    pub fn flush(&mut self, now: Now, effects: &mut Vec<Effect>) {
        self.end_drain(now, CommitNow::Yes, effects);
    }

    /// The same, but begins no commit: for a host that expects more that belongs into it.
    pub fn flush_but_commit(&mut self, now: Now, effects: &mut Vec<Effect>) {
        self.end_drain(now, CommitNow::No, effects);
    }

    fn end_drain(&mut self, now: Now, commit: CommitNow, effects: &mut Vec<Effect>) {
        if self.is_stopped() {
            return;
        }
        self.now = now;
        std::mem::swap(&mut self.out, effects);
        self.publish();
        self.release_answers();
        if commit == CommitNow::Yes {
            self.start_commit();
        }
        self.stop_if_done();
        if !self.is_stopped() {
            self.set_host_timer();
        }
        std::mem::swap(&mut self.out, effects);
    }

    /// Whether calls may be handed in; see [`Limits::backlog`].
    pub fn accepts_calls(&self) -> bool {
        self.commits.backlog() < self.limits.backlog
    }

    /// Whether everything is settled. Times that are still to come don't count.
    pub fn is_idle(&self) -> bool {
        self.unsettled == 0
    }

    /// How much was looked at so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The catalog's revision, committed or not.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Considers what may have become ready, and starts what may start, until nothing moves.
    pub(crate) fn pump(&mut self) {
        if !self.is_serving() {
            return;
        }
        loop {
            while let Some(slot) = self.queue.pop_front() {
                if let Some(resource) = self.slots.get_mut(slot) {
                    resource.listed.queued = false;
                    self.consider(slot);
                }
            }
            self.start_ready();
            if self.queue.is_empty() && !self.open_gate_if_stuck() {
                break;
            }
        }
        self.answer_idle();
    }
}
