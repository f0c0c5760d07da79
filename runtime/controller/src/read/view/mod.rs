//! The view for readers: the committed catalog with the status of each resource.
//!
//! Resources lie in shards, each behind a lock that is held for the time of one lookup. So a reader never waits for
//! the loop, and the loop never waits for a reader longer than that. A listing still shows every batch whole: what a
//! resource was before a publish stays beside it for as long as a listing, or a lookup by name, may want it.
//!
//! Invariants, once a publish is applied:
//! 1. `names` has exactly the rows without a deletion mark, under their kind and name.
//! 2. Every row that was published and did not go has an entry, also while its delete is unfinished.
//! 3. Without a listing under way no entry keeps what it was before.
//! 4. A no-op run comes without a row. It is kept beside the row, and put into the copy that a reader gets.
//!
//! Only the loop publishes, so there is one publish at a time.

mod entry;
mod shards;

use std::collections::BTreeMap;
use std::sync::Arc;

use watershed_core::{
    Key, Kind, Name, Publish, Refusal, Revision, Row, Status, StatusUpdate, Target, Timestamp, Uid,
};

use self::entry::{Entry, Replaced, SharedBy};
use self::shards::{SHARDS, Shards};
use crate::sync::{Mutex, MutexGuard, RwLock, Unpoisoned, spin_loop};
use crate::types::resource::Resource;

/// Maximum number of rows that a publish changes in place while new listings wait: well under a millisecond of work.
/// Larger publishes keep the former versions until they are applied.
const IN_PLACE: usize = if cfg!(all(test, feature = "interleavings")) {
    1
} else {
    4_096
};

/// The committed catalog, as readers see it.
#[derive(Debug)]
pub(crate) struct View {
    rows: Shards<Uid, Entry>,
    names: Shards<Key, Uid>,
    /// Number of live resources of each kind. A name without a kind is looked up in each.
    kinds: RwLock<BTreeMap<Kind, usize>>,
    /// Lock held while names move. A lookup without a kind takes it unless it finds exactly one resource: a name that
    /// passes between kinds could be seen in none, or in both.
    moving: RwLock<()>,
    progress: Mutex<Progress>,
}

/// Progress of publishing; publishes are numbered.
#[derive(Debug, Default)]
struct Progress {
    /// Number of the last publish that is fully applied.
    whole: u64,
    /// Revision of the catalog after that publish.
    revision: Revision,
    /// Number of listings under way.
    listings: usize,
    /// Uids of the entries that keep former versions.
    keeping: Vec<Uid>,
}

/// A row that was added, removed, or changed its key.
struct Move {
    old: Option<Arc<Row>>,
    new: Option<Arc<Row>>,
}

impl View {
    /// Creates an empty catalog at this revision, with space for `count` resources.
    pub(crate) fn with_capacity(revision: Revision, count: usize) -> Self {
        Self {
            rows: Shards::with_capacity(count),
            names: Shards::with_capacity(count),
            kinds: RwLock::default(),
            moving: RwLock::default(),
            progress: Mutex::new(Progress {
                revision,
                ..Progress::default()
            }),
        }
    }

    /// Adds the stored catalog, before the first read or publish.
    pub(crate) fn fill(&self, rows: Vec<Arc<Row>>) {
        for row in rows {
            self.take_name(&row);
            self.rows.write(&row.uid).insert(row.uid, Entry::from_row(row));
        }
    }

    /// Returns the revision of the last publish that is fully applied.
    pub(crate) fn revision(&self) -> Revision {
        self.progress.lock().unpoisoned().revision
    }

    /// Applies committed changes. Only the loop calls this.
    pub(crate) fn apply(&self, publish: &Publish, now: Timestamp) {
        let progress = self.progress.lock().unpoisoned();
        let number = progress.whole + 1;
        let small = publish.rows.len() <= IN_PLACE && progress.listings == 0;
        // While the lock is held no listing begins, so nobody wants what a row was before.
        let (held, replaced) = if small {
            (Some(progress), Replaced::Drop)
        } else {
            drop(progress);
            (None, Replaced::Keep)
        };
        let mut keeping = Vec::new();
        let mut moves = Vec::new();
        for row in &publish.rows {
            self.put(row, number, replaced, &mut moves, &mut keeping);
        }
        for removed in &publish.removed {
            let mut shard = self.rows.write(&removed.uid);
            if let Some(entry) = shard.get_mut(&removed.uid) {
                let old = entry.row.clone();
                moves.push(Move { old, new: None });
                entry.replace(None, number, Replaced::Keep);
                keeping.push(removed.uid);
            }
        }
        self.move_names(&moves);
        self.let_stand(&publish.statuses, now);
        let mut progress = held.unwrap_or_else(|| self.progress.lock().unpoisoned());
        progress.whole = number;
        progress.revision = progress.revision.max(publish.revision);
        progress.keeping.append(&mut keeping);
        self.forget_former(progress);
    }

