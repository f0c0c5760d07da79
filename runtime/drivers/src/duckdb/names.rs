//! Objects in the engine's schema `main`, by name and by owner.
//!
//! Read once when the file is opened and kept up with every commit: the file belongs to this process alone and
//! every change goes through here, so that no build has to search the engine's catalog.
//!
//! Invariants:
//! 1. Between two units of work an entry is here exactly when the object is in the engine, with its kind and tag.
//! 2. Two units of work that touch the same name or the same owner never run at the same time: each claims both
//!    first ([`Names::try_claim`]), so what it read here still holds when it commits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use uuid::Uuid;
use watershed_dialect::{Dialect as _, DuckDb};

use super::columns::Column;
use crate::olap::{Object, OutputKind, Tag, Trashed};

/// An object in the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Name as spelled in the engine.
    pub(super) name: String,
    pub(super) kind: OutputKind,
    /// Tag of the output; `None` if the object is not ours.
    pub(super) tag: Option<Tag>,
}

/// The known objects in the schema, and the claims of running work.
#[derive(Debug, Default)]
pub(super) struct Names {
    objects: BTreeMap<Folded, Entry>,
    owned: BTreeMap<Uuid, BTreeSet<Folded>>,
    /// Owners with a record.
    recorded: BTreeSet<Uuid>,
    /// Owners that have or had notes of partitions.
    partitioned: BTreeSet<Uuid>,
    /// Owners whose stage is known to exist, with its columns except our own.
    staged: BTreeMap<Uuid, Arc<[Column]>>,
    /// Outputs in the trash, by their builds.
    trash: BTreeMap<Uuid, Trashed>,
    claimed: BTreeSet<ClaimKey>,
}

/// The owners of records and of notes of partitions.
#[derive(Debug, Default)]
pub(super) struct Noted {
    pub(super) recorded: BTreeSet<Uuid>,
    pub(super) partitioned: BTreeSet<Uuid>,
    pub(super) trash: Vec<Trashed>,
}

/// A name in the form that the engine compares: ASCII letters in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Folded(String);

impl Folded {
    pub(super) fn new(name: &str) -> Self {
        Self(DuckDb.fold(name))
    }
}

/// A thing that a unit of work claims while its changes are not visible yet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ClaimKey {
    Name(Folded),
    Owner(Uuid),
}

/// A committed change of the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Edit {
    /// The object now has its name, replacing any other.
    Put(Entry),
    /// No object has this name any more.
    Remove(Folded),
    /// The owner has a record.
    Recorded(Uuid),
    /// The owner has no record.
    Forgotten(Uuid),
    /// The owner has notes of partitions.
    Partitioned(Uuid),
    /// The owner has no notes of partitions.
    Whole(Uuid),
    /// The owner's stage exists, with these columns.
    Staged(Uuid, Arc<[Column]>),
    /// The owner's stage is gone.
    Unstaged(Uuid),
    /// The output is in the trash, or its details there have changed.
    Thrown(Trashed),
    /// The output of this build is no longer in the trash.
    TakenBack(Uuid),
}

impl Names {
    /// Replaces the known objects by those read from the engine. Claims stay.
    pub(super) fn reload(&mut self, entries: Vec<Entry>, left: Noted) {
        self.objects.clear();
        self.owned.clear();
        self.recorded = left.recorded;
        self.partitioned = left.partitioned;
        self.staged.clear();
        self.trash = left.trash.into_iter().map(|it| (it.tag.build, it)).collect();
        for entry in entries {
            self.apply(Edit::Put(entry));
        }
    }

    /// Returns the object of a name.
    pub(super) fn at(&self, name: &str) -> Option<&Entry> {
        self.objects.get(&Folded::new(name))
    }

    /// Returns the object of a name in the callers' form.
    pub(super) fn object(&self, name: &str) -> Option<Object> {
        let Entry { kind, tag, .. } = self.at(name)?;
        Some(match *tag {
            Some(tag) => Object::Ours { tag, kind: *kind },
            None => Object::Foreign { kind: *kind },
        })
    }

    /// Returns the objects of an owner: at most one, unless somebody edited the file by hand.
    pub(super) fn owned_by(&self, uid: Uuid) -> impl Iterator<Item = &Entry> {
        self.owned
            .get(&uid)
            .into_iter()
            .flatten()
            .filter_map(|name| self.objects.get(name))
    }

    /// Returns all tagged objects, ordered by name.
    pub(super) fn outputs(&self) -> impl Iterator<Item = (&Entry, Tag)> {
        self.objects
            .values()
            .filter_map(|entry| Some((entry, entry.tag?)))
    }

    /// Returns true if any unit of work has claims.
    pub(super) fn has_claims(&self) -> bool {
        !self.claimed.is_empty()
    }

    /// Returns true if an owner has a record.
    pub(super) fn has_record(&self, uid: Uuid) -> bool {
        self.recorded.contains(&uid)
    }

    /// Returns true if an owner may have notes of partitions.
    pub(super) fn has_partitions(&self, uid: Uuid) -> bool {
        self.partitioned.contains(&uid)
    }

