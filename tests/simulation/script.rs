//! Random edits and calls, drawn from a small pool of names so that they meet often.

use std::time::Duration;

use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use uuid::Uuid;
use watershed_core::{
    Batch, Change, Edit, Expect, Key, Kind, Name, NewResource, Ref, Required, RetryPolicy, Target, Uid,
    Update,
};

use crate::model::Catalog;

pub(crate) const KINDS: [&str; 5] = ["plain", "changed", "brief", "first", "foreign"];
const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "A", "B"];

/// A policy for retries, of waits that end within a world's time.
pub(crate) fn policy(rng: &mut SmallRng) -> RetryPolicy {
    let seconds = Duration::from_secs;
    match rng.random_range(0..4) {
        0 => RetryPolicy::Never,
        _ => RetryPolicy::Backoff {
            base: seconds(rng.random_range(0..5)),
            cap: seconds(rng.random_range(1..9)),
            attempts: rng.random_range(0..5),
            reset_after: seconds(rng.random_range(0..4)),
        },
    }
}

/// The style of graphs and edits of a seed.
#[derive(Clone, Debug)]
pub(crate) struct Taste {
    pub(crate) kinds: usize,
    pub(crate) names: usize,
    pub(crate) refs: usize,
    pub(crate) odd_refs: bool,
    pub(crate) batch: usize,
    pub(crate) forward_only: bool,
    /// Timed requests that never cease, and little else.
    pub(crate) steady: bool,
    /// Some runs do nothing on purpose. Decided without a draw, so that the other worlds stay as they were when a seed
    /// of theirs was kept.
    pub(crate) passes_over: bool,
    /// Resources of one kind are looked at without a pause. Decided in the same way.
    pub(crate) hasty: bool,
    /// Some runs leave their resource unready, and owners are asked for what happens to what they own. Decided in the
    /// same way.
    pub(crate) owners_look: bool,
}

impl Taste {
    pub(crate) fn draw(seed: u64, rng: &mut SmallRng) -> Self {
        Self {
            passes_over: seed % 5 == 1,
            hasty: seed % 29 == 4,
            owners_look: matches!(seed % 13, 0 | 1 | 3 | 11 | 12),
            kinds: rng.random_range(1..=KINDS.len()),
            names: rng.random_range(2..=NAMES.len()),
            refs: rng.random_range(0..=3),
            odd_refs: rng.random_bool(0.3),
            batch: rng.random_range(1..=6),
            forward_only: rng.random_bool(0.5),
            steady: rng.random_bool(0.25),
        }
    }

    pub(crate) fn key(&self, rng: &mut SmallRng) -> Key {
        Key::new(
            KINDS[rng.random_range(0..self.kinds)],
            NAMES[rng.random_range(0..self.names)],
        )
    }

    fn refs(&self, rng: &mut SmallRng, of: &Key) -> Vec<Ref> {
        let count = rng.random_range(0..=self.refs);
        let mut refs = Vec::new();
        for _ in 0..count {
            let key = self.key(rng);
            if self.forward_only && key >= *of {
                continue;
            }
            let required = match rng.random_range(0..10) {
                0 if self.odd_refs => Required::Exists,
                1 if self.odd_refs => Required::Ready,
                _ => Required::Completed,
            };
            refs.push(Ref {
                kind: key.kind,
                name: key.name,
                required,
            });
        }
        refs
    }

    fn spec(&self, rng: &mut SmallRng) -> (std::sync::Arc<[u8]>, u32) {
        ([rng.random_range(0..4_u8)].as_slice().into(), 1)
    }

    fn target(&self, rng: &mut SmallRng, catalog: &Catalog) -> Target {
        let uids: Vec<Uid> = catalog.items.keys().copied().collect();
        match uids.choose(rng) {
            Some(uid) if rng.random_bool(0.3) => Target::Uid(*uid),
            Some(uid) if rng.random_bool(0.8) => Target::Key(catalog.items[uid].key.clone()),
            _ => Target::Key(self.key(rng)),
        }
    }

