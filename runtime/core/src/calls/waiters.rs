//! Callers that wait for an outcome, for a subgraph to settle, or for everything to be idle.

use std::collections::HashMap;

use crate::graph::Graph;
use crate::graph::resource::{Cancelled, Life, Running};
use crate::journal::Journal;
use crate::types::index::Slot;
use crate::{Answer, CallId, InvocationId, RunOutcome, Settlement, Uid};
use rustc_hash::FxBuildHasher;

/// Answers that a handle still waits for.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    outcomes: Outcomes,
    /// Number of groups that have yet to settle; 0 once that is answered.
    groups: u8,
}

/// Outcomes that a handle still waits for.
#[derive(Clone, Debug)]
enum Outcomes {
    Answered,
    /// The outcome of a request.
    One,
    /// The outcomes of a batch, including those that have already arrived.
    Each {
        left: usize,
        so_far: Vec<Option<RunOutcome>>,
    },
}

impl Open {
    fn is_answered(&self) -> bool {
        matches!(self.outcomes, Outcomes::Answered) && self.groups == 0
    }

    /// Returns the last answers of a handle that is given up on: `outcome` replaces every missing outcome.
    pub(crate) fn end(self, outcome: &RunOutcome, settlement: Settlement) -> impl Iterator<Item = Answer> {
        let outcomes = match self.outcomes {
            Outcomes::Answered => None,
            Outcomes::One => Some(Answer::Outcome(outcome.clone())),
            Outcomes::Each { so_far, .. } => {
                let whole = so_far
                    .into_iter()
                    .map(|one| one.unwrap_or_else(|| outcome.clone()));
                Some(Answer::Outcomes(whole.collect()))
            }
        };
        let settled = (self.groups > 0).then_some(Answer::Settled(settlement));
        outcomes.into_iter().chain(settled)
    }
}

/// A handle's wait for the outcome of one resource.
#[derive(Clone, Copy, Debug)]
struct Awaits {
    call: CallId,
    /// First invocation whose outcome counts.
    since: InvocationId,
    /// Index of the outcome in its call.
    place: usize,
    /// True if the resource was already being deleted: unless the delete completes, the caller is not told that the
    /// resource is deleted.
    is_delete: bool,
}

/// Callers that wait for the same set of resources to settle once.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
struct Group {
    calls: Vec<CallId>,
    root: Option<Slot>,
    total: usize,
    remaining: usize,
    /// Value of the edge counter when the group was made.
    edges_changed: u64,
    /// True if the group waits until resources that are being deleted have left the catalog.
    until_gone: bool,
}

/// All waiting callers.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Waiters {
    open: HashMap<CallId, Open, FxBuildHasher>,
    /// Callers that wait for the outcome of a run, by resource.
    outcomes: HashMap<Slot, Vec<Awaits>, FxBuildHasher>,
    groups: HashMap<u64, Group, FxBuildHasher>,
    next_group: u64,
    /// Groups that wait for a resource to settle, by resource.
    waits: HashMap<Slot, Vec<u64>, FxBuildHasher>,
    latest: HashMap<Slot, u64, FxBuildHasher>,
    idle: Vec<CallId>,
    /// Counter that rises with every change of the graph's edges.
    edges_changed: u64,
}

impl Waiters {
    pub(crate) fn forget(&mut self, call: CallId) {
        self.open.remove(&call);
        // What it waits for in groups stays noted. It ends with the group, and to search for it here would cost a walk.
        self.idle.retain(|idle| *idle != call);
    }

    pub(crate) fn wait_until_idle(&mut self, call: CallId) {
        self.idle.push(call);
    }

    pub(crate) fn take_idle(&mut self) -> Vec<CallId> {
        std::mem::take(&mut self.idle)
    }

    /// Returns true if a caller waits until everything has settled.
    pub(crate) fn awaits_idle(&self) -> bool {
        !self.idle.is_empty()
    }

