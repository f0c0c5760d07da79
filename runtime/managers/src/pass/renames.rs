//! Renames of owners: the parts get new names too, and nothing changes outside.
//!
//! A manager names the parts of a resource by its name, as a pure function. So the names that they had are those which it gives
//! to the same resource under the name of before, which the record knows.

use std::time::Duration;

use watershed_controller::{Edit, Key, Reconciler};

use super::Pass;
use super::parts::Declared;
use crate::goal::Goal;
use crate::manager::Manager;
use crate::record::ManagedState;

/// The wait before a rename is tried again to a name that is in use.
const TAKEN_AGAIN: Duration = Duration::from_secs(1);

impl<M: Manager, R: Reconciler<State = ManagedState<M::Details>>> Pass<'_, M, R> {
    /// Returns the keys of the parts under the former name of their owner, in the order of the parts; empty if the name
    /// is the same.
    pub(super) fn keys_before(&self, goal: &Goal) -> Vec<Key> {
        let named = self.kept.record.named.clone();
        let Some(before) = named.filter(|named| *named != self.subject.name) else {
            return Vec::new();
        };
        let mut view = self.view(goal, self.context.cancellation().clone());
        view.name = before;
        self.manager
            .parts(&view)
            .into_iter()
            .map(|part| part.key)
            .collect()
    }

    /// Returns the edits that rename parts to their new names, as far as the names are free.
    pub(super) fn renames(&self) -> Vec<Edit> {
        let misnamed = self.parts.iter().filter(|one| is_misnamed(one));
        let edit = |one: &Declared| {
            let row = one.row.as_ref().filter(|_| !self.is_taken(one))?;
            Some(Edit::rename(row.uid, one.part.key.name.clone()))
        };
        misnamed.filter_map(edit).collect()
    }

    /// Records the name after which the parts are named, or looks again soon if the name of a part is in use.
    pub(super) fn note_names(&mut self) {
        if self.parts.is_empty() {
            self.kept.record.named = None;
        } else if self
            .parts
            .iter()
            .any(|one| is_misnamed(one) && self.is_taken(one))
        {
            self.wake_at(self.now().after(TAKEN_AGAIN));
        } else {
            self.kept.record.named = Some(self.subject.name.clone());
        }
    }

    /// Returns true if the name of a part belongs to another resource.
    fn is_taken(&self, one: &Declared) -> bool {
        let uid = one.row.as_ref().map(|row| row.uid);
        let found = self.context.controller().get(one.part.key.clone()).ok();
        found.is_some_and(|found| Some(found.row.uid) != uid)
    }
}

fn is_misnamed(one: &Declared) -> bool {
    one.row.as_ref().is_some_and(|row| row.name != one.part.key.name)
}
