//! Edges, and the counters that keep scheduling linear.
//!
//! An edge runs from the live resource of a name to each referrer whose link is an edge. The members of a cycle
//! act as one *node*, whose counts stand with its representative. For every node, over its counted edges to and
//! from other nodes:
//!
//! - `unsettled_parents` is the number of edges from unsettled resources: it may start at 0 (C3, first half);
//! - `busy_children` is, for unsettled ends above, the number of edges to *busy* nodes, those with an
//!   invocation that runs or with busy children: it may start at 0 (C3, second half).
//!
//! Both are updated once per edge. Busy children of settled resources are not kept; they are summed up when the
//! resource becomes unsettled.

use super::Graph;
use super::names::Referrer;
use super::resource::{BoundRef, Life};
use crate::types::index::{NameId, Slot, index_u32};
use rustc_hash::FxBuildHasher;

impl Graph {
    /// Returns the representative of a resource's node: the member of its strongly connected component that holds the
    /// counts.
    pub(crate) fn scc_root(&self, slot: Slot) -> Slot {
        match self.slots[slot].cycle {
            None => slot,
            Some(cycle) => self.cycles.first(cycle),
        }
    }

    /// Returns the `index`-th member of the node that `scc_root` represents.
    pub(crate) fn member(&self, scc_root: Slot, index: usize) -> Option<Slot> {
        match self.slots[scc_root].cycle {
            None => (index == 0).then_some(scc_root),
            Some(cycle) => self.cycles.members(cycle).get(index).copied(),
        }
    }

    pub(crate) fn is_busy(&self, scc_root: Slot) -> bool {
        let node = &self.slots[scc_root];
        node.running > 0 || node.busy_children > 0
    }

    pub(super) fn referrer(&self, name: NameId, index: usize) -> Option<(Referrer, BoundRef)> {
        let referrer = *self.names[name].referrers.get(index)?;
        Some((referrer, self.slots[referrer.slot].links[referrer.index as usize]))
    }

