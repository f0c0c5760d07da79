//! Changes of a graph, by its owner and by the planner.

use std::sync::Arc;

use super::groups::GroupId;
use super::{Edge, Graph, GraphError, GroupPath, Slot, SlotEntry};
use crate::item::{Item, Spec};
use crate::reference::Ref;

/// Facts about an item's dependencies that a caller already has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'a> {
    /// Slots of all targets, in the order of the dependencies.
    pub(crate) targets: &'a [Slot],
    /// True if the item is plain, as defined by [`Spec::is_plain`].
    pub(crate) is_plain: bool,
}

impl<V> Graph<V> {
    /// Adds an item outside of all groups.
    ///
    /// # Errors
    /// If its ref is taken or it is external and has dependencies; nothing has changed then.
    pub fn insert(&mut self, item: Item<V>) -> Result<(), GraphError> {
        self.insert_at(GroupPath::root(), item)
    }

    /// Adds an item to a group, which is created if it does not exist.
    ///
    /// # Errors
    /// Returns the errors of [`Graph::insert`].
    pub fn insert_at(&mut self, path: impl Into<GroupPath>, item: Item<V>) -> Result<(), GraphError> {
        if self.get(&item.reference).is_some() {
            return Err(GraphError::Duplicate(item.reference));
        }
        self.put_at(path, item)
    }

    /// Adds an item, or replaces the one with the same ref, which stays in its group.
    ///
    /// # Errors
    /// If it is external and has dependencies; nothing has changed then.
    pub fn put(&mut self, item: Item<V>) -> Result<(), GraphError> {
        let path = self.group_of(&item.reference).cloned().unwrap_or_default();
        self.put_at(path, item)
    }

    fn put_at(&mut self, path: impl Into<GroupPath>, item: Item<V>) -> Result<(), GraphError> {
        if item.is_external() && !item.dependencies().is_empty() {
            return Err(GraphError::ExternalWithDependencies(item.reference));
        }
        let group = self.intern_group(&path.into());
        self.place(group, item);
        Ok(())
    }

    /// Removes an item and returns it.
    pub fn remove(&mut self, reference: &Ref) -> Option<Item<V>> {
        let slot = self.slot(reference)?;
        self.take(slot)
    }

    /// Moves an item to another group. Groups don't affect dependencies.
    ///
    /// # Errors
    /// If there is no such item.
    pub fn move_to(&mut self, reference: &Ref, path: impl Into<GroupPath>) -> Result<(), GraphError> {
        let slot = self.slot(reference).filter(|&slot| self.item(slot).is_some());
        let slot = slot.ok_or_else(|| GraphError::Missing(reference.clone()))?;
        let group = self.intern_group(&path.into());
        let old = std::mem::replace(&mut self.places[slot as usize].group, group);
        self.groups.enter(group);
        self.groups.leave(old);
        self.changes += 1;
        Ok(())
    }

    /// Marks an item as unknown, so that the next call observes whether it still exists.
    ///
    /// # Errors
    /// If there is no such item.
    pub fn mark_unknown(&mut self, reference: &Ref) -> Result<(), GraphError> {
        let slot = self
            .slot(reference)
            .ok_or_else(|| GraphError::Missing(reference.clone()))?;
        let state = self.item(slot).map(|item| item.state);
        let state = state.ok_or_else(|| GraphError::Missing(reference.clone()))?;
        self.alter(slot, |item| {
            item.state = crate::item::State::Unknown(state.operation())
        });
        Ok(())
    }

    /// Puts an item into the slot of its ref, and links its targets.
    pub(crate) fn place(&mut self, group: GroupId, item: Item<V>) -> Slot {
        let slot = self.intern(&item.reference);
        self.place_at(slot, group, item, None);
        slot
    }

