//! Validation of a batch: a plan of its edits, or a refusal that changes nothing.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::by_subject::{EditsBySubject, SubjectEdits};
use super::cascade::cascade;
use super::owners::settle_owners;
use crate::graph::Graph;
use crate::graph::resource::Life;
use crate::types::index::Slot;
use crate::{Batch, Change, Edit, Expect, Key, Name, NewResource, Refusal, Uid, Update};
use rustc_hash::FxBuildHasher;

/// The change of a batch to one resource.
#[derive(Debug)]
pub(crate) enum Step {
    Create(Box<NewResource>),
    /// New columns. A resource that is being deleted becomes live again.
    Change {
        slot: Slot,
        update: Box<Update>,
        name: Option<Name>,
        take_up: bool,
    },
    Delete {
        slot: Slot,
        force: bool,
        /// True if no edit names the resource, and the delete comes from its owner.
        owned: bool,
    },
}

/// A validated batch.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    steps: Vec<Step>,
    /// Uid of the resource that each edit concerns, in the order of the edits.
    uids: Vec<Uid>,
    /// Origins of the edits that name one, by the uid of the resource.
    origins: HashMap<Uid, Arc<str>, FxBuildHasher>,
}

impl Plan {
    /// Takes the uids of the resources that the edits concern, in the order of the edits.
    pub(crate) fn take_uids(&mut self) -> Vec<Uid> {
        std::mem::take(&mut self.uids)
    }

    /// Sets the origin of the edits that name none, which concern these resources.
    pub(crate) fn default_origin(&mut self, uids: &[Uid], origin: Option<&Arc<str>>) {
        let Some(origin) = origin else { return };
        for uid in uids {
            self.origins.entry(*uid).or_insert_with(|| Arc::clone(origin));
        }
    }

    /// Splits the plan into its steps and the origins of its edits by resource.
    pub(crate) fn into_steps(self) -> (Vec<Step>, HashMap<Uid, Arc<str>, FxBuildHasher>) {
        (self.steps, self.origins)
    }
}

/// Validates a whole batch against the present catalog.
pub(crate) fn plan(graph: &Graph, batch: &Batch) -> Result<Plan, Refusal> {
    let mut edits = EditsBySubject::default();
    let mut subjects: Vec<Result<Slot, Key>> = Vec::with_capacity(batch.edits.len());
    for edit in batch
        .edits
        .iter()
        .filter(|edit| !matches!(edit.change, Change::Create(_) | Change::Apply(_)))
    {
        intend_change(graph, edit, &mut edits)?;
    }
    // Before creates: a create in the same batch takes up what an owner's delete takes along.
    cascade(graph, batch, &mut edits)?;
    for edit in &batch.edits {
        subjects.push(match &edit.change {
            Change::Create(new) | Change::Apply(new) => intend_create(graph, edit, new, &mut edits)?,
            _ => Ok(resolve_for(graph, edit)?),
        });
    }
    // Names are judged as they are after the whole batch. One by one, a swap of two names would be refused.
    check_names_after(graph, &edits)?;
    check_uids(graph, &edits)?;
    settle_owners(graph, &mut edits)?;
    let uid_of = |subject: &Result<Slot, Key>| match subject {
        Ok(slot) => Some(graph[*slot].row().uid),
        Err(key) => edits.new.get(key).map(|new| new.uid),
    };
    let uids: Vec<Uid> = subjects.iter().filter_map(uid_of).collect();
    let origin_of = |(edit, uid): (&Edit, &Uid)| Some((*uid, edit.origin.clone()?));
    let origins = batch.edits.iter().zip(&uids).filter_map(origin_of).collect();
    let mut steps: Vec<Step> = edits
        .stored
        .into_iter()
        .filter_map(|(slot, subject_edits)| step(graph, slot, *subject_edits))
        .collect();
    let mut new: Vec<(Key, Box<NewResource>)> = edits.new.into_iter().collect();
    // The map has no order, and equal inputs must give equal effects in equal order.
    new.sort_by(|(a, _), (b, _)| a.cmp(b));
    steps.extend(new.into_iter().map(|(_, new)| Step::Create(new)));
    Ok(Plan { steps, uids, origins })
}

