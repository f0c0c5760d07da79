//! Application of a validated batch: first all edits, then the requests that follow.
//!
//! The order inside: take names from those that lose them, change rows and refs, give names to those that get
//! them, look for cycles, and only then make requests. So nothing is scheduled in between, and the order of edits cannot
//! matter.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::{
    Core,
    updates::{changes_anything, overwrite},
};
use crate::batch::plan::{Plan, Step};
use crate::graph::lifecycle::Event;
use crate::graph::owners::News;
use crate::graph::resource::{Cancelled, Life, Resource, Running};
use crate::types::edit::{no_labels, unless_empty};
use crate::types::index::{NameId, Slot};
use crate::{Cause, Deletion, Name, NewResource, Reason, Row, Settled, SpecVersion, Trigger, Uid, Update};
use rustc_hash::FxBuildHasher;

/// Consequences of a batch, collected while it is applied.
#[derive(Debug, Default)]
struct Tally {
    /// Touched names, each with the uid of the live resource that it had before: slots may be reused.
    names: BTreeMap<NameId, Option<Uid>>,
    /// Resources to request, each with the trigger and whether its refs changed.
    requests: Vec<(Slot, Trigger, bool)>,
    /// Ends of new edges, which may close a cycle, and former members of cycles.
    seeds: Vec<Slot>,
    dissolved: BTreeSet<Slot>,
    to_bind: Vec<Slot>,
    /// Resources whose retry policy changed.
    policies: Vec<Slot>,
    /// Owners to request for resources that leave the catalog, each with the reason. By uid: an owner may leave too.
    owners: Vec<(Uid, Arc<Reason>)>,
}

/// Author of a batch, with the origins of its edits.
#[derive(Debug)]
struct Author<'a> {
    cause: &'a Cause,
    /// Reason of the invocation that makes the batch; none if a caller makes it.
    before: Option<Arc<Reason>>,
    origins: HashMap<Uid, Arc<str>, FxBuildHasher>,
    /// Most recent reason: requests with the same reason share one value.
    last: RefCell<Option<Arc<Reason>>>,
}

/// A batch while it is applied.
pub(super) struct Applying<'a> {
    core: &'a mut Core,
    /// Resource whose invocation makes the batch; none if a caller makes it.
    own: Option<Slot>,
    by: Author<'a>,
    tally: Tally,
}

impl<'a> Applying<'a> {
    /// Applies a plan. `own` is the resource whose invocation makes the batch.
    pub(super) fn carry_out(core: &'a mut Core, plan: Plan, own: Option<Slot>, cause: &'a Cause) {
        let (steps, origins) = plan.into_steps();
        let steps = steps.into_iter();
        let steps: Vec<Step> = steps.filter(|step| changes_anything(&core.graph, step)).collect();
        // Most parses change nothing. They take no revision, cancel nothing and wake nobody.
        if steps.is_empty() {
            return;
        }
        let by = Author {
            cause,
            before: core.graph.reason_of_run(own),
            origins,
            last: RefCell::default(),
        };
        let mut applying = Self {
            core,
            own,
            by,
            tally: Tally::default(),
        };
        applying.apply(steps);
    }

