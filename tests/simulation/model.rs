//! The naive catalog: what edits mean, worked out from scratch with plain maps.
//!
//! Nothing here is shared with the core but its vocabulary. Sizes are small, so everything is recomputed.

use std::collections::{BTreeMap, BTreeSet};

use watershed_core::{
    Batch, Change, Edit, Key, Name, NewResource, Ref, Refreshes, Required, RetryPolicy, Row, SpecVersion,
    StateVersion, Target, Uid, Update,
};

/// One resource as the edits so far say that it is.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Item {
    pub(crate) key: Key,
    pub(crate) refs: Vec<Ref>,
    pub(crate) spec: Vec<u8>,
    pub(crate) hidden: bool,
    pub(crate) paused: bool,
    pub(crate) owner: Option<Uid>,
    /// Its own policy for retries.
    pub(crate) retry: Option<RetryPolicy>,
    pub(crate) spec_version: SpecVersion,
    pub(crate) state_version: StateVersion,
    pub(crate) state: Option<Vec<u8>>,
    pub(crate) refreshes: Refreshes,
    pub(crate) deleted: bool,
    /// Raised with every delete, so that the one deleted last is known.
    pub(crate) deleted_at: u64,
    /// Exact spellings, oldest first.
    pub(crate) former: Vec<Name>,
    /// True once an invocation has come back.
    pub(crate) ran: bool,
}

impl Item {
    fn new(new: &NewResource) -> Self {
        Self {
            key: Key {
                kind: new.kind.clone(),
                name: new.name.clone(),
            },
            refs: new.refs.to_vec(),
            spec: new.spec.to_vec(),
            hidden: new.hidden,
            paused: false,
            owner: new.owner,
            retry: new.retry,
            spec_version: SpecVersion(1),
            state_version: StateVersion(0),
            state: None,
            refreshes: Refreshes::default(),
            deleted: false,
            deleted_at: 0,
            former: Vec::new(),
            ran: false,
        }
    }

    pub(crate) fn from_row(row: &Row) -> Self {
        Self {
            key: row.key(),
            refs: row.refs.to_vec(),
            spec: row.spec.to_vec(),
            hidden: row.hidden,
            paused: row.paused,
            owner: row.owner,
            retry: row.retry.as_deref().copied(),
            spec_version: row.spec_version,
            state_version: row.state_version,
            state: row.state.as_ref().map(|state| state.to_vec()),
            refreshes: row.refreshes,
            deleted: row.intents.is_deleted(),
            deleted_at: 0,
            former: row.intents.former_names.to_vec(),
            ran: row.runs_total > 0,
        }
    }

    /// Returns true if something outside may be there because of the resource, though nobody here can run its kind.
    pub(crate) fn may_have_made(&self) -> bool {
        self.state.is_some() || self.ran
    }

    /// Every name that it has or has had since its last completed rename.
    pub(crate) fn names(&self) -> BTreeSet<Key> {
        let former = self.former.iter().map(|name| Key {
            kind: self.key.kind.clone(),
            name: name.clone(),
        });
        former.chain([self.key.clone()]).collect()
    }

    pub(crate) fn is_marked(&self) -> bool {
        self.deleted || !self.former.is_empty()
    }
}

/// The effects of a batch on scheduling.
#[derive(Default, Debug)]
pub(crate) struct Asked {
    /// Those whose spec, refs, name or life changed.
    pub(crate) edited: BTreeSet<Uid>,
    /// Those one of whose refs names something that appeared or went.
    pub(crate) ref_changed: BTreeSet<Uid>,
    /// Those whose policy for retries changed.
    pub(crate) repoliced: BTreeSet<Uid>,
    /// Those whose refs changed.
    pub(crate) rewired: BTreeSet<Uid>,
    pub(crate) deleted: BTreeSet<Uid>,
    pub(crate) renamed: BTreeSet<Uid>,
    /// No longer in the catalog.
    pub(crate) gone: BTreeSet<Uid>,
    /// Taken up again while their delete was unfinished.
    pub(crate) taken_up: BTreeSet<Uid>,
}

#[derive(Clone, Default, Debug)]
pub(crate) struct Catalog {
    pub(crate) items: BTreeMap<Uid, Item>,
    pub(crate) deletes: u64,
}

impl Catalog {
    pub(crate) fn live(&self, key: &Key) -> Option<Uid> {
        self.items
            .iter()
            .find(|(_, item)| !item.deleted && item.key == *key)
            .map(|(uid, _)| *uid)
    }

    fn deleted_last(&self, key: &Key) -> Option<Uid> {
        let deleted = self
            .items
            .iter()
            .filter(|(_, item)| item.deleted && item.key == *key);
        deleted
            .max_by_key(|(_, item)| item.deleted_at)
            .map(|(uid, _)| *uid)
    }

