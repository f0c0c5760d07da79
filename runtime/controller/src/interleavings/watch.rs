//! Interleavings of the change log: one thread publishes, others follow, leave and return.

use std::collections::BTreeMap;
use std::sync::Arc;

use shuttle::future::block_on;
use shuttle::thread;
use watershed_core::{Publish, Revision, Stage, Status, StatusUpdate, Target, Uid};

use super::{explore, publish, removed, shared};
use crate::inbox::shared::Shared;
use crate::read::view::tests::{row, uid};
use crate::read::watch::{Event, Watch};

/// Last revision that each test publishes: more than the log keeps for a watcher that returns.
const LAST: u64 = 7;
/// Revision at which a resource is removed.
const GOES: u64 = 5;

/// The reconstructed catalog: the revision of each row, by uid.
type Catalog = BTreeMap<Uid, Revision>;

fn publishes() -> Vec<Publish> {
    let one = |revision| match revision {
        GOES => Publish {
            removed: vec![removed(1, revision)],
            ..publish(revision, Vec::new())
        },
        // What went does not come again.
        _ => {
            let number = revision % 2 + if revision > GOES { 2 } else { 0 };
            publish(revision, vec![row(number, &format!("n{number}"), revision)])
        }
    };
    (1..=LAST).map(one).collect()
}

/// Returns the expected catalog at each revision.
fn catalogs() -> Vec<Catalog> {
    let mut catalogs = vec![Catalog::new()];
    for publish in publishes() {
        let mut next = catalogs[catalogs.len() - 1].clone();
        next.extend(publish.rows.iter().map(|row| (row.uid, row.revision)));
        next.retain(|uid, _| publish.removed.iter().all(|removed| removed.uid != *uid));
        catalogs.push(next);
    }
    catalogs
}

fn publishing(shared: &Arc<Shared>) -> thread::JoinHandle<()> {
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        publishes()
            .into_iter()
            .for_each(|publish| shared.publish(publish));
        shared.changes.end();
    })
}

/// A watcher, with the catalog that it has reconstructed.
struct Follower {
    shared: Arc<Shared>,
    at: Revision,
    seen: Catalog,
}

/// Reason why a watcher stopped following.
#[derive(Debug, PartialEq)]
enum Left {
    Lagged,
    Ended,
    Enough,
}

impl Follower {
    fn listing(shared: &Arc<Shared>) -> Self {
        let (at, list) = shared.view.list(|_| true);
        Self {
            shared: Arc::clone(shared),
            at,
            seen: list.iter().map(|one| (one.row.uid, one.row.revision)).collect(),
        }
    }

    /// Follows for a number of events, or until no more come.
    fn follow(&mut self, mut watch: Watch, events: usize) -> Left {
        for _ in 0..events {
            match block_on(watch.next()) {
                Some(Event::Changed(changes)) => {
                    assert!(
                        changes.revision > self.at,
                        "{} comes after {}",
                        changes.revision,
                        self.at
                    );
                    let told = changes.revision;
                    for row in changes.rows {
                        self.seen.insert(row.uid, row.revision);
                    }
                    for removed in &changes.removed {
                        self.seen.remove(&removed.uid);
                    }
                    self.at = told;
                    assert_eq!(self.seen, catalogs()[told.0 as usize], "at {told}");
                    self.can_read(told);
                }
                Some(Event::Status(_)) => {}
                Some(Event::Lagged) => return Left::Lagged,
                None => return Left::Ended,
            }
        }
        Left::Enough
    }

    /// Checks that a change reported to a watcher can be read.
    fn can_read(&self, told: Revision) {
        assert!(self.shared.view.revision() >= told);
        for (uid, revision) in &catalogs()[told.0 as usize] {
            if let Ok(found) = self.shared.view.get(&Target::Uid(*uid)) {
                assert!(
                    found.row.revision >= *revision,
                    "{} after {told} was told",
                    found.row.revision
                );
            }
        }
    }

    fn watch(&self) -> Watch {
        self.shared.changes.watch(self.at, &self.shared.view)
    }
}