    fn apply(&mut self, steps: Vec<Step>) {
        // Callers that wait already keep the descendants that they began with; those that come after the batch must not join
        // them (request 4).
        self.core.waiters.edges_change();
        self.core.graph.begin_batch();
        // All steps first take their names and cycles apart, then all change, then all are bound. The edits of a batch are
        // simultaneous, so that two resources can swap their names in one.
        self.take_names(&steps);
        for step in &steps {
            // A rename that was under way is over; ending it later would undo the order of deletes.
            if let Step::Delete { slot, .. } = step
                && self.core.graph[*slot].is_live()
            {
                self.core.end_op(*slot);
            }
        }
        // Before anything is unbound: the order of deletes follows the edges as they were, and they are gone afterwards (C6).
        self.order_new_deletes(&steps);
        for step in &steps {
            if let Step::Delete { .. } = step {
                self.unbind_if_live(step);
            }
        }
        let marked = self.marked_by(&steps);
        for step in steps {
            match step {
                Step::Create(new) => self.create(*new),
                Step::Delete { slot, force, owned } => self.delete(slot, force, owned),
                Step::Change {
                    slot,
                    update,
                    name,
                    take_up,
                } => {
                    self.change_row(slot, *update, name, take_up);
                }
            }
        }
        // Only now do names stand for what they stand for after the batch. Bound one by one between the steps, a swap would
        // pass through a state with two resources of one name.
        for slot in std::mem::take(&mut self.tally.to_bind) {
            self.core.graph.bind(slot);
        }
        self.free_what_is_kept_out(&marked);
        let policies = std::mem::take(&mut self.tally.policies);
        self.request_changed();
        self.request_owners();
        for slot in policies {
            self.core.follow_new_policy(slot);
        }
        self.core.wake_for_freed_names();
        self.core.graph.end_batch();
    }

    /// Requests the owners of resources that have left the catalog.
    fn request_owners(&mut self) {
        for (uid, reason) in std::mem::take(&mut self.tally.owners) {
            let owner = self.core.graph.find(uid);
            if let Some(owner) = owner.filter(|owner| self.core.graph[*owner].is_live()) {
                self.core.graph[owner].hold_until(self.core.journal.revision());
                self.core.request(owner, &reason);
            }
        }
    }

    /// Stops counting deletes and renames that abandoned invocations block. Runs after all names are bound.
    fn marked_by(&self, steps: &[Step]) -> Vec<Slot> {
        let slot = |step: &Step| match step {
            Step::Change { slot, .. } | Step::Delete { slot, .. } => Some(*slot),
            Step::Create(_) => None,
        };
        // Abandoned invocations are rare. Without one, a batch of 100,000 renames collects nothing here.
        let steps = steps.iter().filter(|_| self.core.graph.abandoned() > 0);
        steps.filter_map(slot).collect()
    }

    /// Stops counting deletes and renames that abandoned invocations block; runs once all names are bound.
    fn free_what_is_kept_out(&mut self, marked: &[Slot]) {
        for &slot in marked {
            let counts = self.core.graph.get(slot).is_some_and(|it| it.op_counts());
            if counts && self.core.graph.kept_out(slot).is_some() {
                self.core.stop_counting(slot);
            }
        }
    }

    /// Notes which names change hands, dissolves the touched cycles, and unbinds the names of renamed resources.
    fn take_names(&mut self, steps: &[Step]) {
        for step in steps {
            let (slot, moves) = match step {
                Step::Create(new) => {
                    self.note_name(&new.kind, &new.name);
                    continue;
                }
                Step::Delete { slot, .. } => (*slot, true),
                Step::Change {
                    slot,
                    name,
                    take_up,
                    update,
                } => {
                    let row = self.core.graph[*slot].row().clone();
                    let moves = name.as_ref().is_some_and(|name| *name != row.name);
                    if let Some(name) = name.as_ref().filter(|_| moves || *take_up) {
                        self.note_name(&row.kind, name);
                    }
                    let rerefs = update.refs.as_ref().is_some_and(|refs| *refs != row.refs);
                    let respelled = name.as_ref().is_some_and(|name| !name.same_case(&row.name));
                    // An edit of the spec alone leaves the edges as they are, so its cycle stays grouped and nothing is searched.
                    if !(rerefs || respelled || *take_up) {
                        continue;
                    }
                    (*slot, moves)
                }
            };
            // Its members count as one node, which can't stay so while an edge of one of them changes. They are grouped again
            // by `find_cycles`, if they still are a cycle.
            if let Some(cycle) = self.core.graph[slot].cycle() {
                let members = self.core.graph.dissolve(cycle);
                self.tally.seeds.extend(&members);
                self.tally.dissolved.extend(members);
            }
            if moves && self.core.graph[slot].is_live() {
                let uid = self.core.graph[slot].row().uid;
                self.tally
                    .names
                    .entry(self.core.graph[slot].name())
                    .or_insert(Some(uid));
            }
        }
    }

