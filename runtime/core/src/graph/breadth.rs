//! Estimates of how much of the graph an input touches, for hosts that bound the work they do at once.

use std::collections::VecDeque;

use crate::core::Core;
use crate::resource::Slot;
use crate::{InvocationId, Target};

impl Core {
    /// Returns true if a request for this resource reaches more than `most` edges below it. Looks at no more than those.
    pub fn reaches_more_than(&self, target: &Target, most: usize) -> bool {
        let found = self.resolve(target).ok();
        found.is_some_and(|slot| self.is_wider_than(slot, most))
    }

    /// Returns true if the return of an invocation reaches more than `most` edges below its resource. Looks at no more
    /// than those.
    pub fn return_reaches_more_than(&self, invocation: InvocationId, most: usize) -> bool {
        let running = self.runs.get(&invocation).copied();
        running.is_some_and(|slot| self.is_wider_than(slot, most))
    }

    fn is_wider_than(&self, slot: Slot, most: usize) -> bool {
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