    /// Stores statuses. Resources with equal new ones share one allocation; in large publishes only within a shard.
    fn let_stand(&self, statuses: &[StatusUpdate], now: Timestamp) {
        let (mut latest, mut of_shards) = (None, Vec::new());
        let shared = if statuses.len() > IN_PLACE {
            of_shards.resize(SHARDS, None);
            SharedBy::FewReaders
        } else {
            SharedBy::Everybody
        };
        for update in statuses {
            let mut shard = self.rows.write(&update.uid);
            let latest = of_shards.get_mut(shard.number).unwrap_or(&mut latest);
            if let Some(entry) = shard.get_mut(&update.uid) {
                if let Some(run) = &update.no_op {
                    entry.note_no_op(run);
                }
                entry.stand(&update.status, now, latest, shared);
            }
        }
    }

    /// Stores one row. If the row is new or its key changes, the former version is kept for lookups until the names
    /// have moved.
    fn put(
        &self,
        row: &Arc<Row>,
        number: u64,
        replaced: Replaced,
        moves: &mut Vec<Move>,
        keeping: &mut Vec<Uid>,
    ) {
        let mut shard = self.rows.write(&row.uid);
        let entry = shard.or_default(row.uid);
        let (stays, is_new) = match &entry.row {
            Some(old) => (stays(old, row), false),
            None => (false, entry.before.is_none()),
        };
        let replaced = if stays || is_new { replaced } else { Replaced::Keep };
        if !stays {
            let (old, new) = (entry.row.clone(), Some(Arc::clone(row)));
            moves.push(Move { old, new });
        }
        let old = entry.replace(Some(Arc::clone(row)), number, replaced);
        // The last one to hold a row takes it apart; nobody should wait for that.
        drop(shard);
        drop(old);
        if replaced == Replaced::Keep {
            keeping.push(row.uid);
        }
    }

    /// Adds new names before removing old ones, so that a name that passes to another resource is never free.
    fn move_names(&self, moves: &[Move]) {
        if moves.is_empty() {
            return;
        }
        let _moving = self.moving.write().unpoisoned();
        for row in moves.iter().filter_map(|one| one.new.as_ref()) {
            self.take_name(row);
        }
        for one in moves {
            let Some(old) = one.old.as_ref().filter(|old| is_live(old)) else {
                continue;
            };
            let keeps = one
                .new
                .as_ref()
                .is_some_and(|new| is_live(new) && new.name == old.name);
            if !keeps {
                self.leave_name(old);
            }
        }
    }

    fn take_name(&self, row: &Arc<Row>) {
        if !is_live(row) {
            return;
        }
        let key = row.key();
        let mut names = self.names.write(&key);
        if names.insert(key, row.uid).is_some() {
            return;
        }
        let mut kinds = self.kinds.write().unpoisoned();
        match kinds.get_mut(&row.kind) {
            Some(count) => *count += 1,
            None => drop(kinds.insert(row.kind.clone(), 1)),
        }
    }

    fn leave_name(&self, row: &Row) {
        let key = row.key();
        let mut names = self.names.write(&key);
        if names.get(&key) == Some(&row.uid) {
            names.remove(&key);
            if let Some(count) = self.kinds.write().unpoisoned().get_mut(&key.kind) {
                *count -= 1;
            }
        }
    }

    /// Drops former versions that no listing needs; also called by the last listing.
    fn forget_former(&self, mut progress: MutexGuard<'_, Progress>) {
        if progress.listings > 0 || progress.keeping.is_empty() {
            return;
        }
        let whole = progress.whole;
        let keeping = std::mem::take(&mut progress.keeping);
        drop(progress);
        for uid in keeping {
            let mut shard = self.rows.write(&uid);
            let Some(entry) = shard.get_mut(&uid) else {
                continue;
            };
            // A later publish may be under way, which takes care of what it leaves behind.
            if entry.is_past(whole) {
                let former = entry.before.take();
                if entry.row.is_none() {
                    shard.remove(&uid);
                }
                drop(shard);
                drop(former);
            }
        }
    }

