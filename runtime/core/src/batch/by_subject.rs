//! The edits of a batch, sorted by their subjects.

use std::collections::{BTreeMap, HashMap};

use crate::types::index::Slot;
use crate::{Key, Name, NewResource, Update};
use rustc_hash::FxBuildHasher;

/// Edits of a batch that concern one stored resource.
#[derive(Debug, Default)]
pub(crate) struct SubjectEdits {
    pub(super) update: Update,
    pub(super) name: Option<Name>,
    pub(super) delete: Option<bool>,
    /// True if no edit names the resource, and the delete comes from its owner.
    pub(super) owned: bool,
    pub(super) create: Option<Box<NewResource>>,
}

/// Edits of a batch, sorted by the resource that each concerns.
#[derive(Debug, Default)]
pub(crate) struct EditsBySubject {
    /// Edits of stored resources, by slot. Boxed, because a map of large values allocates much even for a single edit.
    pub(super) stored: BTreeMap<Slot, Box<SubjectEdits>>,
    pub(super) new: HashMap<Key, Box<NewResource>, FxBuildHasher>,
}

impl SubjectEdits {
    pub(super) fn says_nothing_else(&self) -> bool {
        self.update == Update::default() && self.name.is_none()
    }
}
