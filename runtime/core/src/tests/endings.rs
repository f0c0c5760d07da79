//! Tests of a completed invocation's traces: its history entry, the counts, and the inputs that it saw.

use std::time::Duration;

use crate::testing::{Bench, refs_edit, target};
use crate::{Call, Edit, Key, Phase, RunResult, Settled, SpecVersion, Stage, Trigger, Work};

/// Lists phase and result of each history row of a resource; forced deletes count as deletes.
fn told(bench: &Bench, name: &str) -> Vec<(Phase, RunResult)> {
    let rows = bench.history.iter().filter(|row| *row.key.name.as_str() == *name);
    rows.map(|row| (row.phase, row.result)).collect()
}

fn last(bench: &Bench, name: &str) -> (Phase, RunResult, Option<SpecVersion>) {
    let run = bench.row(name).last_run.clone().expect("it has run");
    let seen = run.seen.as_ref().map(|seen| seen.spec_version);
    (run.phase, run.result, seen)
}

const BUILT: RunResult = RunResult::Done(Work::Built);

#[test]
fn history_tells_of_what_was_built_what_failed_and_what_was_cancelled() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[])]);
    bench.finish("a");
    bench.reconcile("a");
    bench.fail("a");
    bench.reconcile("a");
    bench.edit_spec("a", "new");
    bench.finish("a");
    bench.finish("a");
    let results = [BUILT, RunResult::Failed, RunResult::Cancelled, BUILT];
    assert_eq!(
        told(&bench, "a"),
        results.map(|result| (Phase::Reconcile, result))
    );
    let failed = &bench.history[1];
    assert_eq!(failed.error.as_ref().map(|error| &*error.code), Some("broken"));
    assert_eq!(
        failed.seen.as_ref().map(|seen| seen.spec_version),
        Some(SpecVersion(1))
    );
    assert_eq!(bench.row("a").runs_total, 4);
}

#[test]
fn history_tells_how_the_invocation_of_what_deleted_itself_ended() {
    for works in [true, false] {
        let mut bench = Bench::new();
        bench.create(&[("a", &[])]);
        let by = bench.running("a").invocation;
        bench.call_by(Some(by), Call::Apply(Edit::delete(target("a")).into()));
        assert!(!bench.is_cancelled("a"), "it may end in peace");
        if works {
            bench.finish("a")
        } else {
            bench.fail("a")
        }
        let result = if works { BUILT } else { RunResult::Failed };
        assert_eq!(told(&bench, "a"), [(Phase::Reconcile, result)]);
        assert_eq!(bench.history[0].error.is_some(), !works);
        assert!(bench.is_idle());
    }
}

#[test]
fn history_tells_of_a_forced_delete_and_of_the_invocation_that_it_cancelled() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[])]);
    bench.apply(vec![Edit::force_delete(target("a"))]);
    assert!(bench.is_cancelled("a"));
    bench.finish("a");
    let forced = (Phase::Delete, RunResult::Done(Work::None));
    assert_eq!(
        told(&bench, "a"),
        [forced, (Phase::Reconcile, RunResult::Cancelled)]
    );
    assert_eq!(bench.history[0].invocation, None);
}

#[test]
fn a_rename_counts_as_a_run_and_forgets_nothing_that_was_seen() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    let before = bench.row("a").runs_total;
    bench.rename("a", "b");
    bench.fail("b");
    assert_eq!(
        last(&bench, "b"),
        (Phase::Rename, RunResult::Failed, Some(SpecVersion(1)))
    );
    assert_eq!(bench.row("b").runs_total, before + 1);
    bench.call(Call::Retry(target("b")));
    bench.call(Call::Cancel(target("b")));
    bench.finish("b");
    assert_eq!(
        last(&bench, "b"),
        (Phase::Rename, RunResult::Cancelled, Some(SpecVersion(1)))
    );
    assert_eq!(bench.row("b").runs_total, before + 2);
    bench.call(Call::Retry(target("b")));
    bench.finish("b");
    assert_eq!(last(&bench, "b"), (Phase::Rename, BUILT, Some(SpecVersion(1))));
    assert_eq!(bench.row("b").runs_total, before + 3);
}

#[test]
fn what_a_cancelled_run_saw_does_not_count() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    bench.edit_spec("a", "new");
    bench.call(Call::Cancel(target("a")));
    bench.finish("a");
    assert_eq!(
        last(&bench, "a"),
        (Phase::Reconcile, RunResult::Cancelled, Some(SpecVersion(1)))
    );
}

#[test]
fn after_a_rename_it_runs_for_what_asked_meanwhile_or_for_the_rename() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"])]);
    bench.rename("b", "c");
    bench.reconcile("a");
    bench.finish("c");
    bench.finish("a");
    assert_eq!(
        bench.running("c").reason.trigger,
        Trigger::Renamed,
        "its parents are no news"
    );
    bench.finish("c");
    bench.rename("c", "d");
    bench.call(Call::Nudge(target("d")));
    bench.finish("d");
    assert_eq!(bench.running("d").reason.trigger, Trigger::Nudge);
}

#[test]
fn what_waits_for_a_name_in_use_is_told_who_holds_it_when_the_rename_fails() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    bench.rename("a", "b");
    bench.create(&[("a", &[])]);
    // The rename holds nobody back any more, but its invocation began under the name.
    bench.pass(Duration::from_secs(60));
    assert!(!bench.is_running("a"));
    bench.fail("b");
    let holder = bench.row("b").uid;
    let waits = Settled::WaitingForName {
        holder,
        key: Key::new("k", "b"),
    };
    assert_eq!(bench.stage("a"), Stage::Settled(waits));
}

#[test]
fn c7_what_has_left_a_cycle_does_not_carry_its_error_while_it_waits() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &["b"]), ("b", &["a"])]);
    assert!(bench.row("a").error.is_some() && bench.row("b").error.is_some());
    bench.apply(vec![refs_edit("a", &[])]);
    assert!(bench.is_running("a") && !bench.is_running("b"));
    assert_eq!((&bench.row("a").error, &bench.row("b").error), (&None, &None));
}
