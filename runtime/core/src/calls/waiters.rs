//! Callers who wait: for the outcome of a request, for what is below it to settle, for everything to be idle.

use std::collections::HashMap;

use crate::graph::Graph;
use crate::graph::resource::Life;
use crate::journal::Journal;
use crate::types::index::Slot;
use crate::{Answer, CallId, InvocationId, RunOutcome, Settlement};
use rustc_hash::FxBuildHasher;

/// The answers that a handle still waits for.
#[derive(Clone, Copy, Debug)]
struct Open {
    outcome: bool,
    settled: bool,
}

/// Waiters that wait for the same resources to settle once.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
struct Group {
    calls: Vec<CallId>,
    root: Slot,
    total: usize,
    remaining: usize,
    /// The edges when it was made.
    edges_changed: u64,
}

/// All who wait.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Waiters {
    open: HashMap<CallId, Open, FxBuildHasher>,
    /// Per resource: who waits for the first run that starts from this invocation on.
    outcomes: HashMap<Slot, Vec<(CallId, InvocationId)>, FxBuildHasher>,
    groups: HashMap<u64, Group, FxBuildHasher>,
    next_group: u64,
    /// Per resource: the groups that wait for it to settle.
    waits: HashMap<Slot, Vec<u64>, FxBuildHasher>,
    latest: HashMap<Slot, u64, FxBuildHasher>,
    idle: Vec<CallId>,
    /// Raised with every change of the graph's edges.
    edges_changed: u64,
}

impl Waiters {
    pub(crate) fn forget(&mut self, call: CallId) {
        self.open.remove(&call);
        self.idle.retain(|idle| *idle != call);
    }

    pub(crate) fn wait_until_idle(&mut self, call: CallId) {
        self.idle.push(call);
    }

    pub(crate) fn take_idle(&mut self) -> Vec<CallId> {
        std::mem::take(&mut self.idle)
    }

    /// Returns true if somebody waits for everything to be settled.
    pub(crate) fn awaits_idle(&self) -> bool {
        !self.idle.is_empty()
    }

