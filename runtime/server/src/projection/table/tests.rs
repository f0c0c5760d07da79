//! Tests of the table: after random changes, it equals a table evaluated from scratch.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use watershed_core::{Ref, Revision, Row, Settled, Stage, StateVersion, Status, Timestamp, Uid};

use super::Table;
use crate::report::fixture::{blocked, entry, failed, model};
use crate::report::health::HealthReport;
use crate::report::{Entry, Hidden};

const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

/// A catalog that changes at random, and a table that is told of each change.
struct World {
    random: SmallRng,
    entries: BTreeMap<Uid, Entry>,
    table: Table,
    revision: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        Self {
            random: SmallRng::seed_from_u64(seed),
            entries: BTreeMap::new(),
            table: Table::default(),
            revision: 0,
        }
    }

    /// Makes a row of a name: its refs, its error, its state and its status are drawn.
    fn draw(&mut self, name: &str) -> Entry {
        let number = self.random.random_range(0..3);
        // Refs lead to earlier names, so there are no cycles; some lead to what is not there.
        let above: Vec<&str> = NAMES.iter().copied().filter(|other| *other < name).collect();
        let refs: Vec<&str> = above.choose_multiple(&mut self.random, number).copied().collect();
        let mut row = model(name, &refs);
        row = match (self.random.random_range(0..4), refs.first()) {
            (0, _) => failed(row),
            (1 | 2, Some(by)) => blocked(row, by),
            _ => row,
        };
        self.revision += 1;
        let row = Row {
            revision: Revision(self.revision),
            state_version: StateVersion(self.random.random_range(0..3)),
            unready: self.random.random_bool(0.1).then(|| Arc::from("not yet")),
            paused: self.random.random_bool(0.05),
            ..row
        };
        let waits = refs.first().filter(|_| self.random.random_bool(0.2));
        match waits {
            Some(by) => Entry {
                row: Arc::new(row),
                status: Status {
                    stage: Stage::Settled(Settled::WaitingForRef(Ref::completed("model", *by))),
                    reason: None,
                    progress: None,
                },
            },
            None => entry(row),
        }
    }

    /// Returns the resource that has a name.
    fn holder(&self, name: &str) -> Option<Uid> {
        let mut entries = self.entries.values();
        entries
            .find(|entry| entry.row.name.as_str() == name)
            .map(|entry| entry.row.uid)
    }

    fn step(&mut self) {
        let number = self.random.random_range(1..4);
        let mut changes = Vec::new();
        for _ in 0..number {
            let Some(name) = NAMES.choose(&mut self.random) else {
                continue;
            };
            let drawn = self.draw(name);
            let uid = self.holder(name).unwrap_or(drawn.row.uid);
            let is_elsewhere = |entry: &Entry| entry.row.name.as_str() != *name;
            if self.entries.get(&uid).is_some_and(is_elsewhere) {
                // Its own name was given away.
                continue;
            }
            let row = Row {
                uid,
                ..Row::clone(&drawn.row)
            };
            let drawn = Entry {
                row: Arc::new(row),
                ..drawn
            };
            let known: Vec<Uid> = self.entries.keys().copied().collect();
            if self.random.random_bool(0.15)
                && !self.entries.contains_key(&uid)
                && let Some(renamed) = known.choose(&mut self.random)
            {
                // One that is there takes a name that is free.
                let row = Row {
                    uid: *renamed,
                    ..Row::clone(&drawn.row)
                };
                let entry = Entry {
                    row: Arc::new(row),
                    ..drawn
                };
                self.entries.insert(*renamed, entry.clone());
                changes.push((*renamed, Some(entry)));
            } else if self.random.random_bool(0.2) {
                self.entries.remove(&uid);
                changes.push((uid, None));
            } else {
                self.entries.insert(uid, drawn.clone());
                changes.push((uid, Some(drawn)));
            }
        }
        self.table.apply(Timestamp(1_000), changes);
    }

    fn compare(&self, seed: u64, step: usize) {
        let entries: Vec<Entry> = self.entries.values().cloned().collect();
        let from_scratch = HealthReport::from_entries(&entries);
        for entry in &entries {
            let expected = from_scratch.get(&entry.row).expect("all are judged");
            let slot = self.table.find(&entry.row.key()).expect("all are there");
            assert_eq!(
                (
                    slot.standing.health,
                    &slot.standing.blocked_by,
                    slot.standing.phase
                ),
                (expected.health, &expected.blocked_by, expected.phase),
                "seed {seed}, step {step}, {}",
                entry.row.key()
            );
        }
        assert_eq!(self.table.entries().len(), entries.len());
    }
}

#[test]
fn s_api2_health_after_random_changes_is_that_of_a_judgement_from_scratch() {
    for seed in 0..200 {
        let mut world = World::new(seed);
        for step in 0..60 {
            world.step();
            world.compare(seed, step);
        }
    }
}

#[test]
fn a_reader_who_applies_what_changed_after_a_number_believes_what_a_list_says() {
    for seed in 0..100 {
        let mut world = World::new(seed);
        let mut believed: BTreeMap<String, String> = BTreeMap::new();
        let mut seen = 0;
        for step in 0..60 {
            world.step();
            if world.random.random_bool(0.5) {
                continue;
            }
            for gone in world.table.gone_after(seen) {
                believed.remove(&gone.key.to_string());
            }
            for slot in world.table.changed_after(seen).expect("nothing is forgotten yet") {
                let document = world.table.document(slot);
                believed.insert(
                    slot.entry.row.key().to_string(),
                    serde_json::to_string(&document).unwrap(),
                );
            }
            seen = world.table.last();
            let listed = world
                .table
                .after(None)
                .filter(|(_, slot)| Table::is_listed(slot, Hidden::Show));
            let listed: BTreeMap<String, String> = listed
                .map(|(_, slot)| {
                    let document = world.table.document(slot);
                    (
                        slot.entry.row.key().to_string(),
                        serde_json::to_string(&document).unwrap(),
                    )
                })
                .collect();
            assert_eq!(believed, listed, "seed {seed}, step {step}");
        }
    }
}
