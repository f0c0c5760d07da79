//! Interleavings of snapshots: one thread publishes, others read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shuttle::thread;
use watershed_core::{
    Deletion, Epoch, Intents, InvocationId, Key, Name, NoOpRun, Publish, Reason, Revision, Row, Settled,
    Stage, Status, StatusUpdate, Target, Timestamp, Trigger, Uid, Work,
};

use super::{explore, publish, removed};
use crate::read::view::View;
use crate::read::view::tests::{row, uid};

/// Last revision that each test publishes.
const LAST: u64 = 6;

type Catalog = BTreeMap<Uid, (String, Revision)>;

/// Returns the publishes of a test, in order. Some rows are changed in place, others keep their former version for
/// listings.
fn publishes() -> Vec<Publish> {
    (1..=LAST)
        .map(|revision| match revision % 3 {
            0 => publish(
                revision,
                vec![row(0, &format!("n{}", revision % 2), revision), other(revision)],
            ),
            1 => publish(revision, vec![row(0, "n0", revision), row(1, "n1", revision)]),
            _ => publish(revision, vec![row(0, "n0", revision)]),
        })
        .collect()
}

/// Returns the second resource with the name that the first one leaves.
fn other(revision: u64) -> Arc<Row> {
    row(1, &format!("n{}", (revision + 1) % 2), revision)
}

/// Returns the expected catalog at each revision, from an empty one.
fn catalogs() -> Vec<Catalog> {
    let mut catalogs = vec![Catalog::new()];
    for publish in publishes() {
        let mut next = catalogs[catalogs.len() - 1].clone();
        for row in &publish.rows {
            next.insert(row.uid, (row.name.to_string(), row.revision));
        }
        for removed in &publish.removed {
            next.remove(&removed.uid);
        }
        catalogs.push(next);
    }
    catalogs
}

/// Publishes in a thread of its own; returns the thread and the revision that it has reached.
fn publishing(view: &Arc<View>, publishes: Vec<Publish>) -> (thread::JoinHandle<()>, Arc<AtomicU64>) {
    let (view, told) = (Arc::clone(view), Arc::new(AtomicU64::new(0)));
    let tells = Arc::clone(&told);
    let publishing = thread::spawn(move || {
        for publish in publishes {
            view.apply(&publish, Timestamp(1));
            tells.store(publish.revision.0, Ordering::SeqCst);
        }
    });
    (publishing, told)
}

fn fresh() -> Arc<View> {
    Arc::new(View::with_capacity(Revision(0), 0))
}

#[test]
fn a_listing_is_the_catalog_at_its_revision_and_not_before_what_was_told() {
    explore(|| {
        let view = fresh();
        let (publishing, told) = publishing(&view, publishes());
        let reading: Vec<_> = (0..2)
            .map(|_| {
                let (view, told) = (Arc::clone(&view), Arc::clone(&told));
                thread::spawn(move || {
                    for _ in 0..2 {
                        let before = told.load(Ordering::SeqCst);
                        let (revision, list) = view.list(|_| true);
                        assert!(
                            revision.0 >= before,
                            "{revision} was listed after {before} was told"
                        );
                        let found = list
                            .iter()
                            .map(|one| (one.row.uid, (one.row.name.to_string(), one.row.revision)));
                        assert_eq!(found.collect::<Catalog>(), catalogs()[revision.0 as usize]);
                    }
                })
            })
            .collect();
        publishing.join().unwrap();
        reading.into_iter().for_each(|one| one.join().unwrap());
        assert_eq!(view.kept(), 0, "nothing is kept without a listing");
    });
}

#[test]
fn who_knows_a_revision_finds_every_row_as_it_was_then_or_later() {
    explore(|| {
        let view = fresh();
        view.apply(&publishes()[0], Timestamp(1));
        let (publishing, _) = publishing(&view, publishes().split_off(1));
        for number in 0..2 {
            let known = view.revision();
            let found = view.get(&Target::Uid(uid(number))).expect("it never goes");
            let (_, least) = catalogs()[known.0 as usize][&uid(number)].clone();
            assert!(found.row.revision >= least, "{} at {known}", found.row.revision);
        }
        publishing.join().unwrap();
    });
}

#[test]
fn a_name_that_passes_from_one_to_another_is_never_free_and_finds_who_has_it() {
    explore(|| {
        let view = fresh();
        view.apply(&publishes()[0], Timestamp(1));
        let (publishing, _) = publishing(&view, publishes().split_off(1));
        for name in ["n0", "n1", "n0"] {
            let found = view.get(&Target::Key(Key::new("thing", name)));
            let found = found.expect("somebody always has the name");
            assert_eq!(found.row.name, Name::from(name));
        }
        publishing.join().unwrap();
    });
}

