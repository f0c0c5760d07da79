//! Carrying out a batch that was found good: all of its edits at once, then what they ask for.
//!
//! The order inside: take names from those that lose them, change rows and refs, give names to those that get
//! them, look for cycles, and only then ask. So nothing is scheduled in between, and the order of edits cannot
//! matter.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::batch::plan::{Plan, Step};
use crate::core::Core;
use crate::graph::cycles::CYCLE_CODE;
use crate::resource::lifecycle::Event;
use crate::resource::{Cancelled, Life, NameId, Resource, Slot};
use crate::types::edit::{no_labels, unless_empty};
use crate::{
    Cause, Deletion, Marks, Name, NewResource, QuickHash, Reason, Refreshes, Row, Settled, SpecVersion,
    StateVersion, Uid, Update, Why,
};

/// What a batch has come upon so far.
#[derive(Debug, Default)]
struct Tally {
    /// Names with the live resource that each had before; by uid, for a slot may be used again.
    names: BTreeMap<NameId, Option<Uid>>,
    /// Resources to be asked for, why, and whether their refs changed.
    asks: Vec<(Slot, Why, bool)>,
    /// Where new edges may close a cycle, and what was on one.
    seeds: Vec<Slot>,
    dissolved: BTreeSet<Slot>,
    to_bind: Vec<Slot>,
    /// Those that have another policy for retries.
    policies: Vec<Slot>,
}

/// Who makes a batch, and what is told of where it comes from.
#[derive(Debug)]
struct Author<'a> {
    cause: &'a Cause,
    /// Why the invocation runs that makes it, if one does.
    before: Option<Arc<Reason>>,
    origins: HashMap<Uid, Arc<str>, QuickHash>,
    /// The last reason that was made. What a batch asks for in the same way shares one.
    last: RefCell<Option<Arc<Reason>>>,
}

impl Core {
    /// Carries out a plan. `own` is the resource from whose invocation it comes.
    pub(crate) fn carry_out(&mut self, plan: Plan, own: Option<Slot>, cause: &Cause) {
        let by = Author {
            cause,
            before: self.reason_of_run(own),
            origins: plan.origins,
            last: RefCell::default(),
        };
        let mut tally = Tally::default();
        let steps: Vec<Step> = plan
            .steps
            .into_iter()
            .filter(|step| self.changes_anything(step))
            .collect();
        if steps.is_empty() {
            return;
        }
        self.handles.edges_changed += 1;
        self.names.keep_all();
        self.take_names(&steps, &mut tally);
        for step in &steps {
            // A rename that was under way is over; ending it later would undo the order of deletes.
            if let Step::Delete { slot, .. } = step
                && self.slots[*slot].is_live()
            {
                self.end_op(*slot);
            }
        }
        self.order_new_deletes(&steps, own);
        for step in &steps {
            if let Step::Delete { .. } = step {
                self.unbind_if_live(step);
            }
        }
        let marked = self.marked_by(&steps);
        for step in steps {
            match step {
                Step::Create(new) => self.create(*new, &mut tally),
                Step::Delete { slot, force } => self.delete(slot, force, own, &by),
                Step::Change {
                    slot,
                    update,
                    name,
                    take_up,
                } => {
                    self.change_row(slot, *update, name, take_up, &mut tally);
                }
            }
        }
        for slot in std::mem::take(&mut tally.to_bind) {
            self.bind(slot);
        }
        self.free_what_is_kept_out(&marked);
        let policies = std::mem::take(&mut tally.policies);
        self.ask_for_changed(tally, own, &by);
        for slot in policies {
            self.follow_new_policy(slot);
        }
        self.wake_for_freed_names();
        self.names.forget_unused();
    }

    fn changes_anything(&self, step: &Step) -> bool {
        let Step::Change {
            slot,
            update,
            name,
            take_up: false,
        } = step
        else {
            return true;
        };
        let row = &self.slots[*slot].row;
        name.as_ref().is_some_and(|name| !name.same_case(&row.name)) || !update_is_idle(row, update)
    }