fn resolve_for(graph: &Graph, edit: &Edit) -> Result<Slot, Refusal> {
    match edit.change {
        Change::Delete | Change::ForceDelete => graph.resolve_with_deleted(&edit.target),
        _ => graph.resolve(&edit.target),
    }
}

fn intend_change(graph: &Graph, edit: &Edit, edits: &mut EditsBySubject) -> Result<(), Refusal> {
    let slot = resolve_for(graph, edit)?;
    check_expected(graph, slot, edit.expect)?;
    let row = graph[slot].row();
    // An update would overwrite bytes that a later version of the kind may be able to read.
    if graph[slot].unreadable().is_some() && edit.change != Change::ForceDelete {
        return Err(Refusal::Unreadable(row.key()));
    }
    let subject_edits = edits.stored.entry(slot).or_default();
    let agrees = match &edit.change {
        Change::Update(update) => subject_edits.delete.is_none() && merge(&mut subject_edits.update, update),
        Change::Rename(name) => {
            // Names are compared without case, but two spellings are two answers to what it is called.
            subject_edits.delete.is_none() && agree_by(&mut subject_edits.name, name, |a, b| a.same_case(b))
        }
        Change::Delete => subject_edits.says_nothing_else() && agree(&mut subject_edits.delete, &false),
        Change::ForceDelete => subject_edits.says_nothing_else() && agree(&mut subject_edits.delete, &true),
        Change::Create(_) | Change::Apply(_) => true,
    };
    if agrees {
        Ok(())
    } else {
        Err(Refusal::Contradiction(row.key()))
    }
}

fn check_expected(graph: &Graph, slot: Slot, expect: Expect) -> Result<(), Refusal> {
    let row = graph[slot].row();
    if let Some(expected) = expect.uid.filter(|expected| *expected != row.uid) {
        return Err(Refusal::OtherUid {
            key: row.key(),
            expected,
            found: row.uid,
        });
    }
    match expect
        .spec_version
        .filter(|expected| *expected != row.spec_version)
    {
        Some(expected) => Err(Refusal::StaleSpec {
            key: row.key(),
            expected,
            found: row.spec_version,
        }),
        None => Ok(()),
    }
}

/// Adds a create or apply. A create updates a resource that the batch deletes, revives one that is being deleted, or
/// makes a new one; an apply may update a live one as well.
fn intend_create(
    graph: &Graph,
    edit: &Edit,
    new: &NewResource,
    edits: &mut EditsBySubject,
) -> Result<Result<Slot, Key>, Refusal> {
    let key = new.key();
    let id = graph.name_id(&new.kind, &new.name);
    let live = id.and_then(|id| graph.live(id));
    let replaces = matches!(edit.change, Change::Apply(_));
    let stored = match live {
        Some(live) => match edits.stored.get(&live) {
            Some(subject_edits) => {
                let is_said_otherwise = subject_edits.delete.is_none() && subject_edits.create.is_none();
                if replaces && is_said_otherwise {
                    return Err(Refusal::Contradiction(key));
                }
                (subject_edits.delete == Some(false) || (replaces && subject_edits.delete.is_none()))
                    .then_some(live)
            }
            None => replaces.then_some(live),
        },
        // What is being deleted is taken up with its uid and state, so that its output is adopted and not built beside (C13).
        // A forced delete gives up the uid, so there is nothing to take up.
        None => id.and_then(|id| graph.deleted_last(id)).filter(|deleted| {
            edits
                .stored
                .get(deleted)
                .is_none_or(|subject_edits| subject_edits.delete != Some(true))
        }),
    };
    let Some(slot) = stored else {
        // The author expected a resource that is there, and there is none.
        if edit.expect != Expect::default() {
            return Err(Refusal::Unknown(key.to_string()));
        }
        if let Some(other) = edits.new.insert(key.clone(), Box::new(new.clone()))
            && *other != *new
        {
            return Err(Refusal::Contradiction(key));
        }
        return Ok(Err(key));
    };
    check_expected(graph, slot, edit.expect)?;
    if graph[slot].unreadable().is_some() {
        return Err(Refusal::Unreadable(key));
    }
    let subject_edits = edits.stored.entry(slot).or_default();
    if subject_edits.create.as_deref().is_some_and(|other| other != new) {
        return Err(Refusal::Contradiction(key));
    }
    subject_edits.create = Some(Box::new(new.clone()));
    Ok(Ok(slot))
}

