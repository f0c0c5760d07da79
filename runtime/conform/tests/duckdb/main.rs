//! Runs the suite against DuckDB, and against faulty engines that must fail.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]
#![allow(clippy::print_stdout, reason = "another process tells how it ended")]

mod builds;
mod factory;
mod faults;

use factory::DuckDbFactory;
use faults::{Fault, Faulty};
use watershed_conform::{CaseEnd, conform, conform_in};

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
        assert!(report.conforms(), "run {run}:\n{report}");
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

#[tokio::test]
async fn another_process_tries_to_build() {
    factory::be_another_process().await;
}
