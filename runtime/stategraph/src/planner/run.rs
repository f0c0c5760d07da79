//! Execution of a course: ready tasks start, and ended tasks release others.

use std::sync::Arc;

use super::gates::Footing;
use super::job::{Id, Job, Part, Stage, TaskId};
use super::tasks::task;
use super::ties::Tie;
use super::{Effect, Planner, Start};
use crate::graph::{Displaced, Known, Slot};
use crate::item::{Item, Operation, Spec, State};
use crate::log::Line;
use crate::operations::{Ending, RunMode, Running};
use crate::reason::Reason;
use crate::reference::Ref;
use crate::value::Value;

/// Result of an attempt to start a task.
enum Attempt {
    /// The task was started; its operation may have ended already.
    Started,
    /// A related operation is running. The task is tried again when an operation has ended.
    Held,
}

impl<V: Value> Planner<'_, V> {
    /// Starts all tasks that may start.
    pub(super) fn run(&mut self) {
        // Kept aside until the loop is over, and not put back at once: each would be taken out again for ever.
        let mut held = Vec::new();
        while !self.is_halted && self.operations.in_foreground() < self.options.limit.max(1) {
            let Some((part, reference, task)) = self.course.ready.pop_first() else {
                break;
            };
            if let Attempt::Held = self.attempt(task) {
                held.push((part, reference, task));
            }
        }
        self.course.ready.extend(held);
    }

    fn attempt(&mut self, task: TaskId) -> Attempt {
        self.spend(1 + self.course.need(task.node).len());
        // Its job was found for what the item no longer is. The next look finds the one for what it is now.
        if self.course.outdated.contains(&task.node) {
            self.over(task, Stage::Stopped);
            return Attempt::Started;
        }
        if self.is_related_to_running(task) {
            return Attempt::Held;
        }
        match task.part {
            Part::Down => self.attempt_down(task.node),
            Part::Up => self.attempt_up(task.node),
            Part::Finish => self.attempt_finish(task.node),
        }
        Attempt::Started
    }

    fn attempt_down(&mut self, id: Id) {
        let down = task(id, Part::Down);
        let node = self.node(id);
        // The old one goes only when its replacement is there. A failed create must leave something that others can use
        // (S4).
        let after_up = node.job != Job::Replace || node.up.stage == Stage::Done;
        if self.current.item(node.slot).is_none() {
            return self.over(down, Stage::Done);
        }
        if !after_up || self.is_doomed(id) || !self.down_gate(id) {
            return self.over(down, Stage::Stopped);
        }
        let reason = match self.node(id).job {
            Job::Replace => Reason::Replaced,
            _ => self.reason(id),
        };
        let reference = self.ref_of(id).clone();
        let comes_back = matches!(self.node(id).job, Job::Remake | Job::Replace | Job::DeleteBoth);
        let intent = self.wanted(id).filter(|_| comes_back);
        self.start(
            down,
            Operation::Delete,
            reference,
            reason,
            intent,
            Footing::default(),
        );
    }

    fn attempt_up(&mut self, id: Id) {
        let up = task(id, Part::Up);
        let Some(footing) = self.up_gate(id) else {
            return self.over(up, Stage::Stopped);
        };
        let node = self.node(id);
        let intent = node.intent.clone();
        let (reference, reason) = (self.ref_of(id).clone(), self.reason(id));
        match node.job {
            Job::Relink => self.relink(id, footing),
            Job::Modify => self.start(up, Operation::Modify, reference, reason, intent, footing),
            Job::Replace => self.start(up, Operation::Create, reference.alias(), reason, intent, footing),
            _ => self.start(up, Operation::Create, reference, reason, intent, footing),
        }
    }

    fn attempt_finish(&mut self, id: Id) {
        let finish = task(id, Part::Finish);
        let alias = self.ref_of(id).alias();
        let Some(is_created) = self.current.get(&alias).map(Item::is_created) else {
            return self.over(finish, Stage::Done);
        };
        let gone = self.current.item(self.node(id).slot).is_none();
        let failed = self.node(id).up.stage == Stage::Failed || !is_created;
        match self.node(id).job {
            Job::Replace if failed => self.drop_alias(finish, alias),
            Job::Replace | Job::Adopt if gone => {
                let intent = self.wanted(id);
                self.start(
                    finish,
                    Operation::Adopt,
                    alias,
                    Reason::Replaced,
                    intent,
                    Footing::default(),
                );
            }
            Job::DropAlias => self.drop_alias(finish, alias),
            Job::DeleteBoth if !self.is_alias_leant_on(id) => self.drop_alias(finish, alias),
            _ => self.over(finish, Stage::Stopped),
        }
    }

    /// Returns true if an existing item was switched to an item's replacement and relies on it.
    fn is_alias_leant_on(&self, id: Id) -> bool {
        let leans = |&one: &Id| {
            !self.course.waived.contains(&(id, one))
                && self.stands(one)
                && self.tie(one, id) == Some(Tie::Relies)
        };
        self.switched(id).iter().any(leans)
    }

    fn drop_alias(&mut self, finish: TaskId, alias: Ref) {
        let intent = self.wanted(finish.node);
        self.start(
            finish,
            Operation::Delete,
            alias,
            Reason::ReplacementFailed,
            intent,
            Footing::default(),
        );
    }

    fn reason(&self, id: Id) -> Reason {
        self.node(id).reason.clone().unwrap_or(Reason::Intended)
    }

    /// Changes the dependencies of an item in the current graph, without an operation.
    fn relink(&mut self, id: Id, footing: Footing) {
        self.changes += 1;
        let node = self.node(id);
        let (slot, intent) = (node.slot, node.intent.clone());
        if let Some(intent) = intent {
            self.current.respec(slot, intent);
        }
        self.current.alter(slot, |item| {
            item.record(|record| (record.relied, record.witnessed) = (footing.relied, footing.witnessed));
        });
        self.remember_switch(id);
        self.over(task(id, Part::Up), Stage::Done);
    }

    fn start(
        &mut self,
        task: TaskId,
        operation: Operation,
        reference: Ref,
        reason: Reason,
        intent: Option<Arc<Spec<V>>>,
        footing: Footing,
    ) {
        let allowed = |only: &std::collections::BTreeSet<_>| only.contains(&(reference.clone(), operation));
        if !self.options.only.as_ref().is_none_or(allowed) {
            return self.over(task, Stage::Stopped);
        }
        let slot = if reference.is_alias() {
            self.current.pin(&reference)
        } else {
            self.node(task.node).slot
        };
        let before = self.current.item(slot);
        let old = before
            .filter(|_| operation != Operation::Create)
            .map(|item| Arc::clone(&item.spec));
        let previous = before
            .and_then(Item::failure)
            .map(|failure| failure.error.clone());
        // What is replaced does not have to be brought back: its replacement stays.
        let is_replaced = self.node(task.node).job == Job::Replace;
        if operation == Operation::Delete && !is_replaced && !self.intent.is_inside(&reference.base()) {
            self.displace(slot);
        }
        // Before the effect: whoever stores the graph then finds the operation in it, and a crash leaves an item to
        // observe and not a guess.
        self.mark_started(operation, slot, &reference, intent.as_ref(), &footing, task.node);
        let mut running = Running {
            reference: reference.clone(),
            slot,
            operation,
            mode: RunMode::Foreground,
            ending: Ending::None,
            intent: intent.clone(),
            relied: footing.relied,
            witnessed: footing.witnessed,
            reason: reason.clone(),
            started: self.now,
            cancelled: None,
            previous,
            line: Line::None,
        };
        running.line = self.open_line(self.operations.next_id(), &running);
        self.changes += 1;
        let id = self.operations.start(running);
        self.course.task_mut(task).stage = Stage::Running;
        self.tasks.insert(id, task);
        self.effects.push(Effect::Start(Start {
            id,
            operation,
            reference,
            reason,
            old,
            new: intent,
        }));
    }

    /// Records an item outside of the part before its delete, so that a later call can restore it, even after a crash.
    fn displace(&mut self, slot: Slot) {
        let Some(item) = self.current.item(slot).filter(|item| item.is_created()) else {
            return;
        };
        if item.reference.is_alias() {
            return;
        }
        // Where others were turned to its replacement already, that is what it is to be.
        let kept = self.intent.graph().and_then(|graph| graph.get(&item.reference));
        let (reference, spec) = (item.reference.clone(), Arc::clone(&kept.unwrap_or(item).spec));
        let group = self.current.path_of(slot).cloned().unwrap_or_default();
        let by = Some(self.intent.extent.clone());
        self.intent.take_over(&reference);
        self.current.displace(&reference, Displaced { group, spec, by });
    }

    /// Writes an operation to the current graph before it starts.
    fn mark_started(
        &mut self,
        operation: Operation,
        slot: Slot,
        reference: &Ref,
        intent: Option<&Arc<Spec<V>>>,
        footing: &Footing,
        node: Id,
    ) {
        let state = match operation {
            Operation::Create => return self.place_new(slot, reference, intent, footing, node),
            Operation::Modify => State::Modifying,
            Operation::Delete => State::Deleting,
            // The replacement is there all the time; only its name changes.
            Operation::Adopt => return,
        };
        let is_recreated = operation == Operation::Delete && intent.is_some() && !reference.is_alias();
        let needs_recreate = is_recreated.then(|| self.answer(node) == Some(true));
        self.current.alter(slot, |item| {
            // What was never made counts for nobody. A failed delete of its remains must not make it count again.
            let unmade = item.state == State::Failed(Operation::Create) || item.is_unmade();
            item.state = state;
            let attempts = item
                .record
                .as_ref()
                .map_or(0, |record| super::settle::attempts_with(record, intent));
            item.record(|record| {
                // Failures are counted for one intent. Another one begins anew, or an edit that mends the fault would
                // wait out the old backoff.
                if attempts == 0 {
                    record.failure = None;
                }
                record.next = intent.cloned();
                record.unmade = unmade;
                record.needs_recreate = needs_recreate;
            });
        });
    }

    fn place_new(
        &mut self,
        slot: Slot,
        reference: &Ref,
        intent: Option<&Arc<Spec<V>>>,
        footing: &Footing,
        id: Id,
    ) {
        let Some(intent) = intent else { return };
        let before = self
            .current
            .item(slot)
            .filter(|old| super::same(&old.spec, intent));
        let failure = before.and_then(|old| old.failure().cloned());
        let mut item = Item::from_spec(reference.clone(), Arc::clone(intent));
        item.state = State::Creating;
        item.record(|record| {
            record.failure = failure;
            record.next = Some(Arc::clone(intent));
            record.relied.clone_from(&footing.relied);
            record.witnessed.clone_from(&footing.witnessed);
        });
        let node = self.course.node(id);
        let intended = self.intent.graph().zip(node.origin);
        let path = intended.and_then(|(intended, origin)| intended.path_of(origin));
        let counts =
            intended.map(|(intended, origin)| (intended.edges(origin).len(), intended.is_plain(origin)));
        let group = path.map_or(0, |path| self.current.intern_group(path));
        let targets: Vec<Slot> = self
            .course
            .need(id)
            .iter()
            .map(|&target| self.course.node(target).slot)
            .collect();
        let known = counts.filter(|&(count, _)| count == targets.len());
        let known = known.map(|(_, is_plain)| Known {
            targets: &targets,
            is_plain,
        });
        self.current.place_at(slot, group, item, known);
    }

    /// Ends a task, and releases the tasks that waited for it.
    pub(super) fn over(&mut self, done: TaskId, stage: Stage) {
        let task_of = self.course.task_mut(done);
        if task_of.stage.is_over() {
            return;
        }
        task_of.stage = stage;
        // It keeps the edges that it was to drop, and what others are about to get may close a cycle with them (S10).
        if matches!(stage, Stage::Failed | Stage::Stopped) {
            self.course.leftovers.push(done.node);
            self.doom(done.node);
        }
        let after: Vec<TaskId> = self.course.after(done).collect();
        for next in after {
            self.course.task_mut(next).waits -= 1;
            self.check_ready(next);
        }
        self.check_calm(done.node);
    }

    pub(super) fn check_ready(&mut self, task: TaskId) {
        let node = self.node(task.node);
        let found = node.task(task.part);
        let open = if task.part == Part::Up { node.open } else { 0 };
        if found.stage == Stage::Waiting && found.waits == 0 && open == 0 {
            let reference = self.ref_of(task.node).clone();
            self.course.ready.insert((task.part, reference, task));
        }
    }

    /// Marks an item as calm if it is, releases its dependents, and continues upwards.
    pub(super) fn check_calm(&mut self, id: Id) {
        let mut queue = vec![id];
        while let Some(id) = queue.pop() {
            let node = self.course.node_mut(id);
            // Each is calm once, so that a course costs its edges, whatever the order of the ends.
            if node.calm || !node.on_course || node.open > 0 || !node.is_over() {
                continue;
            }
            node.calm = true;
            self.calm_plain(id, &mut queue);
            let watchers: Vec<(Id, u32)> = self.course.watchers(id).collect();
            for (above, at) in watchers {
                if self.settle_need(above, at, id) {
                    self.check_ready(task(above, Part::Up));
                    queue.push(above);
                }
            }
        }
    }

    /// Counts a calm target for the dependents that only count.
    fn calm_plain(&mut self, id: Id, queue: &mut Vec<Id>) {
        let Some(origin) = self.node(id).origin else {
            return;
        };
        self.spend(self.intended_mentions(origin));
        for at in 0..self.intended_mentions(origin) {
            let Some(above) = self.plain_above(origin, at) else {
                continue;
            };
            let node = self.course.node_mut(above);
            node.open -= 1;
            if node.open == 0 {
                self.check_ready(task(above, Part::Up));
                queue.push(above);
            }
        }
    }

    /// Returns how often the intended graph refers to an item.
    pub(super) fn intended_mentions(&self, origin: Slot) -> usize {
        self.intent
            .graph()
            .map_or(0, |graph| graph.dependents_of(origin).len())
    }

    /// Returns the item's dependent at this position, if the dependent only counts its targets; none otherwise.
    pub(super) fn plain_above(&self, origin: Slot, at: usize) -> Option<Id> {
        let dependent = *self.intent.graph()?.dependents_of(origin).get(at)?;
        let above = self.course.known_intended(dependent)?;
        self.node(above).counts_plainly.then_some(above)
    }

    /// Counts a calm target; returns true if the item waits for no dependency any more.
    fn settle_need(&mut self, id: Id, at: u32, target: Id) -> bool {
        let node = self.node(id);
        let Some(need) = node
            .intent
            .as_ref()
            .and_then(|intent| intent.needs.get(at as usize))
        else {
            return false;
        };
        // Several targets count as one need: the first that serves settles it, and the others must not count again.
        if need.width() > 1 {
            if self.course.settled.contains(&(id, at)) || !self.is_settled_by(id, at as usize, target) {
                return false;
            }
            self.course.settled.insert((id, at));
        }
        let node = self.course.node_mut(id);
        node.open -= 1;
        node.open == 0
    }

    /// Returns true if a dependency on several targets need not wait any more: this target serves, or none is left to
    /// wait for.
    fn is_settled_by(&mut self, id: Id, at: usize, target: Id) -> bool {
        let Some(intent) = self.node(id).intent.clone() else {
            return true;
        };
        let need = &intent.needs[at];
        let busy = self
            .alternatives(id, intent.positions(at))
            .any(|other| !self.node(other).calm);
        let serves = self.serves(target, need.predicate());
        self.course.has_jumped |= busy && serves;
        serves || !busy
    }
}