    pub(crate) fn is_live(&self, uid: Uid) -> bool {
        self.items.get(&uid).is_some_and(|item| !item.deleted)
    }

    pub(crate) fn parents(&self, uid: Uid) -> BTreeSet<Uid> {
        let Some(item) = self.items.get(&uid).filter(|item| !item.deleted) else {
            return BTreeSet::new();
        };
        let edges = item
            .refs
            .iter()
            .filter(|reference| reference.required != Required::Exists);
        edges
            .filter_map(|reference| self.live(&reference.key()))
            .collect()
    }

    /// All above, found by walking up.
    pub(crate) fn ancestors(&self, uid: Uid) -> BTreeSet<Uid> {
        let mut found = BTreeSet::new();
        let mut open: Vec<Uid> = self.parents(uid).into_iter().collect();
        while let Some(next) = open.pop() {
            if found.insert(next) {
                open.extend(self.parents(next));
            }
        }
        found
    }

    /// All below: those that have it above.
    pub(crate) fn descendants(&self, uid: Uid) -> BTreeSet<Uid> {
        self.items
            .keys()
            .copied()
            .filter(|other| self.ancestors(*other).contains(&uid))
            .collect()
    }

    pub(crate) fn on_cycle(&self, uid: Uid) -> bool {
        self.ancestors(uid).contains(&uid)
    }

    /// Whom a key in a call means.
    pub(crate) fn resolve(&self, target: &Target) -> Option<Uid> {
        match target {
            Target::Key(key) => self.live(key),
            Target::Uid(uid) => self.is_live(*uid).then_some(*uid),
            Target::Name(_) => None,
        }
    }

    fn resolve_edit(&self, edit: &Edit) -> Option<Uid> {
        let live = self.resolve(&edit.target);
        match (&edit.change, &edit.target) {
            (Change::Delete | Change::ForceDelete, Target::Key(key)) => {
                live.or_else(|| self.deleted_last(key))
            }
            (Change::Delete | Change::ForceDelete, Target::Uid(uid)) => {
                live.or_else(|| self.items.contains_key(uid).then_some(*uid))
            }
            _ => live,
        }
    }

    /// Applies a batch, or says that it must be refused. `by` is the resource whose invocation edits.
    pub(crate) fn apply(
        &mut self,
        batch: &Batch,
        by: Option<Uid>,
        unsupported: &dyn Fn(&Item) -> bool,
    ) -> Result<Asked, ()> {
        let cascade = self.cascade(batch)?;
        self.owners_are_there(batch)?;
        let mut told: BTreeMap<Uid, Vec<&Edit>> = BTreeMap::new();
        for edit in batch
            .edits
            .iter()
            .chain(&cascade)
            .filter(|edit| !matches!(edit.change, Change::Create(_)))
        {
            let uid = self.resolve_edit(edit).ok_or(())?;
            self.expect(edit, uid)?;
            told.entry(uid).or_default().push(edit);
        }
        let deletes = |uid: &Uid, told: &BTreeMap<Uid, Vec<&Edit>>| {
            told.get(uid)
                .is_some_and(|edits| edits.iter().any(|edit| edit.change == Change::Delete))
        };
        let forces = |uid: &Uid, told: &BTreeMap<Uid, Vec<&Edit>>| {
            told.get(uid)
                .is_some_and(|edits| edits.iter().any(|edit| edit.change == Change::ForceDelete))
        };
        let mut created: Vec<&NewResource> = Vec::new();
        let mut replaced: BTreeMap<Uid, &NewResource> = BTreeMap::new();
        for edit in &batch.edits {
            let Change::Create(new) = &edit.change else {
                continue;
            };
            let key = Key {
                kind: new.kind.clone(),
                name: new.name.clone(),
            };
            let again = match self.live(&key) {
                Some(live) => deletes(&live, &told).then_some(live),
                None => self.deleted_last(&key).filter(|uid| !forces(uid, &told)),
            };
            match again {
                Some(uid) => {
                    self.expect(edit, uid)?;
                    if replaced.insert(uid, new).is_some_and(|other| *other != **new) {
                        return Err(());
                    }
                }
                None if created.iter().any(|other| **other == **new) => {}
                None if edit.expect != watershed_core::Expect::default() => return Err(()),
                None => created.push(new),
            }
        }
        // One that goes with an owner that it deletes does not delete itself.
        let names_itself = |by: &Uid| {
            let deletes = batch.edits.iter().filter(|edit| edit.change == Change::Delete);
            deletes
                .into_iter()
                .any(|edit| self.resolve_edit(edit) == Some(*by))
        };
        let by = by.filter(names_itself);
        let mut after = self.clone();
        let mut asked = Asked::default();
        for (uid, edits) in &told {
            if !replaced.contains_key(uid) || edits.iter().any(|edit| edit.change != Change::Delete) {
                after.tell(*uid, edits, by, unsupported, &mut asked)?;
            }
        }
        for (uid, new) in &replaced {
            after.replace(*uid, new, unsupported, &mut asked);
        }
        for new in created {
            if after.items.contains_key(&new.uid) || self.items.contains_key(&new.uid) {
                return Err(());
            }
            after.items.insert(new.uid, Item::new(new));
            asked.edited.insert(new.uid);
        }
        after.names_are_unique()?;
        for (uid, item) in after.items.iter().filter(|(_, item)| !item.deleted) {
            let moved = |reference: &Ref| self.live(&reference.key()) != after.live(&reference.key());
            if item.refs.iter().any(moved) {
                asked.ref_changed.insert(*uid);
            }
        }
        *self = after;
        Ok(asked)
    }

