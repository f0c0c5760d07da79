//! Events of a small world, with their meaning in the naive reference.

use super::model::{Item, Model, NODES_MAX, SPARE};

/// An event of the search that counts against its bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// An edit that gives a resource a new spec.
    Edit(usize),
    /// An edit that adds a resource's ref to a name, or removes it.
    Toggle(usize, u8),
    Rename(usize, u8),
    Swap(usize, usize),
    Delete(usize),
    Create(usize),
    Cancel(usize),
    /// A failure of the resource's invocation.
    Fail(usize),
}

impl Model {
    /// Lists every edit that will not be refused.
    pub(super) fn edits(&self, count: usize) -> Vec<Event> {
        let mut edits = Vec::new();
        for index in 0..count {
            let begun_with = index as u8;
            let Some(item) = self.items[index].filter(|item| !item.deleted) else {
                let taken_up = self.items[index].is_none_or(|item| item.name == begun_with);
                if taken_up && self.is_free(begun_with) {
                    edits.push(Event::Create(index));
                }
                continue;
            };
            edits.extend([Event::Edit(index), Event::Delete(index)]);
            let others = (0..count as u8).filter(|name| *name != begun_with);
            edits.extend(others.map(|name| Event::Toggle(index, name)));
            let free = [begun_with, SPARE].into_iter().filter(|name| *name != item.name);
            let free = free.filter(|name| self.holder(*name).is_none());
            edits.extend(free.map(|name| Event::Rename(index, name)));
            let later = (index + 1..NODES_MAX).filter(|other| self.is_live(*other));
            edits.extend(later.map(|other| Event::Swap(index, other)));
        }
        edits
    }

    /// Returns true if no live resource has the name, and no other deleted resource would take it up.
    fn is_free(&self, name: u8) -> bool {
        let deleted = |(index, item): (usize, &Option<Item>)| {
            index != name as usize && item.is_some_and(|item| item.deleted && item.name == name)
        };
        self.holder(name).is_none() && !self.items.iter().enumerate().any(deleted)
    }

    /// Makes an edit, and returns the resources that it requests, as bits.
    pub(super) fn edit(&mut self, event: Event) -> u8 {
        let before = *self;
        let mut asked = match event {
            Event::Edit(index) => 1 << index,
            Event::Toggle(index, name) => {
                self.change(index, |item| item.refs ^= 1 << name);
                1 << index
            }
            Event::Rename(index, name) => {
                self.rename(index, name);
                1 << index
            }
            Event::Swap(one, other) => {
                let name = |index: usize| before.items[index].map_or(SPARE, |item| item.name);
                self.rename(one, name(other));
                self.rename(other, name(one));
                1 << one | 1 << other
            }
            Event::Delete(index) => {
                let above = before.direct_parents(index);
                for parent in (0..NODES_MAX).filter(|it| *it != index && above & (1 << it) != 0) {
                    self.change(parent, |item| item.waits |= 1 << index);
                }
                self.change(index, |item| (item.deleted, item.failed) = (true, false));
                0
            }
            Event::Create(index) => {
                let former = self.items[index].map_or(0, |item| item.former);
                let mut item = Item::new(index as u8, 0);
                (item.former, item.waits) = (former, self.items[index].map_or(0, |item| item.waits));
                self.items[index] = Some(item);
                self.delete_is_over(index);
                1 << index
            }
            Event::Cancel(_) | Event::Fail(_) => 0,
        };
        let broken = before.on_cycles() & !self.on_cycles();
        asked |= self.whose_refs_moved(&before) | broken;
        (0..NODES_MAX)
            .filter(|index| self.is_live(*index))
            .fold(0, |all, index| all | asked & (1 << index))
    }

    fn change(&mut self, index: usize, change: impl FnOnce(&mut Item)) {
        if let Some(item) = &mut self.items[index] {
            change(item);
        }
    }

    fn rename(&mut self, index: usize, name: u8) {
        self.change(index, |item| {
            item.former |= 1 << item.name;
            (item.name, item.failed) = (name, false);
        });
    }

    /// Completes a resource's rename.
    pub(super) fn renamed(&mut self, index: usize) {
        self.change(index, |item| (item.former, item.failed) = (0, false));
    }

    /// Completes a resource's delete.
    pub(super) fn removed(&mut self, index: usize) {
        self.items[index] = None;
        self.delete_is_over(index);
    }

    /// Records that a resource's delete or rename has failed.
    pub(super) fn op_failed(&mut self, index: usize) {
        self.change(index, |item| item.failed = true);
        if self.items[index].is_some_and(|item| item.deleted) {
            self.delete_is_over(index);
        }
    }

    fn delete_is_over(&mut self, index: usize) {
        for item in self.items.iter_mut().flatten() {
            item.waits &= !(1 << index);
        }
    }
}