/// Checks that no two live resources have the same name after the batch.
fn check_names_after(graph: &Graph, edits: &EditsBySubject) -> Result<(), Refusal> {
    let leaves = |slot: Slot| {
        edits.stored.get(&slot).is_some_and(|subject_edits| {
            let renamed = subject_edits
                .name
                .as_ref()
                .is_some_and(|name| !graph[slot].has_name(name));
            renamed || (subject_edits.delete.is_some() && subject_edits.create.is_none())
        })
    };
    let mut taken: HashMap<Key, Uid, FxBuildHasher> = HashMap::default();
    let mut take = |key: Key, uid: Uid| {
        let id = graph.name_id(&key.kind, &key.name);
        let live = id.and_then(|id| graph.live(id)).filter(|live| !leaves(*live));
        let other = live
            .map(|live| graph[live].row().uid)
            .filter(|other| *other != uid);
        match other.or_else(|| taken.insert(key.clone(), uid).filter(|other| *other != uid)) {
            Some(first) => Err(Refusal::NameTaken {
                key,
                first,
                second: uid,
            }),
            None => Ok(()),
        }
    };
    for (slot, subject_edits) in &edits.stored {
        let row = graph[*slot].row();
        let name = match (&subject_edits.name, &subject_edits.create) {
            (Some(name), _) => name,
            (None, Some(new)) => &new.name,
            (None, None) => continue,
        };
        take(
            Key {
                kind: row.kind.clone(),
                name: name.clone(),
            },
            row.uid,
        )?;
    }
    edits
        .new
        .iter()
        .try_for_each(|(key, new)| take(key.clone(), new.uid))
}

fn check_uids(graph: &Graph, edits: &EditsBySubject) -> Result<(), Refusal> {
    let mut fresh = BTreeSet::new();
    let is_one_of_many = edits.new.len() > 1;
    for new in edits.new.values() {
        if graph.find(new.uid).is_some() || (is_one_of_many && !fresh.insert(new.uid)) {
            return Err(Refusal::UidTaken(new.uid));
        }
    }
    Ok(())
}

fn step(graph: &Graph, slot: Slot, subject_edits: SubjectEdits) -> Option<Step> {
    let deleted = graph[slot].life() == Life::Deleted;
    if let Some(new) = subject_edits.create {
        let name = Some(new.name.clone());
        return Some(Step::Change {
            slot,
            update: Box::new(all_columns(*new)),
            name,
            take_up: deleted,
        });
    }
    match subject_edits.delete {
        // It is under way. A second delete must not begin its attempts and its place in the order anew.
        Some(false) if deleted => None,
        Some(force) => Some(Step::Delete {
            slot,
            force,
            owned: subject_edits.owned,
        }),
        None => Some(Step::Change {
            slot,
            update: Box::new(subject_edits.update),
            name: subject_edits.name,
            take_up: false,
        }),
    }
}

fn all_columns(new: NewResource) -> Update {
    Update {
        spec: Some((new.spec, new.spec_format)),
        refs: Some(new.refs),
        paths: Some(new.paths),
        labels: Some(new.labels),
        owner: Some(new.owner),
        hidden: Some(new.hidden),
        retry: Some(new.retry),
    }
}

/// Merges one more update of the same resource; returns false if the two give a column different values.
fn merge(into: &mut Update, update: &Update) -> bool {
    agree_all(&mut into.spec, &update.spec)
        & agree_all(&mut into.refs, &update.refs)
        & agree_all(&mut into.paths, &update.paths)
        & agree_all(&mut into.labels, &update.labels)
        & agree_all(&mut into.owner, &update.owner)
        & agree_all(&mut into.hidden, &update.hidden)
        & agree_all(&mut into.retry, &update.retry)
}

fn agree_all<T: Clone + PartialEq>(into: &mut Option<T>, value: &Option<T>) -> bool {
    value.as_ref().is_none_or(|value| agree(into, value))
}

fn agree<T: Clone + PartialEq>(into: &mut Option<T>, value: &T) -> bool {
    agree_by(into, value, T::eq)
}

fn agree_by<T: Clone>(into: &mut Option<T>, value: &T, equal: impl Fn(&T, &T) -> bool) -> bool {
    match into {
        Some(before) => equal(before, value),
        None => {
            *into = Some(value.clone());
            true
        }
    }
}