    /// Owners that a batch names are resources, and stay for as long as their deletes take.
    fn owners_are_there(&self, batch: &Batch) -> Result<(), ()> {
        let forced = batch
            .edits
            .iter()
            .filter(|edit| edit.change == Change::ForceDelete);
        let forced: Vec<Option<Uid>> = forced.map(|edit| self.resolve_edit(edit)).collect();
        for edit in &batch.edits {
            let (owner, of) = match &edit.change {
                Change::Create(new) => {
                    let again = self.live(&new.key()).or_else(|| self.deleted_last(&new.key()));
                    (new.owner, again.filter(|uid| !forced.contains(&Some(*uid))))
                }
                Change::Update(update) => (update.owner.flatten(), self.resolve_edit(edit)),
                _ => (None, None),
            };
            let Some(owner) = owner else { continue };
            let may = match self.items.contains_key(&owner) {
                true => !forced.contains(&Some(owner)),
                // What is stored already is left alone.
                false => of.is_some_and(|uid| self.items[&uid].owner == Some(owner)),
            };
            if !may {
                return Err(());
            }
        }
        Ok(())
    }

    /// C15: the deletes that those of a batch bring with them.
    fn cascade(&self, batch: &Batch) -> Result<Vec<Edit>, ()> {
        let is_created = |item: &Item| {
            batch.edits.iter().any(|edit| match &edit.change {
                Change::Create(new) => item.key.kind == new.kind && item.key.name == new.name,
                _ => false,
            })
        };
        let is_handed_over = |uid: Uid, item: &Item| {
            batch.edits.iter().any(|edit| match &edit.change {
                Change::Update(update) => {
                    self.resolve_edit(edit) == Some(uid)
                        && update.owner.is_some_and(|owner| owner != item.owner)
                }
                _ => false,
            })
        };
        let mut deleted: BTreeSet<Uid> = BTreeSet::new();
        for edit in &batch.edits {
            if matches!(edit.change, Change::Delete | Change::ForceDelete) {
                deleted.insert(self.resolve_edit(edit).ok_or(())?);
            }
        }
        let by_hand = deleted.clone();
        loop {
            let goes = |owner: &Uid| deleted.contains(owner) && !is_created(&self.items[owner]);
            let owned = self.items.iter().find(|(uid, item)| {
                !item.deleted
                    && !deleted.contains(*uid)
                    && item
                        .owner
                        .is_some_and(|owner| self.items.contains_key(&owner) && goes(&owner))
                    && !is_handed_over(**uid, item)
            });
            let Some((uid, _)) = owned else { break };
            deleted.insert(*uid);
        }
        let brought = deleted.difference(&by_hand);
        Ok(brought.map(|uid| Edit::delete(Target::Uid(*uid))).collect())
    }

    fn expect(&self, edit: &Edit, uid: Uid) -> Result<(), ()> {
        let stale = edit.expect.uid.is_some_and(|expected| expected != uid)
            || edit
                .expect
                .spec_version
                .is_some_and(|expected| expected != self.items[&uid].spec_version);
        if stale { Err(()) } else { Ok(()) }
    }

