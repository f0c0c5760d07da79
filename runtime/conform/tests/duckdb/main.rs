//! Runs the suite against DuckDB, and against faulty engines that must fail.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]
#![allow(clippy::print_stdout, reason = "another process tells how it ended")]

mod breaks;
mod builds;
mod factory;
mod faults;
mod groups;
mod lake;
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the tests of the program use the rest of it"
)]
#[path = "../../../../tests/src/line.rs"]
mod line;
mod outages;
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the tests of the program use the rest of it"
)]
#[path = "../../../../tests/src/postgres.rs"]
mod postgres;
mod readers;
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the tests of the program use the rest of it"
)]
#[path = "../../../../tests/src/s3.rs"]
mod s3;
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the tests of the program use the rest of it"
)]
#[path = "../../../../tests/src/server.rs"]
mod server;
mod takeovers;
mod upkeep;

use factory::DuckDbFactory;
use faults::{Fault, Faulty};
use lake::{Catalog, LakeFactory};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use watershed_conform::{CaseEnd, conform, conform_in};

/// Cases that each run holds a lake to whose other cases are for `scripts/prove`: one with its files in a store takes a
/// thousand requests for all of them, and those with their catalogs in files differ from Postgres in their locks alone.
const EACH_RUN: [&str; 6] = [
    "a_table_carries_its_tag_and_record_from_the_first_moment",
    "a_rebuild_replaces_rows_tag_and_record_together",
    "a_failed_build_leaves_the_last_good_output_and_nothing_else",
    "names_are_swapped_and_nothing_else_stays",
    "what_is_not_ours_survives_and_is_named",
    "readers_see_all_rows_of_one_build_and_no_error",
];

