use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use uuid::Uuid;
use watershed_core::{Removed, SpecVersion};

use super::*;
use crate::sync::Unpoisoned;

/// Resources of the storm.
const COUNT: u64 = 100;
const PUBLISHES: u64 = 500;

pub(crate) fn uid(number: u64) -> Uid {
    Uid(Uuid::from_u128(u128::from(number)))
}

pub(crate) fn row(number: u64, name: &str, revision: u64) -> Arc<Row> {
    Arc::new(Row {
        revision: Revision(revision),
        spec_version: SpecVersion(1),
        ..Row::new(uid(number), "thing", name)
    })
}

impl View {
    /// Entries that keep what they were before.
    pub(crate) fn kept(&self) -> usize {
        let kept = self.rows.iter().map(|shard| {
            let keeps = |entry: &&Entry| entry.before.is_some() || entry.row.is_none();
            shard.read().unpoisoned().values().filter(keeps).count()
        });
        kept.sum()
    }
}

/// Every resource under the name of another one; the one that is left out is not there.
fn shuffled(revision: u64) -> Publish {
    let left_out = revision % COUNT;
    let rows = (0..COUNT).filter(|number| *number != left_out);
    let rows = rows.map(|number| row(number, &format!("n{}", (number + revision) % COUNT), revision));
    Publish {
        revision: Revision(revision),
        rows: rows.collect(),
        removed: vec![Removed {
            uid: uid(left_out),
            key: Key::new("thing", "whatever"),
            revision: Revision(revision),
        }],
        ..Publish::default()
    }
}

fn is_whole(revision: Revision, list: &[Resource]) {
    assert_eq!(list.len() as u64, COUNT - 1, "at {revision}");
    for resource in list {
        assert_eq!(resource.row.revision, revision, "{}", resource.key());
    }
}

#[test]
fn listings_are_whole_and_names_never_free_while_everything_moves() {
    let view = View::with_capacity(Revision(0), 0);
    view.apply(&shuffled(1), Timestamp(1));
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let (revision, list) = view.list(|_| true);
                    is_whole(revision, &list);
                }
            });
            scope.spawn(|| {
                let target = Target::Key(Key::new("thing", "n3"));
                while !over.load(Ordering::Relaxed) {
                    // The name that nobody has at a time has an even number.
                    let found = view.get(&target).expect("somebody has the name");
                    assert_eq!(found.row.name, Name::from("n3"));
                }
            });
        }
        for revision in 2..PUBLISHES {
            view.apply(&shuffled(revision), Timestamp(1));
        }
        over.store(true, Ordering::Relaxed);
    });
    let (revision, list) = view.list(|_| true);
    is_whole(revision, &list);
    assert_eq!(view.kept(), 0, "nothing is kept without a listing");
}