    /// Puts an item into a given slot, and links its targets. `known` saves a look at its dependencies.
    pub(crate) fn place_at(&mut self, slot: Slot, group: GroupId, item: Item<V>, known: Option<Known<'_>>) {
        let keeps_order = self.keeps_order(slot, &item.spec);
        self.link(slot, &item.spec, known.map(|known| known.targets));
        let is_plain = known.map_or_else(|| item.spec.is_plain(), |known| known.is_plain);
        self.changes += 1;
        self.tally.add(&item, is_plain);
        let place = &mut self.places[slot as usize];
        let old_group = std::mem::replace(&mut place.group, group);
        let was_plain = std::mem::replace(&mut place.is_plain, is_plain);
        self.groups.enter(group);
        if let Some(old) = place.item.replace(item) {
            self.tally.subtract(&old, was_plain);
            self.groups.leave(old_group);
        }
        self.note_attention(slot);
        if !keeps_order {
            self.order.take();
        }
    }

    /// Changes an item without changing its dependencies.
    pub(crate) fn alter(&mut self, slot: Slot, change: impl FnOnce(&mut Item<V>)) {
        if let Some(item) = self
            .places
            .get_mut(slot as usize)
            .and_then(|place| place.item.as_mut())
        {
            change(item);
            self.changes += 1;
            self.note_attention(slot);
        }
    }

    /// Replaces the spec of an item.
    pub(crate) fn respec(&mut self, slot: Slot, spec: Arc<Spec<V>>) {
        if self.item(slot).is_none() {
            return;
        }
        if !self.keeps_order(slot, &spec) {
            self.order.take();
        }
        self.link(slot, &spec, None);
        let Some(item) = self.take_for_change(slot) else {
            return;
        };
        self.put_back(slot, Item { spec, ..item });
    }

    /// Removes the item of a slot, and frees the slot unless another item refers to it.
    pub(crate) fn take(&mut self, slot: Slot) -> Option<Item<V>> {
        let item = self.take_for_change(slot)?;
        self.groups.leave(self.places[slot as usize].group);
        self.unlink(slot, self.places[slot as usize].edges.len());
        self.attention.remove(&slot);
        self.order.take();
        self.release(slot);
        Some(item)
    }

    /// Removes an item from its slot and from the tally, but keeps its edges.
    fn take_for_change(&mut self, slot: Slot) -> Option<Item<V>> {
        let place = self.places.get_mut(slot as usize)?;
        let item = place.item.take()?;
        self.changes += 1;
        let was_plain = std::mem::replace(&mut place.is_plain, true);
        self.tally.subtract(&item, was_plain);
        Some(item)
    }

    fn put_back(&mut self, slot: Slot, item: Item<V>) {
        let is_plain = item.spec.is_plain();
        self.tally.add(&item, is_plain);
        let place = &mut self.places[slot as usize];
        place.is_plain = is_plain;
        place.item = Some(item);
        self.note_attention(slot);
    }

    /// Returns true if the computed order remains valid with this spec: the item exists, and its edges don't change.
    fn keeps_order(&self, slot: Slot, spec: &Spec<V>) -> bool {
        self.order.get().is_none() || self.item(slot).is_some_and(|old| same_edges(&old.spec, spec))
    }

    fn note_attention(&mut self, slot: Slot) {
        if self.item(slot).is_some_and(Item::needs_attention) {
            self.attention.insert(slot);
        } else if !self.attention.is_empty() {
            self.attention.remove(&slot);
        }
    }

    fn link(&mut self, slot: Slot, spec: &Spec<V>, targets: Option<&[Slot]>) {
        let unchanged = |old: &Item<V>| spec.targets().eq(old.spec.targets());
        if self.item(slot).is_some_and(unchanged) {
            return;
        }
        // New edges first, so that a target that stays keeps its slot.
        let new: Vec<Edge> = if let Some(targets) = targets {
            targets.iter().map(|&to| self.attach(slot, to)).collect()
        } else {
            let targets: Vec<Slot> = spec.targets().map(|(_, target)| self.intern(target)).collect();
            targets.into_iter().map(|to| self.attach(slot, to)).collect()
        };
        if self.places[slot as usize].edges.is_empty() {
            self.places[slot as usize].edges = new.into_boxed_slice();
            return;
        }
        let edges = std::mem::take(&mut self.places[slot as usize].edges);
        let before = edges.len();
        self.places[slot as usize].edges = edges.into_iter().chain(new).collect();
        self.unlink(slot, before);
    }