/// Lock for tests with crash points, which are global in a process.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Returns the number of consecutive runs that an engine without faults must pass.
fn runs() -> usize {
    match std::env::var("WATERSHED_PROOF").as_deref() {
        Err(_) | Ok("ci") => 1,
        Ok(_) => 20,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_engine_conforms() {
    let _alone = ALONE.lock().await;
    for run in 0..runs() {
        let report = conform(&DuckDbFactory).await;
        assert!(report.conforms() && report.is_whole(), "run {run}:\n{report}");
        let is_left_out = |end: &CaseEnd| matches!(end, CaseEnd::LeftOut(_));
        assert!(
            !report.cases.iter().any(|case| is_left_out(&case.end)),
            "{report}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_fault_is_found_by_the_case_that_is_for_it() {
    let _alone = ALONE.lock().await;
    for fault in Fault::ALL.iter().copied() {
        let report = conform_in(&Faulty(fault), |case| case == fault.found_by()).await;
        assert_eq!(report.failed(), [fault.found_by()], "{fault:?}\n{report}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e14_a_lake_with_a_catalog_of_duckdb_conforms() {
    if lake::are_there() {
        hold_to_some(Catalog::DuckDb, 0).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e14_a_lake_with_a_catalog_of_sqlite_conforms() {
    if lake::are_there() {
        hold_to_some(Catalog::Sqlite, 0).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e14_a_lake_with_a_catalog_in_postgres_conforms() {
    let Some(server) = postgres::Server::start().filter(|_| lake::are_there()) else {
        return;
    };
    hold_to_some(Catalog::Postgres(Arc::new(server)), 10).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e14_a_lake_whose_files_a_store_has_conforms() {
    let Some(server) = postgres::Server::start().filter(|_| lake::are_there()) else {
        return;
    };
    let Some(store) = s3::Store::start() else { return };
    store.create_bucket("lakes");
    hold_to_some(Catalog::WithStore(Arc::new(server), Arc::new(store)), 0).await;
}

/// Runs [`EACH_RUN`] on a lake and draws so many in a hundred of the other cases; a proof runs all cases several times. A case
/// opens lakes anew, which takes seconds.
async fn hold_to_some(catalog: Catalog, others_in_100: u64) {
    let _alone = ALONE.lock().await;
    let factory = LakeFactory(catalog);
    let is_proof = std::env::var("WATERSHED_PROOF").is_ok_and(|proof| proof != "ci");
    let lots = RandomState::new();
    let is_drawn = |case: &str| lots.hash_one(case) % 100 < others_in_100;
    for run in 0..runs().div_ceil(4) {
        let report = conform_in(&factory, |case| {
            is_proof || EACH_RUN.contains(&case) || is_drawn(case)
        })
        .await;
        assert!(report.conforms() && report.is_whole(), "run {run}:\n{report}");
        assert!(report.cases.len() >= EACH_RUN.len(), "{report}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn e3_readers_elsewhere_see_whole_builds_and_no_error() {
    let Some(server) = postgres::Server::start().filter(|_| lake::are_there()) else {
        return;
    };
    readers::read_while_it_is_built(&Catalog::Postgres(Arc::new(server))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn e5_nothing_is_written_to_a_lake_of_sqlite_under_an_old_epoch() {
    if lake::are_there() {
        takeovers::take_over_often(&Catalog::Sqlite).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn e5_nothing_is_written_to_a_lake_in_postgres_under_an_old_epoch() {
    let Some(server) = postgres::Server::start().filter(|_| lake::are_there()) else {
        return;
    };
    takeovers::take_over_often(&Catalog::Postgres(Arc::new(server))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e2_a_connection_that_breaks_at_a_commit_leaves_a_build_whole_or_absent() {
    let _alone = ALONE.lock().await;
    let Some(server) = postgres::Server::start().filter(|_| lake::are_there()) else {
        return;
    };
    breaks::break_at_the_commit(&Catalog::Postgres(Arc::new(server))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e2_what_was_acknowledged_stays_whatever_breaks() {
    let _alone = ALONE.lock().await;
    let Some(server) = postgres::Server::start().filter(|_| lake::are_there()) else {
        return;
    };
    let Some(store) = s3::Store::start() else { return };
    store.create_bucket("lakes");
    outages::break_often(&Arc::new(server), &Arc::new(store)).await;
}

#[test]
fn e5_it_is_the_comment_of_a_take_that_keeps_former_owners_out() {
    let Some(server) = postgres::Server::start().filter(|_| lake::are_there()) else {
        return;
    };
    let catalog = Catalog::Postgres(Arc::new(server));
    assert!(!takeovers::is_committed_after_a_take(&catalog, true));
    assert!(takeovers::is_committed_after_a_take(&catalog, false));
}

/// Runs a test in lakes with catalogs of SQLite and Postgres.
async fn in_lakes(test: impl AsyncFn(&Catalog)) {
    let _alone = ALONE.lock().await;
    if !lake::are_there() {
        return;
    }
    test(&Catalog::Sqlite).await;
    if let Some(server) = postgres::Server::start() {
        test(&Catalog::Postgres(Arc::new(server))).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e4_a_shared_transaction_is_repeated_without_a_build_that_fails() {
    in_lakes(groups::repeat_without_one_that_fails).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e4_a_small_table_is_emptied_and_a_large_one_replaced() {
    if lake::are_there() {
        groups::empty_or_replace(&Catalog::Sqlite).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e6_snapshots_files_and_rows_go_once_they_are_old() {
    in_lakes(upkeep::let_go_of_what_is_old).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e6_a_clock_that_is_a_day_ahead_is_not_trusted() {
    in_lakes(upkeep::mistrust_a_clock_that_is_a_day_ahead).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e6_orphans_go_once_they_are_older_than_the_longest_build() {
    in_lakes(upkeep::remove_orphans_of_its_own_alone).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e6_who_reads_an_old_snapshot_is_served() {
    in_lakes(upkeep::serve_who_reads_an_old_snapshot).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e5_a_former_owner_is_refused_after_an_expiry() {
    in_lakes(upkeep::refuse_a_former_owner_after_an_expiry).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e6_few_connections_are_held_and_no_transaction_stays_open() {
    let Some(server) = postgres::Server::start().filter(|_| lake::are_there()) else {
        return;
    };
    upkeep::hold_few_connections(Arc::new(server)).await;
}

#[test]
fn another_process_reads_the_lake() {
    readers::be_another_process();
}

#[tokio::test]
async fn another_process_tries_to_build_in_the_lake() {
    lake::be_another_process().await;
}

#[tokio::test]
async fn another_process_tries_to_build() {
    factory::be_another_process().await;
}