#[test]
fn a_watcher_comes_to_the_same_catalog_as_everybody_however_often_it_comes_back() {
    explore(|| {
        let (shared, _inbox) = shared();
        let publishing = publishing(&shared);
        let mut follower = Follower::listing(&shared);
        loop {
            match follower.follow(follower.watch(), 2) {
                Left::Enough => {}
                Left::Lagged => follower = Follower::listing(&shared),
                Left::Ended => break,
            }
        }
        publishing.join().unwrap();
        assert_eq!(
            (follower.at.0, &follower.seen),
            (LAST, &catalogs()[LAST as usize])
        );
    });
}

#[test]
fn two_who_come_back_late_are_told_of_everything_or_that_something_went() {
    explore(|| {
        let (shared, _inbox) = shared();
        shared.publish(publishes().swap_remove(0));
        let late = Follower::listing(&shared);
        let behind = late.watch();
        let rest = Arc::clone(&shared);
        let publishing = thread::spawn(move || {
            publishes()
                .into_iter()
                .skip(1)
                .for_each(|publish| rest.publish(publish));
            rest.changes.end();
        });
        let again = Arc::clone(&shared);
        let returning = thread::spawn(move || {
            let mut late = late;
            if late.follow(late.watch(), usize::MAX) == Left::Ended {
                assert_eq!(late.at.0, LAST);
            }
        });
        let mut follower = Follower {
            shared: again,
            at: Revision(1),
            seen: catalogs()[1].clone(),
        };
        if follower.follow(behind, usize::MAX) == Left::Ended {
            assert_eq!(follower.at.0, LAST);
        }
        publishing.join().unwrap();
        returning.join().unwrap();
    });
}

#[test]
fn who_comes_back_for_what_is_no_longer_held_gets_the_rows_or_is_told_that_one_went() {
    explore(|| {
        let (shared, _inbox) = shared();
        shared.publish(publishes().swap_remove(0));
        let mut follower = Follower::listing(&shared);
        let publishing = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                publishes()
                    .into_iter()
                    .skip(1)
                    .for_each(|publish| shared.publish(publish));
                shared.changes.end();
            })
        };
        // Nobody follows meanwhile, so little is held.
        thread::yield_now();
        if follower.follow(follower.watch(), usize::MAX) == Left::Ended {
            assert_eq!(follower.at.0, LAST);
        }
        publishing.join().unwrap();
    });
}

#[test]
fn nobody_lags_while_everything_is_held() {
    explore(|| {
        let (shared, _inbox) = shared();
        let rest = Arc::clone(&shared);
        // Fewer than go out for whoever comes back, and nothing is removed.
        let publishing = thread::spawn(move || {
            publishes()
                .into_iter()
                .take(2)
                .for_each(|publish| rest.publish(publish));
            rest.changes.end();
        });
        let mut follower = Follower::listing(&shared);
        let left = loop {
            match follower.follow(follower.watch(), 1) {
                Left::Enough => {}
                left => break left,
            }
        };
        assert_eq!((left, follower.at), (Left::Ended, Revision(2)));
        publishing.join().unwrap();
    });
}

#[test]
fn who_watches_and_then_looks_does_not_miss_how_a_resource_stands() {
    explore(|| {
        let (shared, _inbox) = shared();
        shared.publish(publish(1, vec![row(0, "n0", 1)]));
        let tells = Arc::clone(&shared);
        let telling = thread::spawn(move || {
            let status = Status {
                stage: Stage::Pending,
                reason: None,
                progress: None,
            };
            tells.publish(Publish {
                statuses: vec![StatusUpdate {
                    uid: uid(0),
                    status,
                    no_op: None,
                }],
                ..publish(1, Vec::new())
            });
        });
        let mut watch = shared.changes.watch(shared.view.revision(), &shared.view);
        let stands = || {
            shared
                .view
                .get(&Target::Uid(uid(0)))
                .expect("it is there")
                .status
                .stage
                .clone()
        };
        while stands() != Stage::Pending {
            assert!(block_on(watch.next()).is_some(), "it has not ended");
        }
        telling.join().unwrap();
    });
}