    /// Notes which names change hands, dissolves the cycles that are touched, and unbinds what is renamed.
    fn take_names(&mut self, steps: &[Step], tally: &mut Tally) {
        for step in steps {
            let (slot, moves) = match step {
                Step::Create(new) => {
                    self.note_name(&new.kind, &new.name, tally);
                    continue;
                }
                Step::Delete { slot, .. } => (*slot, true),
                Step::Change {
                    slot,
                    name,
                    take_up,
                    update,
                } => {
                    let row = self.slots[*slot].row.clone();
                    let moves = name.as_ref().is_some_and(|name| *name != row.name);
                    if let Some(name) = name.as_ref().filter(|_| moves || *take_up) {
                        self.note_name(&row.kind, name, tally);
                    }
                    let rerefs = update.refs.as_ref().is_some_and(|refs| *refs != row.refs);
                    let respelled = name.as_ref().is_some_and(|name| !name.same_case(&row.name));
                    if !(rerefs || respelled || *take_up) {
                        continue;
                    }
                    (*slot, moves)
                }
            };
            if let Some(cycle) = self.slots[slot].cycle {
                let members = self.dissolve(cycle);
                tally.seeds.extend(&members);
                tally.dissolved.extend(members);
            }
            if moves && self.slots[slot].is_live() {
                let uid = self.slots[slot].row.uid;
                tally.names.entry(self.slots[slot].name).or_insert(Some(uid));
            }
        }
    }

    fn note_name(&mut self, kind: &crate::Kind, name: &Name, tally: &mut Tally) {
        let kind = self.kinds.intern(kind);
        let id = self.names.intern(kind, name);
        let live = self.live_uid(id);
        tally.names.entry(id).or_insert(live);
    }

    fn live_uid(&self, name: NameId) -> Option<Uid> {
        self.names[name].live.map(|live| self.slots[live].row.uid)
    }

    fn unbind_if_live(&mut self, step: &Step) {
        if let Step::Delete { slot, .. } = step
            && self.slots[*slot].is_live()
        {
            self.unbind(*slot);
        }
    }

    /// Deletes wait for those of what referred to them before the batch, or was owned by them.
    fn order_new_deletes(&mut self, steps: &[Step], own: Option<Slot>) {
        let deleted = steps.iter().filter_map(|step| match step {
            Step::Delete { slot, force: false } if own != Some(*slot) && self.can_run(*slot) => {
                Some((*slot, self.delete_targets(*slot)))
            }
            _ => None,
        });
        let deleted: Vec<_> = deleted.collect();
        self.order_deletes(&deleted);
    }

    fn create(&mut self, new: NewResource, tally: &mut Tally) {
        let kind = self.kinds.intern(&new.kind);
        let name = self.names.intern(kind, &new.name);
        let row = Row {
            uid: new.uid,
            kind: self.kinds[kind].kind.clone(),
            name: new.name,
            refs: unless_empty(new.refs),
            owner: new.owner,
            paths: unless_empty(new.paths),
            labels: if new.labels.is_empty() {
                no_labels()
            } else {
                new.labels
            },
            marks: Marks::default(),
            revision: self.revision,
            spec_version: SpecVersion(1),
            state_version: StateVersion(0),
            error: None,
            next_reconcile: None,
            attempts: 0,
            retry: new.retry.map(Arc::new),
            paused: false,
            hidden: new.hidden,
            refreshes: Refreshes::default(),
            created_at: self.now.wall,
            updated_at: self.now.wall,
            spec_format: new.spec_format,
            state_format: 0,
            runs_total: 0,
            last_run: None,
            last_success: None,
            spec: unless_empty(new.spec),
            state: None,
        };
        let slot = self
            .slots
            .insert(Resource::new(Arc::new(row), kind, name, Life::Live));
        self.write(slot, |_| {});
        self.set_owner(slot, None, self.slots[slot].row.owner);
        self.gate_if_first(slot);
        self.attach(slot);
        tally.to_bind.push(slot);
        tally.seeds.push(slot);
        tally.asks.push((slot, Why::Created, true));
    }