    /// Someone to ask for, mostly there.
    pub(crate) fn live_target(&self, rng: &mut SmallRng, catalog: &Catalog) -> Target {
        self.target(rng, catalog)
    }

    fn new_resource(&self, rng: &mut SmallRng, catalog: &Catalog) -> NewResource {
        let key = self.key(rng);
        let refs = self.refs(rng, &key);
        let uid = Uid(Uuid::from_u128(rng.random()));
        let (spec, _) = self.spec(rng);
        let mut new = NewResource::new(uid, key.kind, key.name, spec).with_refs(refs);
        new.hidden = rng.random_bool(0.1);
        new.retry = rng.random_bool(0.3).then(|| policy(rng));
        if rng.random_bool(0.2) {
            new.owner = catalog
                .items
                .keys()
                .copied()
                .collect::<Vec<_>>()
                .choose(rng)
                .copied();
        }
        new
    }

    pub(crate) fn batch(&self, rng: &mut SmallRng, catalog: &Catalog) -> Batch {
        if rng.random_bool(0.1) {
            return self.swap(rng, catalog);
        }
        let count = rng.random_range(1..=self.batch);
        let mut edits = Vec::new();
        for _ in 0..count {
            self.edit(rng, catalog, &mut edits);
        }
        Batch { edits }
    }

    fn edit(&self, rng: &mut SmallRng, catalog: &Catalog, edits: &mut Vec<Edit>) {
        let target = self.target(rng, catalog);
        let mut edit = match rng.random_range(0..20) {
            0..6 => Edit::create(self.new_resource(rng, catalog)),
            6..9 => Edit::update(
                target,
                Update {
                    spec: Some(self.spec(rng)),
                    ..Update::default()
                },
            ),
            9..12 => {
                let of = self.key(rng);
                let refs = self.refs(rng, &of).into();
                Edit::update(
                    target,
                    Update {
                        refs: Some(refs),
                        ..Update::default()
                    },
                )
            }
            12 if rng.random_bool(0.4) => Edit::update(
                target,
                Update {
                    retry: Some(rng.random_bool(0.7).then(|| policy(rng))),
                    ..Update::default()
                },
            ),
            12 if rng.random_bool(0.5) => Edit::update(
                target,
                Update {
                    owner: Some(catalog.items.keys().next().copied()),
                    ..Update::default()
                },
            ),
            12 => Edit::update(
                target,
                Update {
                    hidden: Some(rng.random_bool(0.5)),
                    ..Update::default()
                },
            ),
            13..16 => {
                let name = NAMES[rng.random_range(0..self.names)];
                Edit {
                    target,
                    expect: Expect::default(),
                    change: Change::Rename(Name::from(name)),
                    origin: None,
                }
            }
            16..19 => Edit::delete(target),
            _ => Edit::force_delete(target),
        };
        if rng.random_bool(0.05) {
            edit.expect.spec_version = Some(watershed_core::SpecVersion(rng.random_range(1..4)));
        }
        // Delete and create of one name are one full update.
        if let (Change::Delete, Target::Key(key), true) = (&edit.change, &edit.target, rng.random_bool(0.4)) {
            let mut new = self.new_resource(rng, catalog);
            (new.kind, new.name) = (key.kind.clone(), key.name.clone());
            edits.push(Edit::create(new));
        }
        edits.push(edit);
    }

    /// Names of one kind change places.
    fn swap(&self, rng: &mut SmallRng, catalog: &Catalog) -> Batch {
        let kind = Kind::new(KINDS[rng.random_range(0..self.kinds)]);
        let live = catalog
            .items
            .values()
            .filter(|item| !item.deleted && item.key.kind == kind);
        let keys: Vec<Key> = live.map(|item| item.key.clone()).collect();
        let edits = keys.iter().enumerate().map(|(index, key)| {
            let next = &keys[(index + 1) % keys.len()];
            Edit::rename(key.clone(), next.name.clone())
        });
        Batch {
            edits: edits.collect(),
        }
    }
}