    fn tell(
        &mut self,
        uid: Uid,
        edits: &[&Edit],
        by: Option<Uid>,
        unsupported: &dyn Fn(&Item) -> bool,
        asked: &mut Asked,
    ) -> Result<(), ()> {
        let mut kinds: BTreeSet<u8> = BTreeSet::new();
        for (index, edit) in edits.iter().enumerate() {
            kinds.insert(match edit.change {
                Change::Delete => 0,
                Change::ForceDelete => 1,
                _ => 2,
            });
            if edits[..index]
                .iter()
                .any(|other| contradict(&other.change, &edit.change))
            {
                return Err(());
            }
        }
        if kinds.len() > 1 {
            return Err(());
        }
        let before = self.items[&uid].clone();
        if kinds.contains(&0) && before.deleted {
            return Ok(()); // it is being deleted already
        }
        if kinds.contains(&2) {
            for edit in edits {
                self.change(uid, &edit.change, unsupported);
            }
            self.bump(uid, &before, asked);
            return Ok(());
        }
        let at_once = kinds.contains(&1) || by == Some(uid);
        if at_once || (unsupported(&before) && !before.may_have_made()) {
            self.items.remove(&uid);
            asked.gone.insert(uid);
        } else {
            self.deletes += 1;
            let at = self.deletes;
            if let Some(item) = self.items.get_mut(&uid) {
                (item.deleted, item.deleted_at) = (true, at);
                item.spec_version = item.spec_version.next();
            }
            asked.deleted.insert(uid);
        }
        Ok(())
    }

    fn change(&mut self, uid: Uid, change: &Change, unsupported: &dyn Fn(&Item) -> bool) {
        let Some(item) = self.items.get_mut(&uid) else {
            return;
        };
        match change {
            Change::Update(Update {
                spec,
                refs,
                hidden,
                owner,
                retry,
                ..
            }) => {
                if let Some((spec, _)) = spec {
                    item.spec = spec.to_vec();
                }
                if let Some(refs) = refs {
                    item.refs = refs.to_vec();
                }
                item.hidden = hidden.unwrap_or(item.hidden);
                item.owner = owner.unwrap_or(item.owner);
                item.retry = retry.unwrap_or(item.retry);
            }
            Change::Rename(name) if !name.same_case(&item.key.name) => {
                let keeps = !unsupported(item) || item.may_have_made();
                let old = std::mem::replace(&mut item.key.name, name.clone());
                if keeps && !item.former.iter().any(|former| former.same_case(&old)) {
                    item.former.push(old);
                }
            }
            _ => {}
        }
    }

    fn replace(
        &mut self,
        uid: Uid,
        new: &NewResource,
        unsupported: &dyn Fn(&Item) -> bool,
        asked: &mut Asked,
    ) {
        let before = self.items[&uid].clone();
        self.change(uid, &Change::Rename(new.name.clone()), unsupported);
        if let Some(item) = self.items.get_mut(&uid) {
            item.refs = new.refs.to_vec();
            item.spec = new.spec.to_vec();
            item.hidden = new.hidden;
            item.owner = new.owner;
            item.retry = new.retry;
            item.deleted = false;
        }
        if before.deleted {
            asked.taken_up.insert(uid);
            asked.edited.insert(uid);
            if let Some(item) = self.items.get_mut(&uid) {
                item.spec_version = before.spec_version.next();
            }
            if !self.items[&uid].key.name.same_case(&before.key.name) {
                asked.renamed.insert(uid);
            }
        } else {
            self.bump(uid, &before, asked);
        }
    }

    fn bump(&mut self, uid: Uid, before: &Item, asked: &mut Asked) {
        let Some(item) = self.items.get_mut(&uid) else {
            return;
        };
        let renamed = !item.key.name.same_case(&before.key.name);
        if renamed || item.spec != before.spec || item.refs != before.refs {
            item.spec_version = before.spec_version.next();
            asked.edited.insert(uid);
        }
        if item.retry != before.retry {
            asked.repoliced.insert(uid);
        }
        if item.refs != before.refs {
            asked.rewired.insert(uid);
        }
        if renamed {
            asked.renamed.insert(uid);
        }
    }

    fn names_are_unique(&self) -> Result<(), ()> {
        let mut seen = BTreeSet::new();
        let live = self.items.values().filter(|item| !item.deleted);
        if live.into_iter().all(|item| seen.insert(item.key.clone())) {
            Ok(())
        } else {
            Err(())
        }
    }
}

/// Returns true if two edits of one resource say different things of it.
fn contradict(one: &Change, other: &Change) -> bool {
    fn differ<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
        one.is_some() && other.is_some() && one != other
    }
    match (one, other) {
        (Change::Rename(one), Change::Rename(other)) => !one.same_case(other),
        (Change::Update(one), Change::Update(other)) => {
            differ(&one.spec, &other.spec)
                || differ(&one.refs, &other.refs)
                || differ(&one.hidden, &other.hidden)
                || differ(&one.owner, &other.owner)
                || differ(&one.retry, &other.retry)
        }
        _ => false,
    }
}
