//! The end of a course, when no task is ready or running: another look, or the end of the call.
//!
//! Gates are exact and tasks wait for no more than they must, but what a task waits for is decided before
//! anything runs. So a course may come to rest with something left that nothing outside prevents. After
//! some operations have changed the world, it is simply surveyed anew. If that did not help either, the
//! items that are in each other's way are deleted first, in their old order, and created last, in the new
//! one: such an order always exists.

use super::Planner;
use super::job::{Id, Job, Part, Stage, TaskId, Verdict};
use super::slots::IdSet;
use crate::value::Value;

/// Maximum number of looks in a call. Guards against malicious graphs: later looks are only worthwhile after a success.
const MOST_LOOKS: u32 = 1_000;

/// Maximum number of times that a call deletes the same item out of the way: other operations may restore the block.
const MOST_INSISTENCE: u32 = 3;

impl<V: Value> Planner<'_, V> {
    /// Returns true if something is left to do that nothing outside the call holds back.
    pub(super) fn can_go_on(&mut self) -> bool {
        if self.looks >= MOST_LOOKS {
            return false;
        }
        let mut blocked = self.blocked();
        // What was done meanwhile may have helped even something that a failure near it seems to explain; and
        // what failed is on hold from now on, so that nothing waits any more for what it would have changed.
        let is_open = !blocked.is_empty() || self.course.is_held_back;
        if !is_open || self.has_failed() || self.has_changed() {
            return is_open;
        }
        // Nothing has changed since the last look, so another one would find the same. Only what no failure explains is
        // worth more force.
        let excused = self.excused(&blocked);
        blocked.retain(|id| !excused.contains(id));
        if blocked.is_empty() {
            return false;
        }
        let before = self.insisted.len();
        for &id in &blocked {
            if matches!(self.node(id).job, Job::Relink | Job::Modify | Job::Replace) {
                self.insist_on(id);
            }
        }
        if self.insisted.len() == before {
            self.insist_on_leaning(&blocked);
        }
        self.insisted.len() > before
    }

    /// Forces an item to be deleted first and created last, unless that has failed before or can't help.
    fn insist_on(&mut self, id: Id) {
        // Deleting it would take down something that is to stay: that is worse than leaving it as it is.
        if self.is_leant_on(id, true) {
            return;
        }
        let reference = self.ref_of(id).clone();
        let times = self.insistence.entry(reference.clone()).or_default();
        if *times < MOST_INSISTENCE {
            *times += 1;
            self.insisted.insert(reference);
        }
    }

    /// Drops waits that exist only for this call's order, behind tasks that wait for a background operation: the next
    /// call would not wait. Returns true if a task became ready.
    pub(super) fn release_order(&mut self) -> bool {
        // Without one in the background, nothing is kept behind it, and the order is one of this call.
        if self.operations.is_empty() {
            return false;
        }
        let is_open =
            |task: &TaskId| task.part == Part::Up && self.course.task(*task).stage == Stage::Waiting;
        let edges = self.course.order_edges.iter();
        let edges = edges.filter(|(later, earlier)| is_open(later) && is_open(earlier));
        let edges: Vec<(TaskId, TaskId)> = edges.copied().collect();
        let before = self.course.ready.len();
        for (later, earlier) in edges {
            self.course.unlink(later, earlier);
            self.check_ready(later);
        }
        self.course.ready.len() > before
    }

    /// Forces the recreation of items that block a delete and can't switch to another target first, because that target
    /// depends on the deleted one.
    fn insist_on_leaning(&mut self, blocked: &[Id]) {
        for &id in blocked {
            if self.node(id).down.stage != Stage::Stopped {
                continue;
            }
            for dependent in self.current_dependents(id) {
                if self.stays_throughout(dependent) && self.blocks_delete(dependent, id) {
                    self.insist_on(dependent);
                    self.dirty.insert(self.node(dependent).slot);
                }
            }
        }
    }

    /// Returns the nodes with tasks that did not run.
    fn blocked(&self) -> Vec<Id> {
        let blocked = |&id: &Id| {
            let node = self.node(id);
            let tasks = [&node.down, &node.up, &node.finish];
            tasks
                .iter()
                .any(|task| matches!(task.stage, Stage::Waiting | Stage::Stopped))
        };
        self.course.active.iter().copied().filter(blocked).collect()
    }

    /// Returns the blocked nodes near a failure, a running operation, or an item left alone, which explains the block.
    /// Ready tasks that did not start are related to a running operation (S8).
    fn excused(&mut self, blocked: &[Id]) -> IdSet {
        let blocked: IdSet = blocked.iter().copied().collect();
        let held: IdSet = self.course.ready.iter().map(|(_, _, task)| task.node).collect();
        let mut queue: Vec<Id> = (0..self.course.nodes.len() as Id)
            .filter(|&id| held.contains(&id) || self.is_excuse(id))
            .collect();
        let mut excused: IdSet = queue.iter().copied().filter(|id| blocked.contains(id)).collect();
        while let Some(id) = queue.pop() {
            let closing = self.course.closing.iter().filter(|(member, _)| *member == id);
            let closing: Vec<Id> = closing.map(|(_, id)| *id).collect();
            for near in self.around(id).into_iter().chain(closing) {
                if blocked.contains(&near) && excused.insert(near) {
                    queue.push(near);
                }
            }
        }
        excused
    }

    fn is_excuse(&self, id: Id) -> bool {
        let node = self.node(id);
        let tasks = [&node.down, &node.up, &node.finish];
        // Outside of a part everything keeps what it has, and may do so for good.
        let mut on_the_way = self.course.closing.iter().filter(|(_, closing)| *closing == id);
        matches!(node.job, Job::Hold | Job::Wait | Job::Defer)
            || on_the_way.any(|&(member, _)| !self.intent.is_inside(self.ref_of(member)))
            || (node.verdict == Verdict::Untouched && node.intent.is_some())
            || tasks
                .iter()
                .any(|task| matches!(task.stage, Stage::Failed | Stage::Running))
    }

    /// Returns the targets and the dependents of an item, in either graph.
    fn around(&mut self, id: Id) -> Vec<Id> {
        let mut around = self.current_dependents(id);
        around.extend(self.intended_dependents(id));
        around.extend(self.course.need(id));
        let alias = self.alias_of(self.ref_of(id));
        let alias = alias.and_then(|alias| self.current.slot(&alias.reference));
        let both = std::iter::once(self.node(id).slot).chain(alias);
        let slots: Vec<_> = both.flat_map(|slot| self.current.edges(slot)).collect();
        around.extend(slots.into_iter().map(|slot| self.node_at(slot)));
        around
    }
}