    /// Lists the resources that callers wait for to complete or to settle.
    pub(crate) fn awaited(&self) -> impl Iterator<Item = Slot> + '_ {
        self.outcomes.keys().chain(self.waits.keys()).copied()
    }

    /// Returns true if each group waits for as many as it counts, and whoever joins one finds it.
    pub(crate) fn groups_add_up(&self) -> bool {
        let mut waits: HashMap<u64, usize> = HashMap::new();
        for number in self.waits.values().flatten() {
            *waits.entry(*number).or_default() += 1;
        }
        let counts = |(number, group): (&u64, &Group)| waits.get(number) == Some(&group.remaining);
        let is_there = |number: &u64| self.groups.contains_key(number);
        waits.len() == self.groups.len()
            && self.groups.iter().all(counts)
            && self.latest.values().all(is_there)
    }

    /// Every handle with an answer to come, and which: outcome, settled.
    pub(crate) fn take_open(&mut self) -> Vec<(CallId, bool, bool)> {
        let mut open: Vec<_> = self
            .open
            .drain()
            .map(|(call, open)| (call, open.outcome, open.settled))
            .collect();
        open.sort_unstable();
        open
    }

    fn joinable(&self, root: Slot) -> Option<u64> {
        let number = *self.latest.get(&root)?;
        let group = self.groups.get(&number)?;
        (group.remaining == group.total && group.edges_changed == self.edges_changed).then_some(number)
    }

    /// The graph's edges are about to change: who asks afterwards may wait for others.
    pub(crate) fn edges_change(&mut self) {
        self.edges_changed += 1;
    }

    /// Makes the handle of a request that has just been taken up: it waits for the first run that starts from `since` on.
    pub(crate) fn open(
        &mut self,
        graph: &mut Graph,
        journal: &mut Journal,
        (call, since): (CallId, InvocationId),
        slot: Slot,
    ) {
        self.open.insert(
            call,
            Open {
                outcome: true,
                settled: true,
            },
        );
        self.outcomes.entry(slot).or_default().push((call, since));
        if let Some(group) = self.joinable(slot) {
            if let Some(group) = self.groups.get_mut(&group) {
                group.calls.push(call);
            }
            return;
        }
        let members = graph.unsettled_from(slot);
        let number = self.next_group;
        self.next_group += 1;
        for member in &members {
            self.waits.entry(*member).or_default().push(number);
        }
        let (total, edges_changed) = (members.len(), self.edges_changed);
        let group = Group {
            calls: vec![call],
            root: slot,
            total,
            remaining: total,
            edges_changed,
        };
        self.groups.insert(number, group);
        self.latest.insert(slot, number);
        if total == 0 {
            self.close_group(journal, number);
        }
    }

    fn close_group(&mut self, journal: &mut Journal, number: u64) {
        let Some(group) = self.groups.remove(&number) else {
            return;
        };
        if self.latest.get(&group.root) == Some(&number) {
            self.latest.remove(&group.root);
        }
        for call in group.calls {
            self.give(journal, call, Answer::Settled(Settlement::Settled));
        }
    }

    /// Gives an answer to a handle, if it is still held and waits for one of this sort.
    fn give(&mut self, journal: &mut Journal, call: CallId, answer: Answer) {
        let Some(open) = self.open.get_mut(&call) else {
            return;
        };
        let waits = match answer {
            Answer::Outcome(_) => std::mem::take(&mut open.outcome),
            Answer::Settled(_) => std::mem::take(&mut open.settled),
            _ => false,
        };
        if !(open.outcome || open.settled) {
            self.open.remove(&call);
        }
        if waits {
            journal.answer(call, answer);
        }
    }

    /// An invocation completed: who asked before it started has an outcome.
    pub(crate) fn answer_outcome(
        &mut self,
        journal: &mut Journal,
        slot: Slot,
        invocation: InvocationId,
        outcome: RunOutcome,
    ) {
        let Some(mut waiting) = self.outcomes.remove(&slot) else {
            return;
        };
        let later: Vec<_> = waiting.extract_if(.., |(_, since)| *since > invocation).collect();
        for (call, _) in waiting {
            self.give(journal, call, Answer::Outcome(outcome.clone()));
        }
        if !later.is_empty() {
            self.outcomes.insert(slot, later);
        }
    }

    /// A resource has settled once.
    pub(crate) fn answer_settled(&mut self, graph: &Graph, journal: &mut Journal, slot: Slot) {
        if self.outcomes.is_empty() && self.waits.is_empty() {
            return;
        }
        let outcome = match graph[slot].settled() {
            Some(why) if graph[slot].life() == Life::Live => RunOutcome::NotRun(why.clone()),
            _ => RunOutcome::Deleted,
        };
        for (call, _) in self.outcomes.remove(&slot).unwrap_or_default() {
            self.give(journal, call, Answer::Outcome(outcome.clone()));
        }
        for number in self.waits.remove(&slot).unwrap_or_default() {
            let Some(group) = self.groups.get_mut(&number) else {
                continue;
            };
            group.remaining -= 1;
            if group.remaining == 0 {
                self.close_group(journal, number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;

    #[test]
    fn groups_that_do_not_add_up_are_found() {
        let mut bench = Bench::new();
        bench.settled(&[("a", &[]), ("b", &["a"])]);
        bench.reconcile("a");
        let handles = bench.core.waiters();
        let add_up = |change: fn(&mut Waiters)| {
            let mut handles = handles.clone();
            change(&mut handles);
            handles.groups_add_up()
        };
        assert!(add_up(|_| ()));
        assert!(!add_up(|it| it
            .groups
            .values_mut()
            .for_each(|group| group.remaining += 1)));
        assert!(!add_up(|it| it.waits.clear()));
        assert!(!add_up(|it| {
            it.groups.clear();
            it.latest.clear();
        }));
        assert!(!add_up(|it| it.latest.extend([(Slot::new(9), 99)])));
    }
}
