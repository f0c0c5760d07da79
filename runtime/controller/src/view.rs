//! What readers see: the committed catalog as an immutable snapshot, and beside it where each resource stands.
//!
//! A reader takes a snapshot by cloning one `Arc`; from then on nobody can change it or make it wait, so a listing
//! of any length shows every batch whole. The snapshot is a pair of persistent maps: publishing a change copies the
//! few nodes on the way to it and shares the rest, and many changes published together copy a node once.
//!
//! Invariants:
//! 1. `live` has exactly the rows without a deletion mark, under their kind and name.
//! 2. Every row that was published and did not go is in `rows`, also while its delete is unfinished.
//!
//! Standing, reason and progress move several times in each run and belong to no version, so they live in a cell
//! that all snapshots share.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use rpds::HashTrieMapSync;
use watershed_core::{
    Key, Kind, Name, Publish, Refusal, Revision, Row, Settled, Standing, Status, Stored, Target, Uid,
};

use crate::resource::Resource;
use crate::uids::UidHash;

/// One snapshot of the catalog.
#[derive(Debug, Clone)]
pub(crate) struct View {
    revision: Revision,
    rows: HashTrieMapSync<Uid, Entry, UidHash>,
    live: HashTrieMapSync<Key, Uid>,
    /// How many live resources each kind has; a name alone is looked up in each.
    kinds: BTreeMap<Kind, usize>,
}

#[derive(Debug, Clone)]
struct Entry {
    row: Arc<Row>,
    status: Arc<RwLock<Status>>,
}

impl Entry {
    fn read(&self) -> Resource {
        let status = self.status.read().unwrap_or_else(PoisonError::into_inner).clone();
        Resource {
            row: Arc::clone(&self.row),
            status,
        }
    }
}

impl View {
    /// The catalog as it was found.
    pub(crate) fn of(stored: &Stored) -> Self {
        let mut view = Self {
            revision: stored.revision,
            rows: HashTrieMapSync::default(),
            live: HashTrieMapSync::new_sync(),
            kinds: BTreeMap::new(),
        };
        for entry in &stored.rows {
            view.put(&entry.row);
        }
        view
    }

    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    /// Takes up what was committed. Rows that go or move to another name leave the old one first, so swaps come right.
    pub(crate) fn apply(&mut self, publish: &Publish) {
        self.revision = self.revision.max(publish.revision);
        let mut moving = Vec::new();
        for row in &publish.rows {
            match self.rows.get_mut(&row.uid) {
                Some(entry) if stays(&entry.row, row) => entry.row = Arc::clone(row),
                _ => moving.push(row),
            }
        }
        for uid in moving
            .iter()
            .map(|row| row.uid)
            .chain(publish.gone.iter().map(|gone| gone.uid))
        {
            self.leave_name(uid);
        }
        for gone in &publish.gone {
            self.rows.remove_mut(&gone.uid);
        }
        for row in moving {
            self.put(row);
        }
        for update in &publish.statuses {
            if let Some(entry) = self.rows.get(&update.uid) {
                *entry.status.write().unwrap_or_else(PoisonError::into_inner) = update.status.clone();
            }
        }
    }

    fn leave_name(&mut self, uid: Uid) {
        let Some(entry) = self.rows.get(&uid) else { return };
        let key = entry.row.key();
        if self.live.get(&key) == Some(&uid) {
            self.live.remove_mut(&key);
            if let Some(count) = self.kinds.get_mut(&key.kind) {
                *count -= 1;
            }
        }
    }

    fn put(&mut self, row: &Arc<Row>) {
        let status = match self.rows.get(&row.uid) {
            Some(old) => Arc::clone(&old.status),
            None => Arc::new(RwLock::new(unasked())),
        };
        self.rows.insert_mut(
            row.uid,
            Entry {
                row: Arc::clone(row),
                status,
            },
        );
        if !row.marks.is_deleted() {
            self.live.insert_mut(row.key(), row.uid);
            *self.kinds.entry(row.kind.clone()).or_default() += 1;
        }
    }

    /// Finds one resource: by name a live one, by uid also one whose delete is unfinished.
    pub(crate) fn find(&self, target: &Target) -> Result<Uid, Refusal> {
        match target {
            Target::Uid(uid) if self.rows.contains_key(uid) => Ok(*uid),
            Target::Uid(uid) => Err(Refusal::Unknown(uid.to_string())),
            Target::Key(key) => self
                .live
                .get(key)
                .copied()
                .ok_or_else(|| Refusal::Unknown(key.to_string())),
            Target::Name(name) => self.find_name(name),
        }
    }

    fn find_name(&self, name: &Name) -> Result<Uid, Refusal> {
        let keys = self.kinds.keys().map(|kind| Key {
            kind: kind.clone(),
            name: name.clone(),
        });
        let found: Vec<(Key, Uid)> = keys
            .filter_map(|key| self.live.get(&key).map(|uid| (key, *uid)))
            .collect();
        match found.as_slice() {
            [] => Err(Refusal::Unknown(name.to_string())),
            [(_, uid)] => Ok(*uid),
            _ => Err(Refusal::Ambiguous {
                name: name.to_string(),
                candidates: found.into_iter().map(|(key, _)| key).collect(),
            }),
        }
    }

    /// The resource with this uid.
    pub(crate) fn get(&self, uid: Uid) -> Option<Resource> {
        self.rows.get(&uid).map(Entry::read)
    }

    /// All resources in order of kind, name and uid.
    pub(crate) fn list(&self, keep: impl Fn(&Row) -> bool) -> Vec<Resource> {
        let mut list: Vec<Resource> = self
            .rows
            .values()
            .filter(|entry| keep(&entry.row))
            .map(Entry::read)
            .collect();
        list.sort_by(|a, b| (&a.kind, &a.name, a.uid).cmp(&(&b.kind, &b.name, b.uid)));
        list
    }
}

/// Whether a row is found by what it was found by before.
fn stays(old: &Row, new: &Row) -> bool {
    old.marks.is_deleted() == new.marks.is_deleted() && old.name.same_case(&new.name)
}

/// The standing of a row before the core has said anything about it.
fn unasked() -> Status {
    Status {
        standing: Standing::Settled(Settled::Idle),
        reason: None,
        progress: None,
    }
}
