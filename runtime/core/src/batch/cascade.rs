//! Cascading deletes: deleting an owner deletes the resources that it owns (the contract's C15), unless they are
//! handed over.

use std::collections::HashSet;

use super::by_subject::{EditsBySubject, SubjectEdits};
use crate::graph::Graph;
use crate::types::index::Slot;
use crate::{Batch, Change, Key, Refusal, Uid};

/// Adds to a batch the deletes of all resources that its deleted resources own, transitively. A resource that the batch
/// gives another owner is kept, and so is everything below a resource that the batch creates again.
pub(crate) fn cascade(graph: &Graph, batch: &Batch, edits: &mut EditsBySubject) -> Result<(), Refusal> {
    if edits.deleted().next().is_none() {
        return Ok(());
    }
    let created = |edit: &crate::Edit| match &edit.change {
        Change::Create(new) => Some(Key {
            kind: new.kind.clone(),
            name: new.name.clone(),
        }),
        _ => None,
    };
    // Deleted and created again in one batch, a resource is updated: what it owns stays.
    let created: HashSet<Key> = batch.edits.iter().filter_map(created).collect();
    let goes = |slot: &Slot| !created.contains(&graph[*slot].row().key());
    let mut open: Vec<Slot> = edits.deleted().filter(goes).collect();
    while let Some(owner) = open.pop() {
        let uid = graph[owner].row().uid;
        for slot in graph.owned_by(uid) {
            let resource = &graph[slot];
            // What can't be read is kept untouched, even if that leaves it without an owner.
            if !resource.is_live() || resource.unreadable().is_some() {
                continue;
            }
            match edits.stored.get(&slot) {
                Some(subject_edits) if subject_edits.delete.is_some() || subject_edits.leaves(uid) => {
                    continue;
                }
                Some(_) => return Err(Refusal::Contradiction(resource.row().key())),
                None => edits.stored.insert(slot, Box::new(SubjectEdits::to_delete())),
            };
            if goes(&slot) {
                open.push(slot);
            }
        }
    }
    Ok(())
}

impl EditsBySubject {
    fn deleted(&self) -> impl Iterator<Item = Slot> + '_ {
        let deleted = self
            .stored
            .iter()
            .filter(|(_, subject_edits)| subject_edits.delete.is_some());
        deleted.map(|(slot, _)| *slot)
    }
}

impl SubjectEdits {
    fn to_delete() -> Self {
        Self {
            delete: Some(false),
            owned: true,
            ..Self::default()
        }
    }

    /// Returns true if the edits give the resource another owner, or none.
    fn leaves(&self, owner: Uid) -> bool {
        self.update.owner.is_some_and(|new| new != Some(owner))
    }
}
