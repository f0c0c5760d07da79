//! Estimates of how much of the graph a walk touches.

use std::collections::VecDeque;

use super::Graph;
use crate::types::index::Slot;

impl Graph {
    /// Returns true if more than `most` edges are reached below a resource. Looks at no more than those.
    pub(crate) fn is_wider_than(&self, slot: Slot, most: usize) -> bool {
        let mut edges_left = most;
        // What is reached twice counts twice: that errs on the side of too wide, and needs no memory of the way.
        let mut reached = VecDeque::from([slot]);
        while let Some(slot) = reached.pop_front() {
            for child in self.children(slot) {
                if edges_left == 0 {
                    return true;
                }
                edges_left -= 1;
                reached.push_back(child);
            }
        }
        false
    }
}