    fn note_name(&mut self, kind: &crate::Kind, name: &Name) {
        let kind = self.core.graph.intern_kind(kind);
        let id = self.core.graph.intern(kind, name);
        let live = self.core.graph.live_uid(id);
        self.tally.names.entry(id).or_insert(live);
    }

    fn unbind_if_live(&mut self, step: &Step) {
        if let Step::Delete { slot, .. } = step
            && self.core.graph[*slot].is_live()
        {
            self.core.graph.unbind(*slot);
        }
    }

    /// Makes new deletes wait for the deletes of what, before the batch, referred to their resource or was owned by it.
    fn order_new_deletes(&mut self, steps: &[Step]) {
        let deleted = steps.iter().filter_map(|step| match step {
            Step::Delete {
                slot,
                force: false,
                owned,
            }
                // A resource that deletes itself is gone at once (C14), and so is one that nothing could have made: no order
                // holds for these.
                if !self.deletes_itself(*slot, *owned) && self.core.graph.can_run(*slot) =>
            {
                Some((*slot, self.core.graph.delete_targets(*slot)))
            }
            _ => None,
        });
        let deleted: Vec<_> = deleted.collect();
        self.core.barrier.order_deletes(&mut self.core.graph, &deleted);
    }

    fn create(&mut self, new: NewResource) {
        let kind = self.core.graph.intern_kind(&new.kind);
        let name = self.core.graph.intern(kind, &new.name);
        let interned = self.core.graph.kinds()[kind].kind().clone();
        let row = Row {
            refs: unless_empty(new.refs),
            owner: new.owner,
            paths: unless_empty(new.paths),
            labels: if new.labels.is_empty() {
                no_labels()
            } else {
                new.labels
            },
            revision: self.core.journal.revision(),
            spec_version: SpecVersion(1),
            retry: new.retry.map(Arc::new),
            hidden: new.hidden,
            created_at: self.core.now.wall,
            updated_at: self.core.now.wall,
            spec_format: new.spec_format,
            spec: unless_empty(new.spec),
            ..Row::new(new.uid, interned, new.name)
        };
        let slot = self
            .core
            .graph
            .insert(Resource::new(Arc::new(row), kind, name, Life::Live));
        // The row is whole already; this marks it as one to be stored.
        self.core.write(slot, |_| {});
        self.core
            .graph
            .set_owner(slot, None, self.core.graph[slot].row().owner);
        self.core.scheduler.gate_if_first(&mut self.core.graph, slot);
        self.core.graph.attach(slot);
        self.tally.to_bind.push(slot);
        self.tally.seeds.push(slot);
        self.tally.requests.push((slot, Trigger::Created, true));
    }

    /// Returns true if the resource's own invocation deletes it by name, and not through its owner (C14, C15).
    fn deletes_itself(&self, slot: Slot, owned: bool) -> bool {
        self.own == Some(slot) && !owned
    }

