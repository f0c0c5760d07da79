//! Callers that wait for an outcome, for a subgraph to settle, or for everything to be idle.

use std::collections::HashMap;

use crate::graph::Graph;
use crate::graph::resource::{Cancelled, Life, Running};
use crate::journal::Journal;
use crate::types::index::Slot;
use crate::{Answer, CallId, InvocationId, RunOutcome, Settlement, Uid};
use rustc_hash::FxBuildHasher;

/// The answers that a handle still waits for.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    outcomes: Outcomes,
    /// The number of groups that have to settle; none when it has been answered.
    groups: u8,
}

/// The outcomes that a handle still waits for.
#[derive(Clone, Debug)]
enum Outcomes {
    Answered,
    /// That of a request.
    One,
    /// Those of a batch, as far as they came.
    Each {
        left: usize,
        so_far: Vec<Option<RunOutcome>>,
    },
}

impl Open {
    fn is_answered(&self) -> bool {
        matches!(self.outcomes, Outcomes::Answered) && self.groups == 0
    }

    /// The answers of a handle that is given up on, with this outcome wherever there is none.
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

/// A handle that waits for the outcome of a resource.
#[derive(Clone, Copy, Debug)]
struct Awaits {
    call: CallId,
    /// The first invocation whose outcome counts.
    since: InvocationId,
    /// The place of the outcome among those of its call.
    place: usize,
    /// True if the resource was being deleted already: settled without that being done, it is not told as deleted.
    is_delete: bool,
}

/// Waiters that wait for the same resources to settle once.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
struct Group {
    calls: Vec<CallId>,
    root: Option<Slot>,
    total: usize,
    remaining: usize,
    /// The edges when it was made.
    edges_changed: u64,
    /// True if it waits for resources that are being deleted until they have left the catalog.
    until_gone: bool,
}

/// All who wait.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Waiters {
    open: HashMap<CallId, Open, FxBuildHasher>,
    /// Per resource: who waits for the outcome of a run.
    outcomes: HashMap<Slot, Vec<Awaits>, FxBuildHasher>,
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
        // What it waits for in groups stays noted. It ends with the group, and to search for it here would cost a walk.
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
        self.outcomes.keys().copied().chain(self.awaited_by(false))
    }

    /// Lists the resources that were being deleted when callers began to wait for them to leave the catalog.
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

    /// Takes every handle with an answer to come, in order.
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

    /// The graph's edges are about to change: callers that come afterwards may wait for others.
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

    /// Makes the handle of a batch that has just been carried out: it waits for the outcome of each of these resources
    /// (of the run that saw the edit, the first from `next` on unless one that runs has seen it), for all of them and
    /// what is below them to settle, and for those that are being deleted to leave the catalog.
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

    /// Makes a group for one call, which others may join if it stands for a request for `root`.
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

    /// One of the groups of a handle has settled.
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

    /// Gives an outcome to a handle, if it is still held and waits for one in this place.
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

    /// Gives a handle the outcomes of its batch, which are all there.
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

    /// An invocation completed: callers from before its start have an outcome.
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

    /// A resource has settled once, or has left the catalog.
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
