//! Tests of history entries: which runs add one, and which replace an earlier one.

use std::sync::Arc;
use std::time::Duration;

use crate::testing::{Bench, target};
use crate::{
    Call, Error, HistoryRow, Outcome, Phase, Repeats, Returned, RunResult, TEXT_MAX, Timestamp, Work,
};

const SECOND: Duration = Duration::from_secs(1);

fn unchanged() -> Returned {
    Returned::Done(Outcome::unchanged())
}

fn failed(message: &str) -> Returned {
    Returned::Failed(Error::permanent("broken", message))
}

/// Runs `a` once, a second after the previous request.
fn run(bench: &mut Bench, result: Returned) {
    bench.pass(SECOND);
    bench.reconcile("a");
    bench.returns("a", result);
}

/// Lists the history entries that a store would keep, oldest first.
fn kept(bench: &Bench) -> Vec<HistoryRow> {
    let mut kept: Vec<HistoryRow> = Vec::new();
    for entry in &bench.history {
        let before = |old: &HistoryRow| {
            old.uid == entry.uid && old.invocation.map(|id| (old.epoch, id)) == entry.replaces
        };
        if entry.replaces.is_some() {
            let place = kept.iter().position(before);
            kept.remove(place.expect("what it replaces is there"));
        }
        kept.push(entry.clone());
    }
    kept
}

fn results(bench: &Bench) -> Vec<(RunResult, u32)> {
    let kept = kept(bench);
    let runs = |entry: &HistoryRow| entry.repeats.map_or(1, |repeats| repeats.runs);
    kept.iter().map(|entry| (entry.result, runs(entry))).collect()
}

fn write_state(bench: &mut Bench, state: &[u8]) {
    let by = bench.running("a").invocation;
    let call = Call::WriteState {
        state: state.into(),
        expected: None,
    };
    bench.call_by(Some(by), call);
}

const NOTHING: RunResult = RunResult::Done(Work::None);

#[test]
fn a_run_that_mends_writes_or_deletes_leaves_an_entry_and_one_that_finds_nothing_does_not() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[])]);
    bench.returns("a", unchanged());
    assert!(results(&bench).is_empty(), "all was well from the beginning");
    run(&mut bench, failed("it does not work"));
    run(&mut bench, unchanged());
    assert_eq!(results(&bench), [(RunResult::Failed, 1), (NOTHING, 1)]);
    run(&mut bench, unchanged());
    assert_eq!(results(&bench).len(), 2);
    bench.pass(SECOND);
    bench.reconcile("a");
    write_state(&mut bench, b"3 parts");
    bench.returns("a", Returned::Done(Outcome::from_work(Work::Checked)));
    assert_eq!(results(&bench).last(), Some(&(RunResult::Done(Work::Checked), 1)));
    bench.delete("a");
    bench.returns("a", unchanged());
    let kept = kept(&bench);
    let last = kept.last().expect("its delete");
    assert_eq!((last.phase, last.result, kept.len()), (Phase::Delete, NOTHING, 4));
}

#[test]
fn what_ends_like_the_run_before_takes_its_place_and_counts() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[])]);
    bench.finish("a");
    let since = Timestamp(bench.now.wall.0 + 1_000);
    for _ in 0..50 {
        run(&mut bench, failed("the database is away"));
    }
    let kept_now = kept(&bench);
    assert_eq!(kept_now.len(), 2);
    assert_eq!(
        kept_now[0].result,
        RunResult::Done(Work::Built),
        "the build is kept"
    );
    assert_eq!(kept_now[1].repeats, Some(Repeats { runs: 50, since }));
    assert_eq!(
        kept_now[1].ended_at, bench.now.wall,
        "it tells of the last of them"
    );
    run(&mut bench, failed("the database refuses"));
    run(&mut bench, failed("the database is away"));
    bench.restart();
    bench.returns("a", failed("the database is away"));
    run(&mut bench, failed("the database is away"));
    let failures = |runs| (RunResult::Failed, runs);
    assert_eq!(
        results(&bench)[1..],
        [failures(50), failures(1), failures(3)],
        "also over a restart"
    );
    // When it is tried again is no part of what it says.
    let mut later = Error::permanent("broken", "the database is away");
    later.retrigger = Some(bench.now.wall.after(60 * SECOND));
    later.retry_after = Some(SECOND);
    run(&mut bench, Returned::Failed(later));
    assert_eq!(results(&bench).last(), Some(&failures(4)));
    bench.edit_spec("a", "other");
    bench.returns("a", failed("the database is away"));
    assert_eq!(results(&bench).last(), Some(&failures(1)), "an edit begins anew");
}

#[test]
fn each_build_has_an_entry_of_its_own() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[])]);
    bench.finish("a");
    for _ in 0..3 {
        run(&mut bench, Returned::Done(Outcome::changed()));
    }
    assert_eq!(results(&bench), [(RunResult::Done(Work::Built), 1); 4]);
}

#[test]
fn a_delete_that_fails_over_and_over_is_one_entry() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    let before = results(&bench).len();
    bench.delete("a");
    for _ in 0..5 {
        bench.returns("a", failed("it is in use"));
        bench.call(Call::Retry(target("a")));
    }
    assert_eq!(results(&bench)[before..], [(RunResult::Failed, 5)]);
}

#[test]
fn no_text_is_stored_whole_however_long_it_is() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[])]);
    let long = "x".repeat(10 * TEXT_MAX);
    let mut error = Error::permanent("broken", long.as_str());
    error.hint = Some(Arc::from(long.as_str()));
    error.details = error.hint.clone();
    let is_short = |text: &str| text.len() < TEXT_MAX + 100;
    bench.returns("a", Returned::Failed(error));
    let stored = bench.row("a").error.clone().expect("it failed");
    assert!(is_short(&stored.message) && stored.hint.as_deref().is_some_and(is_short));
    assert!(stored.details.as_deref().is_some_and(is_short));
    run(&mut bench, Returned::Panicked(long.clone()));
    assert!(
        bench
            .row("a")
            .error
            .as_ref()
            .is_some_and(|error| is_short(&error.message))
    );
    run(
        &mut bench,
        Returned::Done(Outcome::changed().unready(long.as_str())),
    );
    assert!(bench.row("a").unready.as_deref().is_some_and(is_short));
}