    /// Marks an unbound resource as deleted, or removes it: by force, by its own run, or because nothing was made.
    fn delete(&mut self, slot: Slot, force: bool, owned: bool) {
        if self.core.graph[slot].is_live() {
            self.leave_graph(slot);
            self.core.graph[slot].set_life(Life::Deleted);
        }
        let never_made = !self.core.graph.may_have_made(slot);
        // Without a reconciler nothing can undo it. That is no loss where nothing was ever made; unreadable bytes may stand
        // for something that was.
        let by_itself = self.deletes_itself(slot, owned);
        if by_itself || force || (never_made && self.core.graph[slot].unreadable().is_none()) {
            if force {
                let reason = self.reason_by(slot, Trigger::Deleted);
                self.core
                    .journal
                    .record_forced(self.core.graph[slot].row(), self.core.now.wall, reason);
            }
            // Its own invocation returns by itself: it is the one that deletes.
            if !by_itself {
                self.core.cancel_run(slot, Cancelled::ToRunAgain);
            }
            if let Some(owner) = self.core.graph.owner_to_request(slot, News::Changed) {
                let uid = self.core.graph[owner].row().uid;
                self.tally.owners.push((uid, self.core.reason_for_owner(slot)));
            }
            return self.core.remove(slot);
        }
        self.core.end_op(slot);
        let (at, revision) = (self.core.now.wall, self.core.journal.change());
        self.core.write(slot, |row| {
            row.intents.deletion = Some(Deletion { at, revision });
            row.spec_version = row.spec_version.next();
            // Times and attempts belong to reconciles. The delete begins with attempts of its own.
            row.next_reconcile = None;
            row.attempts = 0;
        });
        self.core.clear_times(slot);
        self.core.graph.claim(slot);
        self.core.graph[slot].hold_until(self.core.journal.revision());
        self.core.begin_op(slot);
        let reason = self.reason_by(slot, Trigger::Deleted);
        // A delete is not among the regular work that the next drain waits for.
        self.core.graph.leave_cohort(slot);
        self.set_aside(slot, reason);
    }

    /// Queues a deleted resource for its delete, which waits until a running invocation has returned.
    fn set_aside(&mut self, slot: Slot, reason: Arc<Reason>) {
        match self.core.graph[slot].run_mut() {
            Some(run) => {
                run.set_rerun(Some(reason));
                self.core.cancel_run(slot, Cancelled::ToRunAgain);
            }
            None => self.core.set_pending(slot, reason),
        }
        // Deletes pass the gate, so it must not wait for one.
        self.core.scheduler.leave_gate(&mut self.core.graph, slot);
    }

    /// Takes an unbound resource out of the graph.
    fn leave_graph(&mut self, slot: Slot) {
        self.core.graph.detach(slot);
        if self.core.graph[slot].run().is_some_and(|run| run.is_busy()) {
            // It has no edges any more: its return could not take it out of the counts of its ancestors.
            self.core.graph.uncount_running(slot);
            if let Some(run) = self.core.graph[slot].run_mut() {
                run.set_busy(false);
            }
        }
        let resource = &mut self.core.graph[slot];
        debug_assert!(
            resource.unsettled_parents() == 0 && resource.busy_children() == 0 && resource.running() == 0
        );
        // Nothing reconciles it any more, so a request for that has nobody to answer it.
        resource.take_owed();
    }

    /// Makes a deleted resource live again. Its name is bound later, with the others.
    fn enter_graph(&mut self, slot: Slot) {
        self.core.end_op(slot);
        self.core.barrier.release_delete_waits(&mut self.core.graph, slot);
        self.core.graph.unclaim(slot);
        self.core.graph[slot].set_life(Life::Live);
        // Whoever takes it up, also its own delete: what it waited for before was that delete (C17).
        self.core.graph[slot].disturb(self.core.now.mono);
        self.core.scheduler.gate_if_first(&mut self.core.graph, slot);
        self.core.cancel_run(slot, Cancelled::ToRunAgain);
        match self.core.graph[slot].run_mut() {
            Some(run) => {
                // Its delete has not returned yet, and it stands below its parents again: none of them may start before
                // that (C3).
                run.set_busy(true);
                // That was its delete, which nobody wants any more.
                run.set_rerun(None);
                self.core.graph.count_running(slot);
            }
            None => {
                self.core.on(slot, Event::Settled(Settled::Idle));
            }
        }
    }

