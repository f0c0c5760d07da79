//! Tests of the shared data structures under a checker that decides every switch of threads.
//!
//! ```text
//! make interleavings
//! ```
//!
//! Each test runs a few threads over the real code many times, each time in another order: half of the orders are
//! random, half have few switches at random places, which finds what needs just the wrong one. Orders come from a seed,
//! so a run is the same each time; `WATERSHED_SCHEDULES` says how many of each sort, `SHUTTLE_RANDOM_SEED` tries others.
//! A failure prints the order that led to it. A thread that waits for ever is a failure as well.
//!
//! | module | shows |
//! |---|---|
//! | `view` | readers see batches whole, names that are never free, and all that they were told of |
//! | `watch` | watchers come to the same catalog, miss nothing, and are told when something went |
//! | `wakes` | no wake-up of a reader or a worker is lost |
//! | `links` | a cancel, a progress text and the end of the loop arrive |
//! | `memory` | what threads leave each other is found under weak memory, in every order |
//!
//! The checker takes all atomics for sequentially consistent; `memory` is what doesn't.

mod links;
mod memory;
mod view;
mod wakes;
mod watch;

use std::sync::Arc;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};
use watershed_core::{Key, Publish, Removed, Revision, Row, Stored};

use crate::Controller;
use crate::cluster::participant::Role;
use crate::inbox::call::Inbox;
use crate::inbox::shared::Shared;
use crate::read::view::tests::uid;

/// Number of random schedules, and again of schedules with few switches.
const SCHEDULES: usize = 1_000;
/// Number of thread switches in a schedule with few switches.
const SWITCHES: usize = 3;
/// Stack size of a checked thread: debug builds need more than the default.
const STACK_BYTES: usize = 512 * 1024;

/// Runs `body` under many schedules.
fn explore(body: impl Fn() + Send + Sync + 'static) {
    let count = std::env::var("WATERSHED_SCHEDULES").ok();
    let count = count.map_or(SCHEDULES, |text| text.parse().expect("a number of schedules"));
    let body = Arc::new(body);
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    let (random, few) = (Arc::clone(&body), body);
    Runner::new(RandomScheduler::new_from_seed(1, count), config.clone()).run(move || random());
    Runner::new(PctScheduler::new_from_seed(2, SWITCHES, count), config).run(move || few());
}

/// Creates the state that handles and a loop share, over an empty catalog, and the receivers of the loop.
fn shared() -> (Arc<Shared>, Inbox) {
    let (member, inbox, ends) = Controller::builder().member(&Stored::default(), None, Role::Candidate);
    drop(ends);
    (Arc::clone(&member.shared), inbox)
}

fn publish(revision: u64, rows: Vec<Arc<Row>>) -> Publish {
    Publish {
        revision: Revision(revision),
        rows,
        ..Publish::default()
    }
}

fn removed(number: u64, revision: u64) -> Removed {
    Removed {
        uid: uid(number),
        key: Key::new("thing", "whatever"),
        revision: Revision(revision),
    }
}
