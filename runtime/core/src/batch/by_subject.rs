//! The edits of a batch, sorted by their subjects.

use std::collections::{BTreeMap, HashMap};

use crate::types::index::Slot;
use crate::{Key, Name, NewResource, Update};
use rustc_hash::FxBuildHasher;

/// Everything that the edits of a batch say of one stored resource.
#[derive(Debug, Default)]
pub(crate) struct SubjectEdits {
    pub(super) update: Update,
    pub(super) name: Option<Name>,
    pub(super) delete: Option<bool>,
    /// Set if it is deleted because its owner is, and no edit names it.
    pub(super) owned: bool,
    pub(super) create: Option<Box<NewResource>>,
}

/// The batch sorted by what it is about.
#[derive(Debug, Default)]
pub(crate) struct EditsBySubject {
    /// Boxed, for a map of large values is a large allocation even for the one edit that most batches have.
    pub(super) stored: BTreeMap<Slot, Box<SubjectEdits>>,
    pub(super) new: HashMap<Key, Box<NewResource>, FxBuildHasher>,
}

impl SubjectEdits {
    pub(super) fn says_nothing_else(&self) -> bool {
        self.update == Update::default() && self.name.is_none()
    }
}