    fn change_row(&mut self, slot: Slot, update: Update, name: Option<Name>, take_up: bool) {
        let before = self.core.graph[slot].row().clone();
        // Equal values are no change: they raise no version, cancel nothing and request nothing.
        let refs = update.refs.clone().filter(|refs| *refs != before.refs);
        let name = name.filter(|name| !name.same_case(&before.name));
        let spec = update
            .spec
            .as_ref()
            .is_some_and(|spec| (&spec.0, spec.1) != (&before.spec, before.spec_format));
        if take_up {
            self.enter_graph(slot);
        } else if name.as_ref().is_some_and(|name| *name != before.name) {
            self.core.graph.unbind(slot);
        }
        if refs.is_some() && !take_up {
            self.core.graph.detach(slot);
        }
        let versioned = take_up || spec || refs.is_some() || name.is_some();
        self.core.write(slot, |row| {
            if take_up {
                row.intents.deletion = None;
                // It is made anew as far as readers see, though the uid and the state are those from before (C13).
                row.error = None;
                row.unready = None;
                row.attempts = 0;
            }
            if versioned {
                row.spec_version = row.spec_version.next();
            }
            overwrite(row, update);
        });
        if self.core.graph[slot].row().retry != before.retry {
            self.tally.policies.push(slot);
        }
        self.core
            .graph
            .set_owner(slot, before.owner, self.core.graph[slot].row().owner);
        if let Some(name) = name.clone() {
            self.rename(slot, name, take_up);
        }
        if take_up || refs.is_some() {
            self.core.graph.attach(slot);
        }
        if !self.core.graph.is_bound(slot) {
            self.tally.to_bind.push(slot);
        }
        if take_up || refs.is_some() || name.is_some() {
            self.tally.seeds.push(slot);
        }
        if versioned {
            let why = match (take_up, spec || refs.is_some()) {
                (true, _) => Trigger::Created,
                (false, true) => Trigger::Edited,
                (false, false) => Trigger::Renamed,
            };
            self.tally.requests.push((slot, why, refs.is_some()));
        }
        if take_up && self.core.graph[slot].row().intents.is_renamed() {
            self.core.begin_op(slot);
        }
    }

    /// Renames a resource, and marks it for the rename phase. Its old name is already unbound if it really changes.
    fn rename(&mut self, slot: Slot, name: Name, take_up: bool) {
        let kind = self.core.graph[slot].kind();
        let id = self.core.graph.intern(kind, &name);
        self.core.graph[slot].set_name(id);
        let keeps_mark = self.core.graph.may_have_made(slot);
        self.core.write(slot, |row| {
            let old = std::mem::replace(&mut row.name, name);
            // Where nothing was made, nothing outside bears the old name, and no rename is to be run.
            if keeps_mark {
                let known = row
                    .intents
                    .former_names
                    .iter()
                    .any(|former| former.same_case(&old));
                let former = row.intents.former_names.iter().cloned();
                row.intents.former_names = former.chain((!known).then_some(old)).collect();
            }
        });
        self.core.claim_former_names(slot);
        if !take_up {
            self.core.begin_op(slot);
        }
    }