    /// Lists the resources that callers wait for, to complete or to settle.
    pub(crate) fn awaited(&self) -> impl Iterator<Item = Slot> + '_ {
        self.outcomes.keys().copied().chain(self.awaited_by(false))
    }

    /// Lists the deleted resources that callers wait for, to leave the catalog.
    pub(crate) fn awaited_to_go(&self) -> impl Iterator<Item = Slot> + '_ {
        self.awaited_by(true)
    }

    fn awaited_by(&self, until_gone: bool) -> impl Iterator<Item = Slot> + '_ {
        let is_one = move |number: &u64| {
            self.groups
                .get(number)
                .is_some_and(|it| it.until_gone == until_gone)
        };
        let awaited = self.waits.iter();
        let awaited = awaited.filter(move |(_, groups)| groups.iter().any(is_one));
        awaited.map(|(slot, _)| *slot)
    }

    /// Returns true if each group waits for as many resources as it counts, and can be found by callers that may join.
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

    /// Takes all handles with open answers, in order of their calls.
    pub(crate) fn take_open(&mut self) -> Vec<(CallId, Open)> {
        let mut open: Vec<_> = self.open.drain().collect();
        // Answers are effects, and equal inputs give equal effects in equal order.
        open.sort_unstable_by_key(|(call, _)| *call);
        open
    }

    fn joinable(&self, root: Slot) -> Option<u64> {
        let number = *self.latest.get(&root)?;
        let group = self.groups.get(&number)?;
        // Once one of a group has settled, or an edge has changed, a later caller waits for others: `settled` is about the
        // descendants at the time of the request, each settled once after it.
        (group.remaining == group.total && group.edges_changed == self.edges_changed).then_some(number)
    }

    /// Notes that the graph's edges are about to change: later callers must not join the present groups.
    pub(crate) fn edges_change(&mut self) {
        self.edges_changed += 1;
    }

    /// Opens the handle of an accepted request. It waits for the first run that starts from `since` on.
    pub(crate) fn open(
        &mut self,
        graph: &mut Graph,
        journal: &mut Journal,
        (call, since): (CallId, InvocationId),
        slot: Slot,
    ) {
        let open = Open {
            outcomes: Outcomes::One,
            groups: 1,
        };
        self.open.insert(call, open);
        let awaits = Awaits {
            call,
            since,
            place: 0,
            is_delete: false,
        };
        self.outcomes.entry(slot).or_default().push(awaits);
        // A thousand requests for one root would otherwise each note all that is below it.
        if let Some(group) = self.joinable(slot) {
            if let Some(group) = self.groups.get_mut(&group) {
                group.calls.push(call);
            }
            return;
        }
        let members = graph.unsettled_from(&[slot]);
        self.open_group(journal, (call, Some(slot)), &members, false);
    }

    /// Opens the handle of an applied batch: it waits for the outcome of each resource, for all of them and their
    /// descendants to settle, and for deleted ones to leave the catalog.
    pub(crate) fn open_batch(
        &mut self,
        graph: &mut Graph,
        journal: &mut Journal,
        (call, next): (CallId, InvocationId),
        uids: &[Uid],
    ) {
        let outcomes = Outcomes::Each {
            left: uids.len(),
            so_far: vec![None; uids.len()],
        };
        self.open.insert(call, Open { outcomes, groups: 2 });
        if uids.is_empty() {
            self.give_outcomes(journal, call);
        }
        let (mut live, mut deleted) = (Vec::new(), Vec::new());
        for (place, uid) in uids.iter().enumerate() {
            let found = graph.find(*uid).filter(|slot| graph[*slot].life() != Life::Gone);
            let Some(slot) = found else {
                self.give_outcome(journal, (call, place), RunOutcome::Deleted);
                continue;
            };
            let resource = &graph[slot];
            let is_delete = !resource.is_live();
            let group = if is_delete { &mut deleted } else { &mut live };
            group.push(slot);
            if let Some(why) = resource.settled() {
                let outcome = RunOutcome::NotRun(why.clone());
                self.give_outcome(journal, (call, place), outcome);
                continue;
            }
            let running = resource.run().filter(|run| run.cancelled() == Cancelled::No);
            let awaits = Awaits {
                call,
                // What still runs after the batch was carried out was not cancelled by it, so it has seen the edit.
                since: running.map_or(next, Running::invocation),
                place,
                is_delete,
            };
            self.outcomes.entry(slot).or_default().push(awaits);
        }
        let members = graph.unsettled_from(&live);
        self.open_group(journal, (call, None), &members, false);
        // Two edits of a batch may delete one resource, by its name and as something that is owned.
        deleted.sort_unstable();
        deleted.dedup();
        self.open_group(journal, (call, None), &deleted, true);
    }

    /// Creates a group for one call. Later calls may join if the group stands for a request for `root`.
    fn open_group(
        &mut self,
        journal: &mut Journal,
        (call, root): (CallId, Option<Slot>),
        members: &[Slot],
        until_gone: bool,
    ) {
        let number = self.next_group;
        self.next_group += 1;
        for member in members {
            self.waits.entry(*member).or_default().push(number);
        }
        let group = Group {
            calls: vec![call],
            root,
            total: members.len(),
            remaining: members.len(),
            edges_changed: self.edges_changed,
            until_gone,
        };
        self.groups.insert(number, group);
        if let Some(root) = root {
            self.latest.insert(root, number);
        }
        if members.is_empty() {
            self.close_group(journal, number);
        }
    }

    fn close_group(&mut self, journal: &mut Journal, number: u64) {
        let Some(group) = self.groups.remove(&number) else {
            return;
        };
        if let Some(root) = group.root
            // Edges may have changed since, and then a later request for the same root has opened a newer group.
            && self.latest.get(&root) == Some(&number)
        {
            self.latest.remove(&root);
        }
        for call in group.calls {
            self.give_settled(journal, call);
        }
    }

    /// Records that one of a handle's groups has settled, and answers the call if that was the last.
    fn give_settled(&mut self, journal: &mut Journal, call: CallId) {
        let Some(open) = self.open.get_mut(&call).filter(|open| open.groups > 0) else {
            return;
        };
        open.groups -= 1;
        if open.groups == 0 {
            self.close_if_answered(call);
            journal.answer(call, Answer::Settled(Settlement::Settled));
        }
    }

    /// Gives a handle the outcome at one index, if the handle is still open and lacks that outcome.
    fn give_outcome(&mut self, journal: &mut Journal, (call, place): (CallId, usize), outcome: RunOutcome) {
        let Some(open) = self.open.get_mut(&call) else {
            return;
        };
        match &mut open.outcomes {
            Outcomes::Answered => {}
            Outcomes::One => {
                open.outcomes = Outcomes::Answered;
                self.close_if_answered(call);
                journal.answer(call, Answer::Outcome(outcome));
            }
            Outcomes::Each { left, so_far } => {
                if let Some(empty) = so_far.get_mut(place).filter(|it| it.is_none()) {
                    *empty = Some(outcome);
                    *left -= 1;
                }
                if *left == 0 {
                    self.give_outcomes(journal, call);
                }
            }
        }
    }

    /// Answers a call with the complete outcomes of its batch.
    fn give_outcomes(&mut self, journal: &mut Journal, call: CallId) {
        let Some(open) = self.open.get_mut(&call) else {
            return;
        };
        if let Outcomes::Each { so_far, .. } = std::mem::replace(&mut open.outcomes, Outcomes::Answered) {
            let outcomes = so_far.into_iter().flatten().collect();
            self.close_if_answered(call);
            journal.answer(call, Answer::Outcomes(outcomes));
        }
    }

    fn close_if_answered(&mut self, call: CallId) {
        if self.open.get(&call).is_some_and(Open::is_answered) {
            self.open.remove(&call);
        }
    }

    /// Answers the callers that waited since before this invocation started.
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
        let later: Vec<_> = waiting.extract_if(.., |it| it.since > invocation).collect();
        for it in waiting {
            self.give_outcome(journal, (it.call, it.place), outcome.clone());
        }
        if !later.is_empty() {
            self.outcomes.insert(slot, later);
        }
    }

    /// Counts a resource as settled in every group that waits for it.
    pub(crate) fn answer_settled(&mut self, graph: &Graph, journal: &mut Journal, slot: Slot) {
        if self.outcomes.is_empty() && self.waits.is_empty() {
            return;
        }
        let life = graph[slot].life();
        let not_run = graph[slot].settled().map(|why| RunOutcome::NotRun(why.clone()));
        for it in self.outcomes.remove(&slot).unwrap_or_default() {
            let stays = life == Life::Live || (life == Life::Deleted && it.is_delete);
            let outcome = not_run.clone().filter(|_| stays);
            let outcome = outcome.unwrap_or(RunOutcome::Deleted);
            self.give_outcome(journal, (it.call, it.place), outcome);
        }
        let mut waiting = self.waits.remove(&slot).unwrap_or_default();
        if life == Life::Deleted {
            let groups = &self.groups;
            let stays = |number: &u64| groups.get(number).is_some_and(|group| group.until_gone);
            // A delete that failed has settled too. Those who wait for the resource to be gone wait on.
            let later: Vec<u64> = waiting.extract_if(.., |number| stays(number)).collect();
            if !later.is_empty() {
                self.waits.insert(slot, later);
            }
        }
        for number in waiting {
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