    /// Returns the columns of an owner's stage; none if no stage is known.
    pub(super) fn staged(&self, uid: Uuid) -> Option<Arc<[Column]>> {
        self.staged.get(&uid).cloned()
    }

    /// Returns the outputs in the trash.
    pub(super) fn trash(&self) -> impl Iterator<Item = &Trashed> {
        self.trash.values()
    }

    /// Returns a build's output in the trash; none if it is not there.
    pub(super) fn trashed(&self, build: Uuid) -> Option<&Trashed> {
        self.trash.get(&build)
    }

    /// Applies a committed change.
    pub(super) fn apply(&mut self, edit: Edit) {
        match edit {
            Edit::Put(entry) => self.place(Folded::new(&entry.name), Some(entry)),
            Edit::Remove(name) => self.place(name, None),
            Edit::Recorded(uid) => drop(self.recorded.insert(uid)),
            Edit::Forgotten(uid) => drop(self.recorded.remove(&uid)),
            Edit::Partitioned(uid) => drop(self.partitioned.insert(uid)),
            Edit::Whole(uid) => {
                self.partitioned.remove(&uid);
                self.staged.remove(&uid);
            }
            Edit::Staged(uid, columns) => drop(self.staged.insert(uid, columns)),
            Edit::Unstaged(uid) => drop(self.staged.remove(&uid)),
            Edit::Thrown(trashed) => drop(self.trash.insert(trashed.tag.build, trashed)),
            Edit::TakenBack(build) => drop(self.trash.remove(&build)),
        }
    }

    fn place(&mut self, name: Folded, entry: Option<Entry>) {
        let tag = entry.as_ref().and_then(|entry| entry.tag);
        let before = match entry {
            Some(entry) => self.objects.insert(name.clone(), entry),
            None => self.objects.remove(&name),
        };
        if let Some(Tag { uid, .. }) = before.and_then(|entry| entry.tag)
            && let Some(owned) = self.owned.get_mut(&uid)
        {
            owned.remove(&name);
            if owned.is_empty() {
                self.owned.remove(&uid);
            }
        }
        if let Some(Tag { uid, .. }) = tag {
            self.owned.entry(uid).or_default().insert(name);
        }
    }

    /// Claims an owner with all its objects, a name with its current owner, and an output in the trash with its last
    /// owner; `None` while other work has claimed any of them.
    pub(super) fn try_claim(
        &mut self,
        uid: Uuid,
        name: Option<&str>,
        back: Option<Uuid>,
    ) -> Option<BTreeSet<ClaimKey>> {
        let mut keys = BTreeSet::from([ClaimKey::Owner(uid)]);
        if let Some(trashed) = back.and_then(|build| self.trashed(build)) {
            keys.insert(ClaimKey::Owner(trashed.tag.uid));
        }
        keys.extend(
            self.owned
                .get(&uid)
                .into_iter()
                .flatten()
                .cloned()
                .map(ClaimKey::Name),
        );
        if let Some(name) = name {
            keys.insert(ClaimKey::Name(Folded::new(name)));
            keys.extend(
                self.at(name)
                    .and_then(|entry| entry.tag)
                    .map(|tag| ClaimKey::Owner(tag.uid)),
            );
        }
        if !keys.is_disjoint(&self.claimed) {
            return None;
        }
        self.claimed.extend(keys.iter().cloned());
        Some(keys)
    }

    /// Releases claims at the end of a unit of work.
    pub(super) fn release(&mut self, keys: &BTreeSet<ClaimKey>) {
        self.claimed.retain(|key| !keys.contains(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, uid: u128) -> Entry {
        let tag = Tag {
            uid: Uuid::from_u128(uid),
            build: Uuid::from_u128(9),
        };
        Entry {
            name: name.to_owned(),
            kind: OutputKind::Table,
            tag: Some(tag),
        }
    }

    #[test]
    fn names_are_compared_without_case_and_keep_it() {
        let mut names = Names::default();
        names.apply(Edit::Put(entry("Ab", 1)));
        assert_eq!(names.at("aB").unwrap().name, "Ab");
        names.apply(Edit::Put(entry("aB", 2)));
        assert_eq!(names.owned_by(Uuid::from_u128(1)).count(), 0);
        assert_eq!(names.owned_by(Uuid::from_u128(2)).count(), 1);
    }

    #[test]
    fn a_claim_keeps_others_from_the_owner_its_names_and_who_is_in_the_way() {
        let mut names = Names::default();
        names.reload(
            vec![entry("a", 1), entry("b", 2), entry("c", 3)],
            Noted::default(),
        );
        let held = names.try_claim(Uuid::from_u128(1), Some("b"), None).unwrap();
        assert!(names.try_claim(Uuid::from_u128(7), Some("A"), None).is_none());
        assert!(names.try_claim(Uuid::from_u128(2), None, None).is_none());
        assert!(names.try_claim(Uuid::from_u128(1), Some("z"), None).is_none());
        let other = names.try_claim(Uuid::from_u128(3), Some("d"), None).unwrap();
        names.release(&held);
        assert!(names.try_claim(Uuid::from_u128(2), None, None).is_some());
        assert!(names.try_claim(Uuid::from_u128(4), Some("d"), None).is_none());
        names.release(&other);
    }
}
