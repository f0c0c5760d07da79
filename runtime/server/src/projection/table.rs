//! The table of one instance's resources and their health, updated at a cost that grows with the affected resources
//! only.
//!
//! Invariants:
//! 1. The health of each resource, its root causes included, is that of a judgement of all resources from scratch.
//! 2. `changed` has each resource once, under the number of its last change; numbers only rise.
//! 3. `due` has each resource whose health or document time alone changes, under the next moment at which time does so.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::{Arc, OnceLock};

use watershed_api::documents::{Diagnostic, ResourceDocument, Work};
use watershed_core::{Key, Timestamp, Uid};

use super::due;
use crate::report::copies::Copies;
use crate::report::health::{Causes, Judge, ResourceHealth, is_kept_back};
use crate::report::kinds::managed::Parts;
use crate::report::kinds::programs::show_copies;
use crate::report::{Entry, Hidden, kinds, resource};

/// Number of visibilities, for each of which a document is cached.
const VISIBILITIES: usize = 4;
/// The most removals that are kept for readers that resume. A reader that missed more must list again.
const REMOVALS: usize = 10_000;

/// A resource with its health and change numbers.
pub(crate) struct Slot {
    /// The resource's row and status.
    pub(crate) entry: Entry,
    /// The resource's health, with the resources that block it.
    pub(crate) standing: ResourceHealth,
    /// Root causes among upstream resources; none if they were not needed.
    causes: Option<Causes>,
    /// Number of the resource's last change.
    pub(crate) changed: u64,
    /// Number of the last change that affects more than the phase.
    pub(crate) document_changed: u64,
    /// Next time at which the health or document changes by time alone; none if it never does.
    due: Option<Timestamp>,
    /// The JSON document for each visibility, written at its first use.
    bytes: [OnceLock<Arc<[u8]>>; VISIBILITIES],
}

/// A removed name, for readers that resume.
#[derive(Debug, Clone)]
pub(crate) struct Gone {
    /// Number of the change that removed the name.
    pub(crate) changed: u64,
    /// Resource that had the name.
    pub(crate) uid: Uid,
    /// The removed kind and name.
    pub(crate) key: Key,
}

/// All resources of an instance, indexed by name, refs, owner and change.
#[derive(Default)]
pub(crate) struct Table {
    slots: HashMap<Uid, Slot>,
    /// All resources by kind and name. A resource being deleted may share its name with a live one.
    order: BTreeSet<(Key, Uid)>,
    live: HashMap<Key, Uid>,
    /// Resources with a ref to a name, by that name, which may not exist.
    readers: HashMap<Key, BTreeSet<Uid>>,
    owned: HashMap<Uid, BTreeSet<Uid>>,
    /// Findings of the last parse, by the resource that each is about.
    findings: HashMap<Key, Vec<Diagnostic>>,
    due: BTreeSet<(Timestamp, Uid)>,
    changed: BTreeMap<u64, Uid>,
    gone: VecDeque<Gone>,
    /// Number of the latest removal that is no longer kept.
    forgotten: u64,
    last: u64,
}

impl Table {
    /// Returns the number of the last change.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Returns the live resource with a key, or else a deleted one that is not gone yet.
    pub(crate) fn find(&self, key: &Key) -> Option<&Slot> {
        let being_deleted = || {
            let mut same = self.order.range((key.clone(), Uid(uuid::Uuid::nil()))..);
            same.next().filter(|(other, _)| other == key).map(|(_, uid)| uid)
        };
        self.slots.get(self.live.get(key).or_else(being_deleted)?)
    }