    /// Resources of `first` kinds settle once before any other regular invocation starts.
    pub(crate) fn gate_if_first(&mut self, slot: Slot) {
        if self.options(slot).is_some_and(|options| options.first) {
            self.slots[slot].gates = true;
            self.gate.insert(slot);
        }
    }

    /// Marks a resource that is unbound by now, or takes it out at once.
    fn delete(&mut self, slot: Slot, force: bool, own: Option<Slot>, by: &Author<'_>) {
        if self.slots[slot].is_live() {
            self.leave_graph(slot);
            self.slots[slot].life = Life::Deleted;
        }
        let never_made = !self.can_run(slot) && self.slots[slot].row.state.is_none();
        if own == Some(slot) || force || (never_made && self.slots[slot].unreadable().is_none()) {
            if force {
                let reason = self.reason_by(slot, Why::Deleted, by);
                self.record_forced(slot, reason);
            }
            if own != Some(slot) {
                self.cancel_run(slot, Cancelled::ToRunAgain);
            }
            return self.remove(slot);
        }
        self.end_op(slot);
        let (at, revision) = (self.now.wall, self.change());
        self.write(slot, |row| {
            row.marks.deletion = Some(Deletion { at, revision });
            row.spec_version = row.spec_version.next();
            row.next_reconcile = None;
            row.attempts = 0;
        });
        self.clear_times(slot);
        let name = self.slots[slot].name;
        self.names.claim(name, slot);
        self.slots[slot].hold = self.revision;
        self.begin_op(slot);
        let reason = self.reason_by(slot, Why::Deleted, by);
        self.barrier.no_longer_pending(slot);
        self.set_aside(slot, reason);
    }

    /// A deleted resource waits for its delete, or first for its invocation to return.
    fn set_aside(&mut self, slot: Slot, reason: Arc<Reason>) {
        match self.slots[slot].run_mut() {
            Some(run) => {
                run.again = Some(reason);
                self.cancel_run(slot, Cancelled::ToRunAgain);
            }
            None => self.set_pending(slot, reason),
        }
        if self.slots[slot].gates {
            self.slots[slot].gates = false;
            self.gate.remove(&slot);
        }
    }

    /// Takes a resource out of the graph; it is unbound already.
    fn leave_graph(&mut self, slot: Slot) {
        self.detach(slot);
        if self.slots[slot].run().is_some_and(|run| run.busy) {
            self.uncount_running(slot);
            if let Some(run) = self.slots[slot].run_mut() {
                run.busy = false;
            }
        }
        let resource = &mut self.slots[slot];
        debug_assert!(
            resource.unsettled_parents == 0 && resource.busy_children == 0 && resource.running == 0
        );
        resource.own = false;
    }

    /// Gives a deleted resource its life back; its name follows when names are bound.
    fn enter_graph(&mut self, slot: Slot) {
        self.end_op(slot);
        self.release_delete_waits(slot);
        let name = self.slots[slot].name;
        self.names.unclaim(name, slot);
        self.slots[slot].life = Life::Live;
        // Whoever takes it up, also its own delete: what it waited for before was that delete (C17).
        self.slots[slot].disturbed = self.now.mono;
        self.gate_if_first(slot);
        self.cancel_run(slot, Cancelled::ToRunAgain);
        match self.slots[slot].run_mut() {
            Some(run) => {
                run.busy = true;
                run.again = None;
                self.count_running(slot);
            }
            None => {
                self.on(slot, Event::Settled(Settled::Idle));
            }
        }
    }