    fn attach(&mut self, slot: Slot, to: Slot) -> Edge {
        let dependents = &mut self.places[to as usize].dependents;
        dependents.push(slot);
        // There are fewer dependents than edges, and those fit their items' boxes: far below 2^32.
        Edge {
            to,
            at: (dependents.len() - 1) as u32,
        }
    }

    /// Removes the first `count` edges of an item. Edges stay in place meanwhile, because entries that move are found
    /// through them.
    fn unlink(&mut self, slot: Slot, count: usize) {
        for at in 0..count {
            let edges = &mut self.places[slot as usize].edges;
            let edge = std::mem::replace(&mut edges[at], Edge { to: Slot::MAX, at: 0 });
            self.detach(edge);
            self.release(edge.to);
        }
        let edges = std::mem::take(&mut self.places[slot as usize].edges);
        self.places[slot as usize].edges = edges.into_iter().skip(count).collect();
    }

    /// Removes one entry from a target's dependents. The last entry moves to its place and updates its edge.
    fn detach(&mut self, edge: Edge) {
        let dependents = &mut self.places[edge.to as usize].dependents;
        dependents.swap_remove(edge.at as usize);
        let from = dependents.len() as u32;
        let Some(&moved) = dependents.get(edge.at as usize) else {
            return;
        };
        let edges = &mut self.places[moved as usize].edges;
        if let Some(entry) = edges
            .iter_mut()
            .find(|entry| entry.to == edge.to && entry.at == from)
        {
            entry.at = edge.at;
        }
    }

    /// Returns the slot of a ref, adding one if the ref is new.
    fn intern(&mut self, reference: &Ref) -> Slot {
        if let Some(slot) = self.slot(reference) {
            return slot;
        }
        let place = SlotEntry {
            reference: reference.clone(),
            group: 0,
            is_plain: true,
            item: None,
            edges: Box::default(),
            dependents: Vec::new(),
        };
        let slot = if let Some(slot) = self.free.pop() {
            self.places[slot as usize] = place;
            slot
        } else {
            let slot = Slot::try_from(self.places.len()).ok();
            assert!(
                slot.is_some_and(|slot| slot < Slot::MAX),
                "a graph has fewer than 2^32 refs"
            );
            self.places.push(place);
            slot.unwrap_or(Slot::MAX)
        };
        self.index.insert(reference.clone(), slot);
        slot
    }

    /// Frees an unused slot, or notes it for later while slots are kept.
    fn release(&mut self, slot: Slot) {
        let place = &self.places[slot as usize];
        if place.item.is_some() || !place.dependents.is_empty() {
            return;
        }
        if let Some(unneeded) = &mut self.unneeded {
            unneeded.push(slot);
        } else if self.index.get(&place.reference) == Some(&slot) {
            self.index.remove(&place.reference);
            self.free.push(slot);
        }
    }

    /// Reserves space for this number of further refs, in one allocation.
    pub(crate) fn reserve(&mut self, refs: usize) {
        let fresh = refs.saturating_sub(self.free.len());
        self.places.reserve(fresh);
        self.index.reserve(refs);
    }

    /// Keeps every slot until [`Graph::release_slots`].
    pub(crate) fn keep_slots(&mut self) {
        self.unneeded.get_or_insert_default();
        self.groups.watch();
    }

    /// Returns the slot of a ref, kept until [`Graph::release_slots`].
    pub(crate) fn pin(&mut self, reference: &Ref) -> Slot {
        let slot = self.intern(reference);
        self.release(slot);
        slot
    }

    /// Frees the kept slots that are unused.
    pub(crate) fn release_slots(&mut self) {
        for slot in self.unneeded.take().unwrap_or_default() {
            self.release(slot);
        }
    }
}

/// Returns true if two specs have the same dependencies, as far as the order of items is concerned.
fn same_edges<V>(left: &Spec<V>, right: &Spec<V>) -> bool {
    left.needs.len() == right.needs.len()
        && left.needs.iter().zip(&right.needs).all(|(left, right)| {
            left.is_order_only() == right.is_order_only() && left.targets().eq(right.targets())
        })
}