#[test]
fn a_name_that_passes_from_one_kind_to_another_is_one_resource_all_the_while() {
    let of_kind = |number, kind: &str, revision| {
        let mut row = Row::clone(&row(number, "x", revision));
        row.kind = kind.into();
        Arc::new(row)
    };
    let deleted = |row: Arc<Row>| {
        let mut row = Row::clone(&row);
        row.intents = Intents {
            deletion: Some(Deletion {
                at: Timestamp(1),
                revision: row.revision,
            }),
            ..Intents::default()
        };
        Arc::new(row)
    };
    explore(move || {
        let view = fresh();
        view.apply(&publish(1, vec![of_kind(0, "a", 1)]), Timestamp(1));
        let passes = vec![
            publish(2, vec![deleted(of_kind(0, "a", 2)), of_kind(1, "b", 2)]),
            publish(3, vec![deleted(of_kind(1, "b", 3)), of_kind(2, "a", 3)]),
        ];
        let (publishing, _) = publishing(&view, passes);
        for _ in 0..2 {
            let found = view.get(&Target::Name(Name::from("x")));
            assert!(found.is_ok(), "{found:?}");
        }
        publishing.join().unwrap();
    });
}

#[test]
fn what_went_is_not_found_by_who_was_told() {
    explore(|| {
        let view = fresh();
        let going = vec![
            publish(1, vec![row(0, "n0", 1)]),
            Publish {
                removed: vec![removed(0, 2)],
                ..publish(2, vec![row(1, "n0", 2)])
            },
            Publish {
                removed: vec![removed(1, 3)],
                ..publish(3, Vec::new())
            },
        ];
        let (publishing, told) = publishing(&view, going);
        for _ in 0..3 {
            let before = told.load(Ordering::SeqCst);
            let found = view.get(&Target::Key(Key::new("thing", "n0")));
            let after = view.revision().0;
            match found {
                // The publish after the last one that is whole may show already.
                Ok(found) => assert!((before..=after + 1).contains(&found.row.revision.0) && before < 3),
                Err(_) => assert!(before == 0 || after >= 2, "told of {before}, at {after}"),
            }
        }
        publishing.join().unwrap();
        assert_eq!(view.kept(), 0);
        assert_eq!(view.list(|_| true).1, Vec::new());
    });
}

fn no_op(runs_total: u64) -> NoOpRun {
    NoOpRun {
        uid: uid(0),
        id: InvocationId(runs_total),
        epoch: Epoch(1),
        reason: Arc::new(Reason::bare(Trigger::Retry)),
        started_at: Timestamp(1),
        ended_at: Timestamp(2),
        work: Work::None,
        runs_total,
    }
}

fn ran(runs_total: u64) -> Publish {
    let update = StatusUpdate {
        uid: uid(0),
        status: Status {
            stage: Stage::Settled(Settled::Idle),
            reason: None,
            progress: None,
        },
        no_op: Some(Arc::new(no_op(runs_total))),
    };
    Publish {
        statuses: vec![update],
        ..publish(1, Vec::new())
    }
}

/// Returns a row with this number of runs.
fn after(runs_total: u64, revision: u64) -> Arc<Row> {
    let mut row = Row::clone(&row(0, "n0", revision));
    no_op(runs_total).show_in(&mut row);
    Arc::new(row)
}

#[test]
fn a_run_without_a_row_is_seen_by_all_who_were_told_of_it() {
    explore(|| {
        let view = fresh();
        view.apply(&publish(1, vec![row(0, "n0", 1), row(1, "n1", 1)]), Timestamp(1));
        let told = Arc::new(AtomicU64::new(0));
        let (writes, tells) = (Arc::clone(&view), Arc::clone(&told));
        let publishing = thread::spawn(move || {
            let rows =
                |runs, revision| publish(revision, vec![after(runs, revision), row(1, "n1", revision)]);
            for (runs, publish) in [
                (1, ran(1)),
                (2, ran(2)),
                (3, rows(3, 2)),
                (4, ran(4)),
                (5, rows(5, 3)),
            ] {
                writes.apply(&publish, Timestamp(1));
                tells.store(runs, Ordering::SeqCst);
            }
        });
        let (lists, heard) = (Arc::clone(&view), Arc::clone(&told));
        let listing = thread::spawn(move || {
            for _ in 0..2 {
                let before = heard.load(Ordering::SeqCst);
                let (_, list) = lists.list(|row| row.uid == uid(0));
                assert!(
                    list[0].row.runs_total >= before,
                    "listed {}, told of {before}",
                    list[0].row.runs_total
                );
            }
        });
        for _ in 0..2 {
            let before = told.load(Ordering::SeqCst);
            let found = view.get(&Target::Uid(uid(0))).expect("it never goes");
            assert!(
                found.row.runs_total >= before,
                "found {}, told of {before}",
                found.row.runs_total
            );
        }
        publishing.join().unwrap();
        listing.join().unwrap();
    });
}