    /// Finds a resource: by name only a live one, by uid also one whose delete is unfinished.
    pub(crate) fn get(&self, target: &Target) -> Result<Resource, Refusal> {
        match target {
            Target::Uid(uid) => self
                .get_uid(*uid)
                .ok_or_else(|| Refusal::Unknown(uid.to_string())),
            Target::Key(key) => self.get_key(key).ok_or_else(|| Refusal::Unknown(key.to_string())),
            Target::Name(name) => self.get_name(name),
        }
    }

    fn get_uid(&self, uid: Uid) -> Option<Resource> {
        self.rows.read(&uid).get(&uid)?.read()
    }

    fn get_key(&self, key: &Key) -> Option<Resource> {
        loop {
            let uid = *self.names.read(key).get(key)?;
            let found = self.rows.read(&uid).get(&uid).and_then(|entry| entry.under(key));
            if found.is_some() {
                return found;
            }
            // The name was given to another one between the two looks.
            spin_loop();
        }
    }

    fn get_name(&self, name: &Name) -> Result<Resource, Refusal> {
        // Who finds one waits for nobody.
        self.look_everywhere(name).or_else(|_| {
            let _still = self.moving.read().unpoisoned();
            self.look_everywhere(name)
        })
    }

    fn look_everywhere(&self, name: &Name) -> Result<Resource, Refusal> {
        let kinds: Vec<Kind> = self.kinds.read().unpoisoned().keys().cloned().collect();
        let keys = kinds.into_iter().map(|kind| Key {
            kind,
            name: name.clone(),
        });
        let mut found: Vec<Resource> = keys.filter_map(|key| self.get_key(&key)).collect();
        match (found.pop(), found.is_empty()) {
            (None, _) => Err(Refusal::Unknown(name.to_string())),
            (Some(only), true) => Ok(only),
            (Some(last), false) => {
                found.push(last);
                Err(Refusal::Ambiguous {
                    name: name.to_string(),
                    candidates: found.iter().map(|resource| resource.key()).collect(),
                })
            }
        }
    }

    /// Calls a function for every resource, with its status and the time since which that holds.
    pub(crate) fn each(&self, mut look: impl FnMut(&Row, &Status, Timestamp)) {
        for shard in self.rows.iter() {
            for entry in shard.read().unpoisoned().values() {
                if let Some(row) = &entry.row {
                    look(row, entry.status(), entry.stands_since());
                }
            }
        }
    }

    /// Returns the rows changed after a revision, in no particular order, all as of one later revision.
    pub(crate) fn changed_since(&self, from: Revision) -> (Revision, Vec<Arc<Row>>) {
        let (revision, list) = self.collect(|row| row.revision > from);
        (revision, list.into_iter().map(|resource| resource.row).collect())
    }

    /// Returns the accepted resources at one revision, in order of kind, name and uid.
    pub(crate) fn list(&self, keep: impl Fn(&Row) -> bool) -> (Revision, Vec<Resource>) {
        let (revision, mut list) = self.collect(keep);
        list.sort_by(|a, b| {
            (&a.row.kind, &a.row.name, a.row.uid).cmp(&(&b.row.kind, &b.row.name, b.row.uid))
        });
        (revision, list)
    }

    fn collect(&self, keep: impl Fn(&Row) -> bool) -> (Revision, Vec<Resource>) {
        let (whole, revision) = {
            let mut progress = self.progress.lock().unpoisoned();
            progress.listings += 1;
            (progress.whole, progress.revision)
        };
        let mut list = Vec::new();
        for shard in self.rows.iter() {
            list.extend(
                shard
                    .read()
                    .unpoisoned()
                    .values()
                    .filter_map(|entry| entry.at(whole, &keep)),
            );
        }
        let mut progress = self.progress.lock().unpoisoned();
        progress.listings -= 1;
        self.forget_former(progress);
        (revision, list)
    }
}

fn is_live(row: &Row) -> bool {
    !row.intents.is_deleted()
}

/// Returns true if both rows are found under the same key.
fn stays(old: &Row, new: &Row) -> bool {
    is_live(old) == is_live(new) && old.name.same_case(&new.name)
}

#[cfg(test)]
pub(crate) mod tests;
