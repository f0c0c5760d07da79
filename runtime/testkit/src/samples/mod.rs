//! Ten sample reconcilers, and tests that planted flaws in them are found.
//!
//! | module | sample | planted |
//! |---|---|---|
//! | `files` | writes a file, aside and then in place | 5 |
//! | `tables` | a table under a name, moved by renames | 3 |
//! | `ledger` | an entry that counts once | 4 |
//! | `reader` | computes from what it reads, and reads its like | 3 |
//! | `jobs` | a job outside that takes its time | 4 |
//! | `members` | a set of objects, removed with their resource | 3 |
//! | `batches` | a long append with a checkpoint in the state | 2 |
//! | `locks` | a value guarded by a fencing token | 1 |
//! | `caches` | a cache by the version of what is read | 2 |
//! | `stacks` | three objects, each in the one before | 2 |
//!
//! `WATERSHED_TESTKIT_STEPS` says how many steps each right one has to stand; an ordinary run takes a share.

#![allow(clippy::result_large_err, reason = "reconcilers return errors of the core")]

mod batches;
mod caches;
mod files;
mod jobs;
mod ledger;
mod locks;
mod members;
mod points;
mod reader;
mod stacks;
mod standin;
mod tables;

use standin::{StandIn, World};

use crate::{Fault, Kit, Outside};
use watershed_controller::Reconciler;

/// Number of steps for each correct sample in an ordinary run.
const SHARE: u64 = 1_500;
const CI_SHARE: u64 = 20_000;

/// Number of steps within which every planted flaw is found.
const BOUND: u64 = 50_000;

/// Checks that a correct sample passes.
fn passes<O: Outside, R: Reconciler>(kit: Kit<O, R>) {
    let is_ci = std::env::var("WATERSHED_PROOF").is_ok_and(|proof| proof == "ci");
    let passed = kit.steps(if is_ci { CI_SHARE } else { SHARE }).check();
    assert!(passed.steps >= SHARE);
    assert!(
        passed.cancelled > 0 && passed.dropped > 0 && passed.crashes > 0,
        "{passed:?}"
    );
    if std::env::var_os("WATERSHED_TESTKIT_STEPS").is_some() {
        #[allow(clippy::print_stdout, reason = "a long run says what it did")]
        {
            println!("{passed:?}");
        }
    }
}

/// Checks that a planted flaw is found, named correctly, and found again by its seed.
fn finds<O: Outside, R: Reconciler>(kit: Kit<O, R>, fault: Fault) {
    let kit = kit.steps(BOUND);
    let report = kit.find().expect_err("there is a fault");
    assert_eq!(report.fault, fault, "{report}");
    assert!(report.steps <= BOUND);
    let again = kit.play(report.seed).expect_err("the seed shows it again");
    assert_eq!(
        (again.fault, &again.story, &again.finding),
        (fault, &report.story, &report.finding)
    );
    if std::env::var_os("WATERSHED_TESTKIT_SHOW").is_some() {
        #[allow(clippy::print_stdout, reason = "asked for")]
        {
            println!("{report}\n");
        }
    }
}
