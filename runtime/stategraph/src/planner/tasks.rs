//! Tasks of a course, and the waits between them.
//!
//! An item comes up after all that it depends on is calm, and goes down after those that depend on it
//! in the current graph have gone down or been turned away. These are the only orders that tasks wait
//! for; related tasks that they leave unordered are kept apart when they start.

use super::Planner;
use super::chain::Chain;
use super::job::{Id, Job, Part, Stage, Task, TaskId, Verdict};
use super::ties::Tie;
use crate::graph::Graph;
use crate::reason::Reason;
use crate::value::Value;

pub(super) const fn task(node: Id, part: Part) -> TaskId {
    TaskId { node, part }
}

impl<V: Value> Planner<'_, V> {
    /// Turns jobs into tasks.
    pub(super) fn lay_course(&mut self) {
        self.move_items();
        self.remake();
        self.untangle();
        self.vanish();
        for id in self.course.on_course.clone() {
            self.check_calm(id);
        }
        for id in self.course.active.clone() {
            for part in [Part::Down, Part::Up, Part::Finish] {
                self.check_ready(task(id, part));
            }
        }
    }

    /// Removes items that vanish with their external targets, without asking a handler.
    fn vanish(&mut self) {
        let gone: Vec<Id> = (0..self.course.nodes.len() as Id)
            .filter(|&id| self.node(id).job == Job::Vanish)
            .collect();
        for id in gone {
            let slot = self.node(id).slot;
            self.current.take(slot);
        }
    }

    /// Creates the tasks of the present jobs, and the waits between them.
    pub(super) fn lay(&mut self) {
        self.start_over();
        self.note_recreations();
        for id in self.course.active.clone() {
            self.lay_own(id);
        }
        self.mark_below();
        for id in self.course.on_course.clone() {
            self.lay_needs(id);
        }
        for id in self.course.active.clone() {
            self.lay_down(id);
            self.lay_protection(id);
        }
        self.course.is_soft = self.is_soft();
        self.course.is_mixed = self.course.is_soft || self.is_mixed();
    }

    fn start_over(&mut self) {
        self.course.active.clear();
        self.course.leftovers.clear();
        self.course.on_course.clear();
        self.course.intended_on_course = 0;
        self.course.order_edges.clear();
        self.course.forget_links();
        self.course.has_alternatives = false;
        self.course.has_jumped = false;
        for id in 0..self.course.nodes.len() as Id {
            let node = self.course.node_mut(id);
            (node.down, node.up, node.finish) = (Task::default(), Task::default(), Task::default());
            (node.calm, node.open, node.on_course) = (true, 0, false);
            node.counts_plainly = false;
            node.above = Chain::default();
            let keeps = matches!(node.job, Job::Hold | Job::Defer)
                || (node.verdict == Verdict::Untouched && node.intent.is_some());
            let (is_active, is_replaced) = (node.job.is_active(), node.job == Job::Replace);
            if is_active {
                self.course.active.push(id);
            }
            if keeps || (is_replaced && self.has_other_replacement(id)) {
                self.course.leftovers.push(id);
            }
        }
    }

    /// Returns true if an item has a finished replacement that differs from the intent.
    fn has_other_replacement(&self, id: Id) -> bool {
        let node = self.node(id);
        let both = self.alias_of(self.ref_of(id)).zip(node.intent.as_ref());
        both.is_some_and(|(alias, intent)| !super::same(&alias.spec, intent))
    }

    /// Creates the tasks of one item, in sequence.
    fn lay_own(&mut self, id: Id) {
        let job = self.node(id).job;
        let parts = [
            (Part::Down, job.has_down()),
            (Part::Up, job.has_up()),
            (Part::Finish, job.has_finish()),
        ];
        for (part, _) in parts.into_iter().filter(|(_, has)| *has) {
            self.course.task_mut(task(id, part)).stage = Stage::Waiting;
        }
        match job {
            // One thing of that name at a time: the new one can't be made before the old one has gone.
            Job::Remake => self.after(task(id, Part::Up), task(id, Part::Down)),
            Job::Replace => {
                if self.alias_of(self.ref_of(id)).is_some() {
                    self.course.node_mut(id).up.stage = Stage::Done;
                }
                self.after(task(id, Part::Down), task(id, Part::Up));
                self.after(task(id, Part::Finish), task(id, Part::Down));
            }
            // One that stays is then created anew, rather than the replacement adopted.
            Job::DeleteBoth if self.node(id).verdict == Verdict::In => {
                self.after(task(id, Part::Down), task(id, Part::Finish));
            }
            _ => {}
        }
    }

    /// Returns the dependents that were switched to an item's replacement.
    pub(super) fn switched(&self, id: Id) -> Vec<Id> {
        let alias = self
            .alias_of(self.ref_of(id))
            .and_then(|alias| alias.record.as_ref());
        let switched = alias.into_iter().flat_map(|record| &record.switched);
        let slots = switched.filter_map(|reference| self.current.slot(reference));
        slots.filter_map(|slot| self.course.known(slot)).collect()
    }

    /// Makes a task wait for another, unless that has ended or does not exist.
    pub(super) fn after(&mut self, later: TaskId, earlier: TaskId) {
        if !self.course.task(earlier).stage.is_over() {
            self.course.link(later, earlier);
        }
    }

    /// Marks the dependents of active items: idle items between two active ones pass the order on. A single active item
    /// needs no order.
    fn mark_below(&mut self) {
        let mut queue = self.course.active.clone();
        let alone = queue.len() == 1 && self.operations.is_empty();
        for &id in &queue {
            self.enter(id);
        }
        while let Some(id) = queue.pop().filter(|_| !alone) {
            // As when a whole graph is created: there is nothing left to mark.
            if self.is_all_intended_on_course() {
                break;
            }
            let Some(origin) = self.node(id).origin else {
                continue;
            };
            self.spend(self.intended_mentions(origin));
            for at in 0..self.intended_mentions(origin) {
                let dependent = self.intent.graph().map(|graph| graph.dependents_of(origin)[at]);
                let Some(dependent) = dependent.and_then(|dependent| self.node_of_intended(dependent)) else {
                    continue;
                };
                // What is left alone passes nothing on.
                let node = self.node(dependent);
                if !node.on_course && node.verdict != Verdict::Untouched {
                    self.enter(dependent);
                    queue.push(dependent);
                }
            }
        }
    }

    fn is_all_intended_on_course(&self) -> bool {
        let ours = |graph: &Graph<V>| graph.len() - graph.tally().externals();
        self.intent.graph().map_or(0, ours) == self.course.intended_on_course
    }

    fn enter(&mut self, id: Id) {
        self.resolve_needs(id);
        let node = self.course.node_mut(id);
        node.on_course = true;
        node.calm = false;
        let is_intended = node.intent.is_some();
        self.course.intended_on_course += usize::from(is_intended);
        self.course.on_course.push(id);
    }

    /// Makes an item wait for the intended targets that have something to do.
    fn lay_needs(&mut self, id: Id) {
        self.spend(self.course.need(id).len());
        if self.lay_plain_needs(id) {
            return;
        }
        let Some(intent) = self.node(id).intent.clone() else {
            return;
        };
        self.lay_turn(id);
        for (at, need, positions) in intent.placed_needs() {
            // Needs are fewer than 2^32.
            let at = at as u32;
            if need.is_order_only() {
                self.lay_order(id, positions);
            } else if need.width() == 1 {
                let target = self.course.need(id).get(positions.start).copied();
                self.lay_need(id, at, target);
            } else {
                self.lay_alternatives(id, at, need, positions);
            }
        }
    }

    /// Counts the targets of an item that waits for all of them alike; returns false for other items.
    fn lay_plain_needs(&mut self, id: Id) -> bool {
        let intended = self.intent.graph().zip(self.node(id).origin);
        let is_plain = intended.is_some_and(|(intended, origin)| intended.is_plain(origin));
        if !is_plain || !self.course.moves.is_empty() {
            return false;
        }
        let needs = self.course.need(id).iter();
        let open = if self.course.on_course.len() == self.course.nodes.len() {
            needs.len()
        } else {
            needs.filter(|&&target| self.node(target).on_course).count()
        };
        let node = self.course.node_mut(id);
        // Needs are fewer than 2^32.
        (node.open, node.counts_plainly) = (open as u32, true);
        true
    }

    /// Makes an item that is switched to a replacement wait for it, even if another target would do.
    fn lay_turn(&mut self, id: Id) {
        let node = self.node(id);
        let Some(Reason::TargetReplaced(target)) = node.reason.as_ref().filter(|_| node.job == Job::Modify)
        else {
            return;
        };
        let target = self.current.slot(target).and_then(|slot| self.course.known(slot));
        if let Some(target) = target {
            self.after(task(id, Part::Up), task(target, Part::Up));
        }
    }

    fn lay_need(&mut self, id: Id, at: u32, target: Option<Id>) {
        let Some(target) = target.filter(|&target| self.is_waited_for(id, target)) else {
            return;
        };
        self.course.watch(target, id, at);
        self.course.node_mut(id).open += 1;
        if self.node(id).job.has_up() && self.waits_for_adoption(id, target) {
            self.after(task(id, Part::Up), task(target, Part::Finish));
        }
    }

    /// Returns true if an item needs the new value of a replaced target, which is available only after the adopt.
    pub(super) fn waits_for_adoption(&self, id: Id, target: Id) -> bool {
        let node = self.node(target);
        node.job == Job::Replace
            && self
                .needs_on(id, target)
                .any(|(need, _)| !self.holds_now(node.slot, need.predicate()))
    }

    /// Returns true if an item waits for a target. An item that must be switched away before the target changes does
    /// not.
    fn is_waited_for(&self, id: Id, target: Id) -> bool {
        self.node(target).on_course && !self.course.moves.contains(&(id, target))
    }

    fn lay_alternatives(
        &mut self,
        id: Id,
        at: u32,
        need: &crate::dependency::Dependency,
        positions: std::ops::Range<usize>,
    ) {
        let alternatives: Vec<Id> = self.alternatives(id, positions).collect();
        let (busy, idle): (Vec<Id>, Vec<Id>) = alternatives
            .into_iter()
            .partition(|&target| self.is_waited_for(id, target));
        self.course.has_alternatives = true;
        // All that would do is idle, so the choice is made at the gate and nothing has to be waited for.
        if busy.is_empty() {
            return;
        }
        // One on hold that is not there is idle as well, and does not serve.
        let suits =
            |target: Id| self.will_hold(target, need.predicate()) && self.serves(target, need.predicate());
        if idle.iter().any(|&target| suits(target)) {
            self.course.settled.insert((id, at));
            self.course.has_jumped = true;
            return;
        }
        let holding = |&&target: &&Id| self.will_hold(target, need.predicate());
        let late = busy
            .iter()
            .filter(holding)
            .all(|&target| self.waits_for_adoption(id, target));
        if let Some(&target) = busy
            .iter()
            .find(holding)
            .filter(|_| late && self.node(id).job.has_up())
        {
            self.after(task(id, Part::Up), task(target, Part::Finish));
        }
        for target in busy {
            self.course.watch(target, id, at);
        }
        self.course.node_mut(id).open += 1;
    }

    /// Adds the waits of an `order_only` dependency: one create or modify after the other, including those of earlier
    /// calls.
    fn lay_order(&mut self, id: Id, positions: std::ops::Range<usize>) {
        let targets: Vec<Id> = self.alternatives(id, positions).collect();
        for target in targets {
            if self.node(target).job.has_up() && self.node(id).job.has_up() {
                let (later, earlier) = (task(id, Part::Up), task(target, Part::Up));
                self.after(later, earlier);
                self.course.order_edges.push((later, earlier));
            } else if self.node(target).job == Job::Wait && self.node(id).job.has_up() {
                self.course.task_mut(task(id, Part::Up)).waits += 1;
            }
        }
    }

    /// Makes the delete of an item wait for its dependents.
    fn lay_down(&mut self, id: Id) {
        if !self.node(id).job.has_down() {
            return;
        }
        let down = task(id, Part::Down);
        self.lay_finish(id);
        for dependent in self.current_dependents(id) {
            let Some(tie) = self.tie(dependent, id).filter(|_| dependent != id) else {
                continue;
            };
            let job = self.node(dependent).job;
            match (job, tie) {
                (Job::Remake | Job::Delete | Job::DeleteBoth, _) => {
                    // What is left of a failed create goes first, but need not.
                    let is_loose = |tie: Tie| tie != Tie::Relies || !self.stands(dependent);
                    let [by_item, by_alias] = self.ties(dependent, id).map(|tie| tie.map(is_loose));
                    if job == Job::DeleteBoth {
                        self.lay_after(down, task(dependent, Part::Down), by_item);
                        self.lay_after(down, task(dependent, Part::Finish), by_alias);
                    } else {
                        self.lay_after(down, task(dependent, Part::Down), Some(is_loose(tie)));
                    }
                    if self.node(id).job == Job::Replace && !self.waits_for_adoption(dependent, id) {
                        self.after(down, task(dependent, Part::Up));
                        self.course.order_edges.push((down, task(dependent, Part::Up)));
                    }
                }
                (Job::Replace, Tie::Alternative) => {
                    self.after(down, task(dependent, Part::Down));
                    self.course.order_edges.push((down, task(dependent, Part::Down)));
                }
                (Job::Replace, Tie::Relies) => self.after(down, task(dependent, Part::Finish)),
                (_, Tie::Relies) if job.has_up() && self.stands(dependent) => {
                    self.after(down, task(dependent, Part::Up));
                }
                // The operation of an earlier call: what it leaves is seen when it has ended.
                (Job::Wait, _) | (Job::Defer, Tie::Relies) => self.course.task_mut(down).waits += 1,
                _ => {}
            }
        }
    }

    /// Makes a task wait for a dependent's task; nothing if `is_loose` is none. If it is true, the wait may be dropped
    /// later.
    fn lay_after(&mut self, later: TaskId, earlier: TaskId, is_loose: Option<bool>) {
        let Some(is_loose) = is_loose else { return };
        self.after(later, earlier);
        if is_loose {
            self.course.order_edges.push((later, earlier));
        }
    }

    /// Makes the delete of an abandoned replacement wait for the items that were switched to it.
    fn lay_finish(&mut self, id: Id) {
        if self.node(id).job != Job::DeleteBoth {
            return;
        }
        for dependent in self.switched(id) {
            let (finish, down) = (task(id, Part::Finish), task(dependent, Part::Down));
            self.after(finish, down);
            self.course.order_edges.push((finish, down));
            // One that is turned away from it has to be first.
            if matches!(self.node(dependent).job, Job::Modify | Job::Relink) && self.stands(dependent) {
                self.after(finish, task(dependent, Part::Up));
            }
        }
    }

    /// Makes a modify wait for the dependents whose conditions it would break.
    fn lay_protection(&mut self, id: Id) {
        let Some(intent) = self.node(id).intent.clone().filter(|_| self.changes_value(id)) else {
            return;
        };
        let up = task(id, Part::Up);
        for dependent in self.current_dependents(id) {
            if !self.breaks(dependent, id, &intent.value) {
                continue;
            }
            let job = self.node(dependent).job;
            // A dependent that goes anyway needs no condition any more, once it has gone.
            if job.has_down() {
                self.after(up, task(dependent, Part::Down));
            } else if self.course.moves.contains(&(dependent, id)) {
                self.after(up, task(dependent, Part::Up));
            } else if matches!(job, Job::Wait | Job::Defer) {
                self.course.task_mut(up).waits += 1;
            }
        }
    }
}
