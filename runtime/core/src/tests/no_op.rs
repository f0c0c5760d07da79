//! Tests of no-op runs: counted, shown as status, and not stored.

use crate::testing::{Bench, Store, target};
use crate::{Call, Edit, Outcome, Returned, Work};

fn look(bench: &mut Bench, name: &str) {
    let outcome = Outcome::from_work(Work::Checked);
    bench.returns(name, Returned::Done(outcome));
}

/// Lists the published no-op runs: name of the resource, and the number of runs so far.
fn told(bench: &Bench) -> Vec<(String, u64)> {
    let name = |uid| bench.published[&uid].name.to_string();
    bench
        .no_ops
        .iter()
        .map(|run| (name(run.uid), run.runs_total))
        .collect()
}

#[test]
fn a_run_that_sees_what_the_last_one_saw_and_finds_nothing_to_do_writes_nothing() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    let before = bench.row("a");
    bench.store = Store::ByHand;
    for _ in 0..3 {
        bench.reconcile("a");
        look(&mut bench, "a");
    }
    assert!(bench.commits.is_empty(), "{:?}", bench.commits);
    assert_eq!(bench.row("a").revision, before.revision);
    let count = |more| ("a".to_owned(), before.runs_total + more);
    assert_eq!(told(&bench), [count(1), count(2), count(3)]);
    bench.store = Store::Prompt;
    bench.reconcile("a");
    bench.fail("a");
    let after = bench.row("a");
    assert_eq!(
        after.runs_total,
        before.runs_total + 4,
        "what was counted is stored with the next write"
    );
    assert!(after.last_success.is_some());
}

#[test]
fn a_run_that_sees_something_new_is_stored_whatever_it_finds() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    bench.edit_spec("a", "other");
    look(&mut bench, "a");
    let row = bench.row("a");
    let seen = row.last_run.as_ref().and_then(|run| run.seen.as_ref());
    assert_eq!(seen.map(|seen| seen.spec_version), Some(row.spec_version));
    assert_eq!(told(&bench), []);
}

#[test]
fn a_run_after_a_failure_is_stored_whatever_it_finds() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    bench.reconcile("a");
    bench.fail("a");
    bench.reconcile("a");
    look(&mut bench, "a");
    assert_eq!(bench.row("a").error, None);
    assert_eq!(told(&bench), []);
}

#[test]
fn an_end_that_no_row_tells_is_told_after_the_ends_before_it() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &[])]);
    bench.store = Store::ByHand;
    bench.edit_spec("a", "other");
    bench.commit();
    bench.finish("a");
    bench.reconcile("b");
    look(&mut bench, "b");
    assert_eq!(told(&bench), [], "the end of the other run is not durable yet");
    while !bench.commits.is_empty() {
        bench.commit();
    }
    let (name, _) = &told(&bench)[0];
    assert_eq!(name, "b");
}

#[test]
fn a_restart_forgets_what_was_only_counted_and_asks_again() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    let before = bench.row("a").runs_total;
    bench.reconcile("a");
    look(&mut bench, "a");
    bench.restart();
    assert_eq!(bench.starts(), ["a"]);
    look(&mut bench, "a");
    let counts: Vec<u64> = told(&bench).into_iter().map(|(_, count)| count).collect();
    assert_eq!(counts, [before + 1, before + 1]);
}

#[test]
fn a_run_that_waits_for_the_store_is_told_once_though_its_row_is_written_meanwhile() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &[])]);
    bench.reconcile("a");
    bench.store = Store::ByHand;
    bench.edit_spec("b", "on its way");
    bench.edit_spec("b", "before it");
    look(&mut bench, "a");
    bench.edit_spec("a", "after it");
    while !bench.commits.is_empty() {
        bench.commit();
    }
    let run = bench.row("a").last_run.clone().expect("it has run");
    assert_eq!(
        run.result,
        crate::RunResult::Done(Work::Checked),
        "its row tells of it"
    );
    assert_eq!(told(&bench), []);
}

#[test]
fn a_run_for_a_time_that_fell_due_is_stored_whatever_it_finds() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    bench.reconcile("a");
    let wait = std::time::Duration::from_secs(5);
    let at = bench.now.wall.after(wait);
    bench.finish_at("a", Some(at.0));
    bench.pass(wait);
    let run = bench.running("a").invocation;
    look(&mut bench, "a");
    let row = bench.row("a");
    assert_eq!(row.last_run.as_ref().map(|last| last.id), Some(run));
    assert_eq!((row.next_reconcile, told(&bench)), (None, vec![]));
}

#[test]
fn a_run_that_returns_the_requeue_time_that_is_set_already_writes_nothing() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[])]);
    bench.finish_at("a", Some(60_000));
    let before = bench.row("a");
    assert!(before.next_reconcile.is_some());
    bench.reconcile("a");
    let again = Outcome {
        retrigger: before.next_reconcile,
        ..Outcome::unchanged()
    };
    bench.returns("a", Returned::Done(again));
    assert_eq!(bench.row("a").revision, before.revision);
    bench.pass(std::time::Duration::from_secs(61));
    assert!(bench.is_running("a"), "it still falls due");
    look(&mut bench, "a");
    assert!(bench.row("a").revision > before.revision, "it was used up");
}

#[test]
fn a_run_that_found_nothing_is_not_told_of_a_resource_that_has_deleted_itself_since() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    bench.store = Store::ByHand;
    // The second commit brings the run and the end of the resource together.
    bench.create(&[("b", &[])]);
    bench.create(&[("c", &[])]);
    bench.reconcile("a");
    look(&mut bench, "a");
    bench.reconcile("a");
    let by = bench.running("a").invocation;
    bench.call_by(Some(by), Call::Apply(Edit::delete(target("a")).into()));
    while !bench.commits.is_empty() {
        bench.commit();
    }
    assert_eq!(told(&bench), []);
}
