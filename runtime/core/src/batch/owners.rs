//! Validation of the owners that a batch names, as they are after the whole batch: an owner may be created with what it
//! owns.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use super::by_subject::{EditsBySubject, SubjectEdits};
use crate::graph::Graph;
use crate::graph::resource::Life;
use crate::types::index::Slot;
use crate::{Key, Refusal, Uid};

/// Checks that every owner in a batch exists, and replaces the uid of a create that updates a stored resource by the
/// uid of that resource. Stored owners are not checked again.
pub(crate) fn settle_owners(graph: &Graph, edits: &mut EditsBySubject) -> Result<(), Refusal> {
    let mut unfound = false;
    for (key, before, owner) in stated(graph, edits) {
        match held(graph, owner) {
            Some(slot)
                if edits
                    .stored
                    .get(&slot)
                    .is_some_and(|edits| edits.leaves_catalog()) =>
            {
                return Err(Refusal::UnknownOwner { key, owner });
            }
            Some(_) => {}
            None => unfound |= before != Some(owner),
        }
    }
    // Most batches name owners that are there, or none.
    if !unfound {
        return Ok(());
    }
    let created = edits.new.values().map(|new| (new.uid, new.uid));
    let replaced = edits.stored.iter().filter_map(|(slot, edits)| {
        let new = edits.create.as_ref()?;
        Some((new.uid, graph[*slot].row().uid))
    });
    let named: HashMap<Uid, Uid, FxBuildHasher> = created.chain(replaced).collect();
    for (key, before, owner) in stated(graph, edits) {
        let is_known = held(graph, owner).is_some() || before == Some(owner) || named.contains_key(&owner);
        if !is_known {
            return Err(Refusal::UnknownOwner { key, owner });
        }
    }
    let settle = |owner: &mut Option<Uid>| {
        let found = owner.filter(|owner| held(graph, *owner).is_none());
        *owner = found.and_then(|owner| named.get(&owner).copied()).or(*owner);
    };
    edits.new.values_mut().for_each(|new| settle(&mut new.owner));
    for edits in edits.stored.values_mut() {
        edits.update.owner.iter_mut().for_each(settle);
        edits.create.iter_mut().for_each(|new| settle(&mut new.owner));
    }
    Ok(())
}

/// Finds a stored resource by uid, also one that is being deleted: its teardown may create resources that belong to it.
fn held(graph: &Graph, uid: Uid) -> Option<Slot> {
    graph.find(uid).filter(|slot| graph[*slot].life() != Life::Gone)
}

/// Lists the owners that a batch assigns: the key of the owned resource, its stored owner, and its new one.
fn stated<'a>(
    graph: &'a Graph,
    edits: &'a EditsBySubject,
) -> impl Iterator<Item = (Key, Option<Uid>, Uid)> + 'a {
    let created = edits
        .new
        .iter()
        .filter_map(|(key, new)| Some((key.clone(), None, new.owner?)));
    let stored = edits.stored.iter().filter_map(|(slot, edits): (&Slot, _)| {
        let row = graph[*slot].row();
        let owner = edits
            .create
            .as_ref()
            .map_or(edits.update.owner, |new| Some(new.owner));
        Some((row.key(), row.owner, owner??))
    });
    created.chain(stored)
}

impl SubjectEdits {
    /// Returns true if the batch removes the resource from the catalog at once (a forced delete).
    fn leaves_catalog(&self) -> bool {
        self.delete == Some(true)
    }
}