    /// Returns all resources after a position, ordered by kind and name.
    pub(crate) fn after(&self, key: Option<&(Key, Uid)>) -> impl Iterator<Item = (&(Key, Uid), &Slot)> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = key.map_or(Unbounded, |key| Excluded(key.clone()));
        let range = self.order.range((from, Unbounded));
        range.filter_map(|place| Some((place, self.slots.get(&place.1)?)))
    }

    /// Returns the resources changed after a number, the earliest change first; none if removals since then are no
    /// longer kept.
    pub(crate) fn changed_after(&self, number: u64) -> Option<impl Iterator<Item = &Slot>> {
        let changed = self.changed.range(number.saturating_add(1)..);
        let slots = changed.filter_map(|(_, uid)| self.slots.get(uid));
        (number >= self.forgotten && number <= self.last).then_some(slots)
    }

    /// Returns the names that were removed after a change number.
    pub(crate) fn gone_after(&self, number: u64) -> impl Iterator<Item = &Gone> {
        let known = self.gone.partition_point(|gone| gone.changed <= number);
        self.gone.range(known..)
    }

    /// Returns the rows and statuses of all resources, in the order of a listing.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let slots = self.order.iter().filter_map(|(_, uid)| self.slots.get(uid));
        slots.map(|slot| slot.entry.clone()).collect()
    }

    /// Returns the next time at which a resource changes by time alone.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Updates resources; an absent entry removes its resource. The cost grows with the number of dependents.
    pub(crate) fn apply(&mut self, now: Timestamp, changes: impl IntoIterator<Item = (Uid, Option<Entry>)>) {
        let mut touched = Touched::default();
        for (uid, entry) in changes {
            match entry {
                Some(entry) => self.put(uid, entry, &mut touched),
                None => self.remove(uid, &mut touched),
            }
        }
        self.settle(now, touched);
    }

    /// Reevaluates the resources whose health or document depends on the time and is due.
    pub(crate) fn pass_time(&mut self, now: Timestamp) {
        let mut touched = Touched::default();
        while let Some((at, uid)) = self.due.first().copied()
            && at <= now
        {
            self.due.remove(&(at, uid));
            touched.own.insert(uid);
            touched.documents.insert(uid);
        }
        if !touched.own.is_empty() {
            self.settle(now, touched);
        }
    }

    fn put(&mut self, uid: Uid, entry: Entry, touched: &mut Touched) {
        let key = entry.row.key();
        let is_same_row = self
            .slots
            .get(&uid)
            .is_some_and(|slot| Arc::ptr_eq(&slot.entry.row, &entry.row));
        if !is_same_row {
            let former = self.slots.get(&uid).map(|slot| slot.entry.row.key());
            self.forget_links(uid, touched);
            if let Some(former) = former.filter(|former| *former != key) {
                self.note_gone(uid, former, touched);
            }
            self.learn_links(uid, &entry);
            touched.documents.insert(uid);
            self.learn_findings(&entry, touched);
        }
        touched.own.insert(uid);
        touched.keys.insert(key);
        touched.owners.extend(entry.row.owner);
        match self.slots.get_mut(&uid) {
            Some(slot) => slot.entry = entry,
            None => drop(self.slots.insert(uid, Slot::new(entry))),
        }
    }

    fn remove(&mut self, uid: Uid, touched: &mut Touched) {
        self.forget_links(uid, touched);
        let Some(slot) = self.slots.remove(&uid) else {
            return;
        };
        self.changed.remove(&slot.changed);
        if let Some(at) = slot.due {
            self.due.remove(&(at, uid));
        }
        let key = slot.entry.row.key();
        touched.keys.insert(key.clone());
        self.note_gone(uid, key, touched);
    }

    /// Records the removal of a name. A live resource that still has the name, beside a deleted one, is marked as
    /// changed.
    fn note_gone(&mut self, uid: Uid, key: Key, touched: &mut Touched) {
        touched.documents.extend(self.live.get(&key));
        self.last += 1;
        self.gone.push_back(Gone {
            changed: self.last,
            uid,
            key,
        });
        if self.gone.len() > REMOVALS
            && let Some(oldest) = self.gone.pop_front()
        {
            self.forgotten = oldest.changed;
        }
    }

    /// Adds a row to the indexes.
    fn learn_links(&mut self, uid: Uid, entry: &Entry) {
        let row = &entry.row;
        self.order.insert((row.key(), uid));
        if !row.intents.is_deleted() {
            self.live.insert(row.key(), uid);
        }
        for to in row.refs.iter() {
            self.readers.entry(to.key()).or_default().insert(uid);
        }
        if let Some(owner) = row.owner {
            self.owned.entry(owner).or_default().insert(uid);
        }
    }

    /// Removes the former row of a resource from the indexes.
    fn forget_links(&mut self, uid: Uid, touched: &mut Touched) {
        let Some(slot) = self.slots.get(&uid) else { return };
        let row = Arc::clone(&slot.entry.row);
        let key = row.key();
        self.order.remove(&(key.clone(), uid));
        if self.live.get(&key) == Some(&uid) {
            self.live.remove(&key);
        }
        for to in row.refs.iter() {
            take(&mut self.readers, &to.key(), uid);
        }
        if let Some(owner) = row.owner {
            take(&mut self.owned, &owner, uid);
            touched.owners.insert(owner);
        }
        touched.keys.insert(key);
    }

    /// Replaces the findings of the last parse, and marks the resources whose findings differ.
    fn learn_findings(&mut self, entry: &Entry, touched: &mut Touched) {
        let Some(found) = kinds::findings(&entry.row) else {
            return;
        };
        let mut findings: HashMap<Key, Vec<Diagnostic>> = HashMap::new();
        for finding in found {
            if let Some(about) = &finding.resource {
                let key = Key::new(about.kind.as_str(), about.name.as_str());
                findings.entry(key).or_default().push(finding);
            }
        }
        let former = std::mem::replace(&mut self.findings, findings);
        let keys: HashSet<&Key> = former.keys().chain(self.findings.keys()).collect();
        let differ = keys
            .into_iter()
            .filter(|key| former.get(key) != self.findings.get(key));
        touched
            .documents
            .extend(differ.filter_map(|key| self.live.get(key)));
    }

    /// Reevaluates the health of all affected resources, and numbers the changes.
    fn settle(&mut self, now: Timestamp, mut touched: Touched) {
        self.touch_owners(&mut touched);
        let affected = self.affected(&touched);
        let judged = self.judge(now, &affected);
        for (uid, standing, causes) in judged {
            let is_own = touched.own.contains(&uid);
            let Some(slot) = self.slots.get_mut(&uid) else {
                continue;
            };
            let is_other =
                slot.standing.health != standing.health || slot.standing.blocked_by != standing.blocked_by;
            slot.standing = standing;
            slot.causes = causes;
            if is_other {
                touched.documents.insert(uid);
            } else if !is_own && !touched.documents.contains(&uid) {
                continue;
            }
            touched.own.insert(uid);
        }
        let own = std::mem::take(&mut touched.own);
        for uid in own
            .into_iter()
            .chain(touched.documents.iter().copied())
            .collect::<BTreeSet<_>>()
        {
            self.number(uid, touched.documents.contains(&uid));
            self.note_due(now, uid);
        }
    }

    /// Marks all transitive owners as touched, since their documents describe their parts.
    fn touch_owners(&self, touched: &mut Touched) {
        let mut owners: Vec<Uid> = touched.owners.iter().copied().collect();
        let mut seen = BTreeSet::new();
        while let Some(owner) = owners.pop() {
            if seen.insert(owner)
                && let Some(slot) = self.slots.get(&owner)
            {
                touched.own.insert(owner);
                touched.documents.insert(owner);
                owners.extend(slot.entry.row.owner);
            }
        }
    }

    /// Returns the resources whose health may differ: touched ones, their readers, and further dependents that are
    /// blocked.
    fn affected(&self, touched: &Touched) -> BTreeSet<Uid> {
        let mut affected: BTreeSet<Uid> = touched.own.clone();
        let mut next: Vec<Key> = touched.keys.iter().cloned().collect();
        let own = touched.own.iter().filter_map(|uid| self.slots.get(uid));
        next.extend(own.map(|slot| slot.entry.row.key()));
        for key in &next {
            affected.extend(self.readers.get(key).into_iter().flatten());
        }
        let mut seen: HashSet<Key> = HashSet::new();
        while let Some(key) = next.pop() {
            if !seen.insert(key.clone()) {
                continue;
            }
            for reader in self.readers.get(&key).into_iter().flatten() {
                if let Some(slot) = self.slots.get(reader).filter(|slot| is_kept_back(&slot.entry)) {
                    affected.insert(*reader);
                    next.push(slot.entry.row.key());
                }
            }
        }
        affected
    }

    fn judge(&self, now: Timestamp, affected: &BTreeSet<Uid>) -> Vec<(Uid, ResourceHealth, Option<Causes>)> {
        let live = |key: &Key| Some(&self.slots.get(self.live.get(key)?)?.entry);
        let kept = |uid| match affected.contains(&uid) {
            true => None,
            false => self.slots.get(&uid)?.causes.clone(),
        };
        let mut judge = Judge::new(now, live, kept);
        let slots = affected
            .iter()
            .filter_map(|uid| Some((*uid, self.slots.get(uid)?)));
        let standings: Vec<(Uid, ResourceHealth)> = slots
            .map(|(uid, slot)| (uid, judge.health(&slot.entry, self.trouble(uid, &slot.entry))))
            .collect();
        let with_causes = standings.into_iter();
        with_causes
            .map(|(uid, standing)| (uid, standing, judge.causes(uid)))
            .collect()
    }

    fn trouble(&self, uid: Uid, entry: &Entry) -> Option<watershed_workloads::service::Trouble> {
        let owned = self.owned_by(uid);
        Copies::of(&owned).trouble(&entry.row)
    }

    /// Returns a resource with everything that it owns, transitively.
    pub(crate) fn with_owned(&self, uid: Uid) -> BTreeSet<Uid> {
        let mut all = BTreeSet::new();
        let mut next = vec![uid];
        while let Some(uid) = next.pop() {
            if all.insert(uid) {
                next.extend(self.owned.get(&uid).into_iter().flatten());
            }
        }
        all
    }

    /// Returns the resources whose owner is `uid`.
    fn owned_by(&self, uid: Uid) -> Vec<Entry> {
        let owned = self.owned.get(&uid).into_iter().flatten();
        let owned = owned.filter_map(|uid| self.slots.get(uid));
        owned.map(|slot| slot.entry.clone()).collect()
    }

    /// Assigns the next change number to a resource.
    fn number(&mut self, uid: Uid, is_document: bool) {
        let Some(slot) = self.slots.get_mut(&uid) else {
            return;
        };
        self.last += 1;
        self.changed.remove(&slot.changed);
        self.changed.insert(self.last, uid);
        slot.changed = self.last;
        if is_document {
            slot.document_changed = self.last;
        }
        slot.bytes = Default::default();
    }

    fn note_due(&mut self, now: Timestamp, uid: Uid) {
        let Some(slot) = self.slots.get_mut(&uid) else {
            return;
        };
        if let Some(at) = slot.due.take() {
            self.due.remove(&(at, uid));
        }
        slot.due = due::next(&slot.entry.row, now);
        self.due.extend(slot.due.map(|at| (at, uid)));
    }

    /// Returns the JSON document of a resource for a visibility, calling `write` at the first use.
    pub(crate) fn bytes(
        &self,
        slot: &Slot,
        visibility: usize,
        write: impl FnOnce(ResourceDocument) -> Arc<[u8]>,
    ) -> Arc<[u8]> {
        let bytes = slot.bytes[visibility].get_or_init(|| write(self.document(slot)));
        Arc::clone(bytes)
    }

    /// Returns the current document of a resource.
    pub(crate) fn document(&self, slot: &Slot) -> ResourceDocument {
        let row = &slot.entry.row;
        let found = self.findings.get(&row.key()).cloned().unwrap_or_default();
        let findings: Vec<Diagnostic> = found.into_iter().chain(kinds::problems(row)).collect();
        let warnings = resource::warnings(&findings, row);
        let mut told = resource::document(row, &slot.standing, Work::None, warnings);
        resource::say_as_found(&mut told, &findings);
        let owned = self.owned_by(row.uid);
        show_copies(&Copies::of(&owned), &mut told.result, row);
        Parts::of(&owned).show_in(&mut told.result, row);
        told
    }

    /// Returns true if lists include the resource.
    pub(crate) fn is_listed(slot: &Slot, hidden: Hidden) -> bool {
        slot.entry.is_listed(hidden)
    }
}

impl Slot {
    /// Creates a slot whose health is not evaluated yet.
    fn new(entry: Entry) -> Self {
        Self {
            entry,
            standing: ResourceHealth::unknown(),
            causes: None,
            changed: 0,
            document_changed: 0,
            due: None,
            bytes: Default::default(),
        }
    }
}

/// The resources and names that a change has touched.
#[derive(Default)]
struct Touched {
    /// Resources that have changed.
    own: BTreeSet<Uid>,
    /// Current and former names of the changed resources.
    keys: BTreeSet<Key>,
    /// Owners of the changed resources.
    owners: BTreeSet<Uid>,
    /// Resources whose documents differ in more than the phase.
    documents: BTreeSet<Uid>,
}

fn take<K: std::hash::Hash + Eq>(index: &mut HashMap<K, BTreeSet<Uid>>, key: &K, uid: Uid) {
    if let Some(uids) = index.get_mut(key) {
        uids.remove(&uid);
        if uids.is_empty() {
            index.remove(key);
        }
    }
}

#[cfg(test)]
mod tests;
