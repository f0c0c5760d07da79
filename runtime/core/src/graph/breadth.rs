//! Estimates of how much of the graph a walk touches.

use std::collections::VecDeque;

use super::Graph;
use super::resource::Op;
use crate::types::index::Slot;
use crate::{Parents, Required};

impl Graph {
    /// Returns true if a request for a resource reaches more than `most` edges below it. Looks at no more than those.
    pub(crate) fn is_wider_than(&self, slot: Slot, most: usize) -> bool {
        self.reaches_more_than(slot, most, |_| true)
    }

    /// Returns true if the return of its invocation reaches more than `most` edges: those of its children, and of what is
    /// released below it without an invocation. Looks at no more than those.
    pub(crate) fn releases_more_than(&self, slot: Slot, most: usize) -> bool {
        self.reaches_more_than(slot, most, |child| !self.will_start(child))
    }

    fn reaches_more_than(&self, slot: Slot, most: usize, goes_on: impl Fn(Slot) -> bool) -> bool {
        let mut edges_left = most;
        // What is reached twice counts twice: that errs on the side of too wide, and needs no memory of the way.
        let mut reached = VecDeque::from([slot]);
        while let Some(slot) = reached.pop_front() {
            for child in self.children(slot) {
                if edges_left == 0 {
                    return true;
                }
                edges_left -= 1;
                if goes_on(child) {
                    reached.push_back(child);
                }
            }
        }
        false
    }

    /// Returns true if a pending resource is sure to be invoked once its parents have settled.
    fn will_start(&self, slot: Slot) -> bool {
        let resource = &self.slots[slot];
        let options = self.options(slot);
        let is_ordinary = options.is_some_and(|options| options.parents == Parents::Completed)
            && matches!(resource.op(), Op::None)
            && resource.cycle.is_none()
            && !resource.row.paused
            && !resource.pending().is_some_and(|pending| pending.is_cancelled());
        is_ordinary
            && resource
                .links
                .iter()
                .all(|link| link.required == Required::Completed)
    }
}