    /// Lists the live children of a live resource, in no particular order.
    pub(crate) fn children(&self, slot: Slot) -> impl Iterator<Item = Slot> + '_ {
        let resource = &self.slots[slot];
        // Refs are to names. That of a deleted resource may be another's by now, and its referrers with it.
        let referrers: &[Referrer] = if resource.is_live() {
            &self.names[resource.name].referrers
        } else {
            &[]
        };
        referrers
            .iter()
            .filter(|referrer| self.slots[referrer.slot].links[referrer.index as usize].edge)
            .map(|referrer| referrer.slot)
    }

    /// Lists the live parents of a live resource, in the order of its refs.
    pub(crate) fn parents(&self, slot: Slot) -> impl Iterator<Item = Slot> + '_ {
        self.slots[slot]
            .links
            .iter()
            .filter(|link| link.edge)
            .filter_map(|link| self.names[link.name].live)
    }

    /// Binds the refs of a live resource to their names and counts the edges.
    pub(crate) fn attach(&mut self, slot: Slot) {
        if self.slots[slot].row.refs.is_empty() {
            return;
        }
        let refs = self.slots[slot].row.refs.clone();
        let mut links: Vec<BoundRef> = Vec::with_capacity(refs.len());
        let mut edges = std::collections::HashSet::<NameId, FxBuildHasher>::default();
        for (index, reference) in refs.iter().enumerate() {
            let kind = self.kinds.intern(&reference.kind);
            let name = self.names.intern(kind, &reference.name);
            let referrers = &mut self.names[name].referrers;
            let position = index_u32(referrers.len());
            referrers.push(Referrer {
                slot,
                index: index_u32(index),
            });
            // Two refs to one name are one edge: counted twice, it would have to be taken off twice when the parent
            // settles.
            let edge = reference.required != crate::Required::Exists && edges.insert(name);
            links.push(BoundRef {
                name,
                position,
                required: reference.required,
                edge,
                counted: false,
            });
        }
        self.slots[slot].links = links.into_boxed_slice();
        for index in 0..refs.len() {
            self.count_edge(slot, index);
        }
    }

    /// Takes a resource out of the referrers of all names, and its edges out of the counts.
    pub(crate) fn detach(&mut self, slot: Slot) {
        for index in 0..self.slots[slot].links.len() {
            self.uncount_edge(slot, index);
        }
        for index in 0..self.slots[slot].links.len() {
            let link = self.slots[slot].links[index];
            let referrers = &mut self.names[link.name].referrers;
            referrers.swap_remove(link.position as usize);
            // The last one took its place; it may be a later link of this same resource.
            if let Some(moved) = referrers.get(link.position as usize).copied() {
                self.slots[moved.slot].links[moved.index as usize].position = link.position;
            }
            self.names.release(link.name);
        }
        self.slots[slot].links = Box::default();
    }

    /// Makes `slot` the live resource of its name, and counts the edges to its referrers.
    pub(crate) fn bind(&mut self, slot: Slot) {
        let name = self.slots[slot].name;
        debug_assert!(self.names[name].live.is_none());
        self.names[name].live = Some(slot);
        for index in 0..self.names[name].referrers.len() {
            let referrer = self.names[name].referrers[index];
            self.count_edge(referrer.slot, referrer.index as usize);
        }
    }

    /// Unbinds `slot` from its name, and uncounts the edges to its referrers.
    pub(crate) fn unbind(&mut self, slot: Slot) {
        let name = self.slots[slot].name;
        debug_assert_eq!(self.names[name].live, Some(slot));
        for index in 0..self.names[name].referrers.len() {
            let referrer = self.names[name].referrers[index];
            self.uncount_edge(referrer.slot, referrer.index as usize);
        }
        self.names[name].live = None;
    }

    /// Counts the edge of one link, if the link makes an edge that is not counted yet.
    pub(super) fn count_edge(&mut self, child: Slot, index: usize) {
        self.visits.edges += 1;
        let link = self.slots[child].links[index];
        let Some(parent) = self.names[link.name].live else {
            return;
        };
        if link.counted || !link.edge || self.slots[child].life != Life::Live {
            return;
        }
        self.slots[child].links[index].counted = true;
        let (above, below) = (self.scc_root(parent), self.scc_root(child));
        // An edge inside a cycle would have the node wait for itself; one from a settled parent holds nothing back.
        if above == below || !self.slots[parent].is_unsettled() {
            return;
        }
        self.slots[below].unsettled_parents += 1;
        if self.is_busy(below) {
            self.add_busy_child(above);
        }
    }

    /// Reverses [`count_edge`](Self::count_edge).
    pub(super) fn uncount_edge(&mut self, child: Slot, index: usize) {
        self.visits.edges += 1;
        let link = self.slots[child].links[index];
        if !link.counted {
            return;
        }
        self.slots[child].links[index].counted = false;
        let Some(parent) = self.names[link.name].live else {
            return;
        };
        let (above, below) = (self.scc_root(parent), self.scc_root(child));
        if above == below || !self.slots[parent].is_unsettled() {
            return;
        }
        self.slots[below].unsettled_parents -= 1;
        if self.slots[below].unsettled_parents == 0 {
            self.enqueue(below);
        }
        if self.is_busy(below) {
            self.remove_busy_child(above);
        }
    }

    fn add_busy_child(&mut self, scc_root: Slot) {
        let was_busy = self.is_busy(scc_root);
        self.slots[scc_root].busy_children += 1;
        if !was_busy {
            self.became_busy(scc_root);
        }
    }

    fn remove_busy_child(&mut self, scc_root: Slot) {
        self.slots[scc_root].busy_children -= 1;
        if self.slots[scc_root].busy_children == 0 {
            self.enqueue(scc_root);
        }
        if !self.is_busy(scc_root) {
            self.became_free(scc_root);
        }
    }

    /// Marks the unsettled ancestors of a node as having a running descendant.
    pub(super) fn became_busy(&mut self, scc_root: Slot) {
        let mut stack = vec![scc_root];
        while let Some(scc_root) = stack.pop() {
            self.each_unsettled_parent(scc_root, |graph, above| {
                // What is busy already has told its own parents, so that a walk ends where another has been.
                let was_busy = graph.is_busy(above);
                graph.slots[above].busy_children += 1;
                if !was_busy {
                    stack.push(above);
                }
            });
        }
    }

    /// Unmarks the unsettled ancestors of a node after its last running descendant has ended.
    pub(super) fn became_free(&mut self, scc_root: Slot) {
        let mut stack = vec![scc_root];
        while let Some(scc_root) = stack.pop() {
            self.each_unsettled_parent(scc_root, |graph, above| {
                graph.slots[above].busy_children -= 1;
                if graph.slots[above].busy_children == 0 {
                    graph.enqueue(above);
                }
                if !graph.is_busy(above) {
                    stack.push(above);
                }
            });
        }
    }

    /// Calls a function for each counted edge into the node from an unsettled resource of another node. Resources that
    /// have yet to sum up their busy children are skipped.
    fn each_unsettled_parent(&mut self, scc_root: Slot, mut tell: impl FnMut(&mut Graph, Slot)) {
        // The usual case: an invocation starts below settled parents only, so its start walks nothing.
        if self.slots[scc_root].unsettled_parents == 0 {
            return;
        }
        let mut member_index = 0;
        while let Some(member) = self.member(scc_root, member_index) {
            member_index += 1;
            for index in 0..self.slots[member].links.len() {
                let link = self.slots[member].links[index];
                self.visits.edges += 1;
                let Some(parent) = self.names[link.name].live.filter(|_| link.counted) else {
                    continue;
                };
                let above = self.scc_root(parent);
                let resource = &self.slots[parent];
                if above != scc_root && resource.is_unsettled() && !resource.summing {
                    tell(self, above);
                }
            }
        }
    }

    /// Counts an invocation that holds back the ancestors of the resource's node.
    pub(crate) fn count_running(&mut self, slot: Slot) {
        let scc_root = self.scc_root(slot);
        let was_busy = self.is_busy(scc_root);
        self.slots[scc_root].running += 1;
        if !was_busy {
            self.became_busy(scc_root);
        }
    }

    /// Uncounts an invocation that held back the ancestors of the resource's node.
    pub(crate) fn uncount_running(&mut self, slot: Slot) {
        let scc_root = self.scc_root(slot);
        self.slots[scc_root].running -= 1;
        if !self.is_busy(scc_root) {
            self.became_free(scc_root);
        }
    }
}