    fn change_row(
        &mut self,
        slot: Slot,
        update: Update,
        name: Option<Name>,
        take_up: bool,
        tally: &mut Tally,
    ) {
        let before = self.slots[slot].row.clone();
        let refs = update.refs.clone().filter(|refs| *refs != before.refs);
        let name = name.filter(|name| !name.same_case(&before.name));
        let spec = update
            .spec
            .as_ref()
            .is_some_and(|spec| (&spec.0, spec.1) != (&before.spec, before.spec_format));
        if take_up {
            self.enter_graph(slot);
        } else if name.as_ref().is_some_and(|name| *name != before.name) {
            self.unbind(slot);
        }
        if refs.is_some() && !take_up {
            self.detach(slot);
        }
        let versioned = take_up || spec || refs.is_some() || name.is_some();
        self.write(slot, |row| {
            if take_up {
                row.marks.deletion = None;
                row.error = None;
                row.attempts = 0;
            }
            if versioned {
                row.spec_version = row.spec_version.next();
            }
            overwrite(row, update);
        });
        if self.slots[slot].row.retry != before.retry {
            tally.policies.push(slot);
        }
        self.set_owner(slot, before.owner, self.slots[slot].row.owner);
        if let Some(name) = name.clone() {
            self.rename(slot, name, take_up);
        }
        if take_up || refs.is_some() {
            self.attach(slot);
        }
        if self.names[self.slots[slot].name].live != Some(slot) {
            tally.to_bind.push(slot);
        }
        if take_up || refs.is_some() || name.is_some() {
            tally.seeds.push(slot);
        }
        if versioned {
            let why = match (take_up, spec || refs.is_some()) {
                (true, _) => Why::Created,
                (false, true) => Why::Edited,
                (false, false) => Why::Renamed,
            };
            tally.asks.push((slot, why, refs.is_some()));
        }
        if take_up && self.slots[slot].row.marks.is_renamed() {
            self.begin_op(slot);
        }
    }

    /// Gives a resource, unbound if its name really changes, another name and the mark that goes with it.
    fn rename(&mut self, slot: Slot, name: Name, take_up: bool) {
        let kind = self.slots[slot].kind;
        let id = self.names.intern(kind, &name);
        self.slots[slot].name = id;
        let keeps_mark = self.can_run(slot) || self.slots[slot].row.state.is_some();
        self.write(slot, |row| {
            let old = std::mem::replace(&mut row.name, name);
            if keeps_mark {
                let known = row.marks.former_names.iter().any(|former| former.same_case(&old));
                let former = row.marks.former_names.iter().cloned();
                row.marks.former_names = former.chain((!known).then_some(old)).collect();
            }
        });
        self.claim_former_names(slot);
        if !take_up {
            self.begin_op(slot);
        }
    }

    /// Looks for cycles, and asks for all that the batch concerns.
    fn ask_for_changed(&mut self, mut tally: Tally, own: Option<Slot>, by: &Author<'_>) {
        let moved: Vec<(NameId, Option<Uid>)> = std::mem::take(&mut tally.names)
            .into_iter()
            .filter(|(name, before)| self.live_uid(*name) != *before)
            .collect();
        let dissolved = std::mem::take(&mut tally.dissolved);
        let changes = self.find_cycles(&tally.seeds, &dissolved);
        self.write_cycle_errors(&changes.regrouped, &changes.left);
        let mut own_edit = None;
        for (slot, why, refs) in tally.asks {
            if own == Some(slot) {
                own_edit = Some((slot, why, refs));
            } else if self.slots.get(slot).is_some_and(|resource| resource.is_live()) {
                self.hold_and_ask(slot, why, by);
            }
        }
        for slot in changes.entered {
            self.hold_and_ask(slot, Why::Edited, by);
        }
        for slot in changes.left {
            if self.slots.get(slot).is_some_and(|resource| resource.is_live()) {
                self.hold_and_ask(slot, Why::Recovered, by);
            }
        }
        for (name, _) in moved {
            let referrers: BTreeSet<Slot> = self.names[name]
                .referrers
                .iter()
                .map(|referrer| referrer.slot)
                .collect();
            let because = self.reason_for_ref(self.names[name].live, by);
            for slot in referrers {
                self.slots[slot].hold = self.revision;
                self.ask(slot, &because);
            }
            self.names.release(name);
        }
        // Last, for what the rest of the batch asks for may stand above it now.
        match own_edit {
            Some((slot, why, refs)) if self.adds_unsettled(slot, refs) => self.hold_and_ask(slot, why, by),
            Some((slot, _, refs)) => self.see_own_edit(slot, refs),
            None => {}
        }
    }

    fn hold_and_ask(&mut self, slot: Slot, why: Why, by: &Author<'_>) {
        self.slots[slot].hold = self.revision;
        let reason = self.reason_by(slot, why, by);
        self.ask(slot, &reason);
    }

