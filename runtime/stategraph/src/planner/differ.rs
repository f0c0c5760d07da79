//! Differences between the current and the intended graph: the start of a call for the whole graph.

use super::job::{Id, Verdict};
use super::{Planner, same};
use crate::dependency::Dependency;
use crate::graph::{Graph, Slot};
use crate::item::{Item, State};
use crate::reference::Ref;
use crate::value::Value;

impl<V: Value> Planner<'_, V> {
    /// Compares the whole graphs; returns the slots of items that may have something to do.
    pub(super) fn all_that_differs(&mut self) -> Vec<Slot> {
        self.spend(self.current.len() + self.intent.graph().map_or(0, Graph::len));
        let mut seeds: Vec<Slot> = Vec::new();
        let mut absent: Vec<Slot> = Vec::new();
        let mut is_intended = vec![false; self.current.slots().len()];
        if let Some(intended) = self.intent.graph() {
            let mut finder = Finder::default();
            for origin in intended.slots() {
                let Some(item) = intended.item(origin) else {
                    continue;
                };
                match finder.find(self.current, &item.reference) {
                    Some(slot) => {
                        is_intended[slot as usize] = true;
                        let fits = || self.is_settled(slot, item) && self.is_in_place(slot, origin);
                        if !item.is_external() && !fits() {
                            seeds.push(slot);
                        }
                    }
                    None => absent.push(origin),
                }
            }
            let order = intended.order();
            if !order.cycles().is_empty() {
                absent.extend(intended.slots().filter(|&origin| order.is_stuck(origin)));
            }
        }
        for slot in self.current.slots() {
            if self.is_unwanted(slot, is_intended[slot as usize]) {
                seeds.push(slot);
            }
            // Those that are plain were not asked whether their targets are there.
            if self.current.item(slot).is_none_or(|item| !item.is_created()) {
                seeds.extend(self.current.dependents_of(slot));
            }
        }
        if let Some(intended) = self.intent.graph() {
            self.current.reserve(absent.len());
            let pin = |&origin: &Slot| self.current.pin(intended.reference(origin));
            seeds.extend(absent.iter().map(pin));
        }
        seeds
    }

    /// Returns true if an item is as intended, as far as this look can tell. For an item that is not plain, the direct
    /// targets are checked as well.
    fn is_settled(&self, slot: Slot, wanted: &Item<V>) -> bool {
        let Some(item) = self.current.item(slot) else {
            return false;
        };
        if item.state != State::Created || !same(&item.spec, &wanted.spec) {
            return false;
        }
        if self.current.is_plain(slot) {
            return true;
        }
        let mut edges = self.current.edges(slot);
        item.spec.needs.iter().enumerate().all(|(at, need)| {
            let targets = edges.by_ref().take(need.width());
            let relied = if need.width() == 1 {
                targets.last()
            } else {
                let chosen = item.relied_on(at);
                // All are taken, so that the next dependency finds its own.
                targets
                    .filter(|&target| Some(self.current.reference(target)) == chosen)
                    .last()
            };
            need.is_order_only() || self.is_need_settled(item, need, relied)
        })
    }

    /// Returns true if an item is in its intended group.
    fn is_in_place(&self, slot: Slot, origin: Slot) -> bool {
        let path = self.intent.graph().and_then(|intended| intended.path_of(origin));
        path.is_none() || self.current.path_of(slot) == path
    }

    /// Moves the judged items to their intended groups, which needs no operation.
    pub(super) fn move_items(&mut self) {
        for id in 0..self.course.nodes.len() as Id {
            let node = self.node(id);
            let Some(origin) = node.origin.filter(|_| node.verdict == Verdict::In) else {
                continue;
            };
            // One that is yet to be created is put there when it is.
            if self.current.item(node.slot).is_some() && !self.is_in_place(node.slot, origin) {
                let path = self
                    .intent
                    .graph()
                    .and_then(|intended| intended.path_of(origin))
                    .cloned();
                let reference = self.ref_of(id).clone();
                let _ = self.current.move_to(&reference, path.unwrap_or_default());
            }
        }
    }

    fn is_need_settled(&self, item: &Item<V>, need: &Dependency, relied: Option<Slot>) -> bool {
        relied.is_some_and(|target| {
            self.holds_now(target, need.predicate())
                && (!need.recreates_when_modified() || self.is_witnessed(item, target))
        })
    }

    fn is_witnessed(&self, item: &Item<V>, target: Slot) -> bool {
        let now = self
            .current
            .item(target)
            .map(|target| target.spec.value.fingerprint());
        now.is_some() && item.witnessed(self.current.reference(target)) == now
    }

    /// Returns true if an item of the current graph is not intended, or must be examined anyway.
    fn is_unwanted(&self, slot: Slot, is_intended: bool) -> bool {
        let item = self.current.item(slot).filter(|item| !item.is_external());
        item.is_some_and(|item| item.needs_attention() || !is_intended)
    }
}

/// Lookup of refs that mostly come in the same order in both graphs: the slot after the last one found is tried first.
#[derive(Default)]
pub(super) struct Finder {
    next: Slot,
}

impl Finder {
    pub(super) fn find<V>(&mut self, graph: &Graph<V>, reference: &Ref) -> Option<Slot> {
        let slot = if graph.is_at(reference, self.next) {
            self.next
        } else {
            graph.slot(reference)?
        };
        self.next = slot + 1;
        Some(slot)
    }
}
