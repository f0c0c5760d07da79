//! Items that keep their state because a target that they should depend on failed and is on hold.
//!
//! The gate of their operation would stop them as well, but only after the items above them had gone down:
//! those would be recreated against a value that does not come, in every call once more.

use super::Planner;
use super::job::{Id, Job, Verdict};
use crate::value::Value;

impl<V: Value> Planner<'_, V> {
    /// Puts items on hold whose new target is on hold and does not serve, and so on upwards. Their dependents are then
    /// planned with the values that stay (S5, S6).
    pub(super) fn hold_back(&mut self) {
        let nodes = 0..self.course.nodes.len() as Id;
        let mut queue: Vec<Id> = nodes.filter(|&id| self.is_on_hold(id)).collect();
        while let Some(id) = queue.pop() {
            for dependent in self.intended_dependents(id) {
                if self.is_held_back(dependent) {
                    self.course.node_mut(dependent).job = Job::Hold;
                    self.course.is_held_back = true;
                    queue.push(dependent);
                }
            }
        }
    }

    /// Returns true if this call does nothing to a failed item. Outside of a part, the delete of a recreation is left
    /// to calls about the item, unless the part forces it.
    fn is_on_hold(&self, id: Id) -> bool {
        let node = self.node(id);
        let awaits = || {
            self.current
                .item(node.slot)
                .is_some_and(|item| self.awaits_recreation(item))
        };
        node.job == Job::Hold || (node.job == Job::Rest && awaits() && self.recreating_target(id).is_none())
    }

    fn is_held_back(&self, id: Id) -> bool {
        let node = self.node(id);
        let is_to_change = node.verdict == Verdict::In && matches!(node.job, Job::Modify | Job::Relink);
        let Some(intent) = node.intent.as_ref().filter(|_| is_to_change) else {
            return false;
        };
        intent.placed_needs().any(|(_, need, positions)| {
            let fails = |target: Id| self.is_on_hold(target) && !self.serves(target, need.predicate());
            !need.is_order_only()
                && !self.was_broken_before(id, need, positions.clone())
                && self.alternatives(id, positions).all(fails)
        })
    }
}