    /// Finds new cycles, and requests all resources that the batch affects.
    fn request_changed(&mut self) {
        let moved: Vec<(NameId, Option<Uid>)> = std::mem::take(&mut self.tally.names)
            .into_iter()
            .filter(|(name, before)| self.core.graph.live_uid(*name) != *before)
            .collect();
        let dissolved = std::mem::take(&mut self.tally.dissolved);
        // Before any request: requests walk nodes, and the members of a cycle are one.
        let changes = self.core.graph.find_cycles(&self.tally.seeds, &dissolved);
        let core = &mut *self.core;
        core.journal.write_cycle_errors(
            &mut core.graph,
            core.now.wall,
            (changes.regrouped(), changes.left()),
        );
        let mut own_edit = None;
        for (slot, why, refs) in std::mem::take(&mut self.tally.requests) {
            // It may stand below others of this batch, and whether they are unsettled is known only when they are requested.
            if self.own == Some(slot) {
                own_edit = Some((slot, why, refs));
            } else if self
                .core
                .graph
                .get(slot)
                .is_some_and(|resource| resource.is_live())
            {
                self.hold_and_request(slot, why);
            }
        }
        // They are not invoked, but they settle with their error, and those below then see failed parents.
        for slot in changes.entered().iter().copied() {
            self.hold_and_request(slot, Trigger::Edited);
        }
        for slot in changes.left().iter().copied() {
            if self
                .core
                .graph
                .get(slot)
                .is_some_and(|resource| resource.is_live())
            {
                self.hold_and_request(slot, Trigger::Recovered);
            }
        }
        // A ref is to a name. What reads that name may read another resource now, or none (request 2).
        for (name, _) in moved {
            let referrers = self.core.graph.referrers(name);
            let because = self.reason_for_ref(self.core.graph.live(name));
            for slot in referrers {
                self.core.graph[slot].hold_until(self.core.journal.revision());
                self.core.request(slot, &because);
            }
            self.core.graph.release_name(name);
        }
        // Last, for what the rest of the batch requests may stand above it now.
        match own_edit {
            Some((slot, why, refs)) if self.adds_unsettled(slot, refs) => self.hold_and_request(slot, why),
            Some((slot, _, refs)) => self.see_own_edit(slot, refs),
            None => {}
        }
    }

    fn hold_and_request(&mut self, slot: Slot, why: Trigger) {
        self.core.graph[slot].hold_until(self.core.journal.revision());
        let reason = self.reason_by(slot, why);
        self.core.request(slot, &reason);
    }

    fn reason_by(&self, slot: Slot, why: Trigger) -> Arc<Reason> {
        let origin = self.by.origins.get(&self.core.graph[slot].row().uid);
        let mut last = self.by.last.borrow_mut();
        let same = |last: &&mut Arc<Reason>| last.trigger == why && last.origin.as_ref() == origin;
        // A whole parse is one batch of thousands of edits with the same cause: they share one reason.
        if let Some(last) = last.as_mut().filter(same) {
            return last.clone();
        }
        let mut reason = Reason::because(why, self.by.cause.clone());
        reason.origin = origin.cloned();
        let reason = Arc::new(reason.after(self.by.before.clone()));
        *last = Some(reason.clone());
        reason
    }

    /// Returns the reason to request the referrers of a name that now stands for another resource, or for none.
    fn reason_for_ref(&self, live: Option<Slot>) -> Arc<Reason> {
        let (cause, before) = match live {
            Some(live) => (
                self.core.graph.cause_of(live),
                self.core.graph.reason_to_come(live),
            ),
            None => (self.by.cause.clone(), self.by.before.clone()),
        };
        Arc::new(Reason::because(Trigger::RefChanged, cause).after(before))
    }

    /// Returns true if new refs add a pending or running parent: then even an edit by the resource's own invocation
    /// counts as an edit by others (C5).
    fn adds_unsettled(&self, slot: Slot, refs_changed: bool) -> bool {
        let unsettled = |parent: Slot| parent != slot && self.core.graph[parent].is_unsettled();
        refs_changed && self.core.graph.parents(slot).any(unsettled)
    }

    /// Counts an edit by the resource's own invocation as seen by that invocation.
    fn see_own_edit(&mut self, slot: Slot, refs_changed: bool) {
        self.core.graph[slot].hold_until(self.core.journal.revision());
        let now = self.core.graph.see(slot);
        if let Some(seen) = self.core.graph[slot].run_mut().and_then(Running::seen_mut) {
            // Otherwise the run's own write would make its outcome out of date, and it would run for ever (C5).
            seen.spec_version = now.spec_version;
            if refs_changed {
                seen.refs = now.refs;
            }
        }
    }
}