    fn reason_by(&self, slot: Slot, why: Why, by: &Author<'_>) -> Arc<Reason> {
        let origin = by.origins.get(&self.slots[slot].row.uid);
        let mut last = by.last.borrow_mut();
        let same = |last: &&mut Arc<Reason>| last.why == why && last.origin.as_ref() == origin;
        if let Some(last) = last.as_mut().filter(same) {
            return last.clone();
        }
        let mut reason = Reason::because(why, by.cause.clone());
        reason.origin = origin.cloned();
        let reason = Arc::new(reason.after(by.before.clone()));
        *last = Some(reason.clone());
        reason
    }

    /// Why what refers to a name is asked for when another resource has it, or none has.
    fn reason_for_ref(&self, live: Option<Slot>, by: &Author<'_>) -> Arc<Reason> {
        let (cause, before) = match live {
            Some(live) => (self.cause_of(live), self.reason_to_come(live)),
            None => (by.cause.clone(), by.before.clone()),
        };
        Arc::new(Reason::because(Why::RefChanged, cause).after(before))
    }

    /// Whether new refs put a pending or running resource above: then even an own edit acts like another's (C5).
    fn adds_unsettled(&self, slot: Slot, refs_changed: bool) -> bool {
        let unsettled = |parent: Slot| parent != slot && self.slots[parent].is_unsettled();
        refs_changed && self.parents(slot).any(unsettled)
    }

    /// An edit by the resource's own invocation counts as seen.
    fn see_own_edit(&mut self, slot: Slot, refs_changed: bool) {
        self.slots[slot].hold = self.revision;
        let now = self.see(slot);
        if let Some(seen) = self.slots[slot].run_mut().and_then(|run| run.seen.as_mut()) {
            seen.spec_version = now.spec_version;
            if refs_changed {
                seen.refs = now.refs;
            }
        }
    }

    /// Gives the members of new cycles their errors, and takes them from what is on none any more (C7).
    pub(crate) fn write_cycle_errors(&mut self, entered: &[Slot], left: &[Slot]) {
        for slot in left.iter().copied() {
            let on_cycle = |resource: &&Resource| {
                resource
                    .row
                    .error
                    .as_ref()
                    .is_some_and(|error| &*error.code == CYCLE_CODE)
            };
            if self.slots.get(slot).as_ref().is_some_and(on_cycle) {
                self.write(slot, |row| row.error = None);
            }
        }
        let mut cycles: Vec<_> = entered
            .iter()
            .filter_map(|slot| self.slots[*slot].cycle)
            .collect();
        cycles.dedup();
        for cycle in cycles {
            for (slot, error) in self.spell(cycle) {
                if self.slots[slot].row.error.as_deref() != Some(&*error) {
                    self.write(slot, |row| row.error = Some(error));
                }
            }
        }
    }
}

fn update_is_idle(row: &Row, update: &Update) -> bool {
    fn same<T: PartialEq>(new: &Option<T>, old: &T) -> bool {
        new.as_ref().is_none_or(|new| new == old)
    }
    update
        .spec
        .as_ref()
        .is_none_or(|(spec, format)| *spec == row.spec && *format == row.spec_format)
        && same(&update.refs, &row.refs)
        && same(&update.paths, &row.paths)
        && same(&update.labels, &row.labels)
        && same(&update.owner, &row.owner)
        && same(&update.hidden, &row.hidden)
        && update
            .retry
            .is_none_or(|retry| retry.as_ref() == row.retry.as_deref())
}

fn overwrite(row: &mut Row, update: Update) {
    if let Some((spec, format)) = update.spec {
        (row.spec, row.spec_format) = (spec, format);
    }
    row.refs = update.refs.unwrap_or_else(|| row.refs.clone());
    row.paths = update.paths.unwrap_or_else(|| row.paths.clone());
    row.labels = update.labels.unwrap_or_else(|| row.labels.clone());
    row.owner = update.owner.unwrap_or(row.owner);
    row.hidden = update.hidden.unwrap_or(row.hidden);
    if let Some(retry) = update.retry {
        row.retry = retry.map(Arc::new);
    }
}
