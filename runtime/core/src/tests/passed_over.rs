//! Tests that runs which were passed over leave their resources unchanged.

use crate::testing::Bench;
use crate::{KindOptions, Limits, Outcome, Parents, Returned, Settled, Stage};

fn pass_over(bench: &mut Bench, name: &str) {
    bench.returns(name, Returned::Done(Outcome::passed_over()));
}

#[test]
fn a_resource_that_is_passed_over_keeps_its_row_and_is_still_behind() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    bench.reconcile("a");
    bench.fail("a");
    bench.edit_spec("a", "other");
    let before = bench.row("a");
    pass_over(&mut bench, "a");
    assert_eq!(bench.row("a"), before);
    assert_eq!(bench.stage("a"), Stage::Settled(Settled::Failed));
    let seen = before.last_run.as_ref().and_then(|run| run.seen.as_ref());
    assert!(seen.is_some_and(|seen| seen.spec_version < before.spec_version));
    bench.restart();
    assert!(bench.is_running("a"), "the next process asks for it again");
}

#[test]
fn a_new_resource_that_is_passed_over_was_never_run_and_holds_nobody_back() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[]), ("b", &["a"])]);
    pass_over(&mut bench, "a");
    assert_eq!(bench.row("a").last_run, None);
    bench.finish("b");
    assert!(bench.is_idle());
}

#[test]
fn a_requeue_time_that_is_used_up_does_not_stay_in_the_row() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[])]);
    bench.finish_at("a", Some(5_000));
    assert!(bench.row("a").next_reconcile.is_some());
    bench.pass(std::time::Duration::from_secs(60));
    pass_over(&mut bench, "a");
    assert_eq!(bench.row("a").next_reconcile, None);
    assert!(bench.is_idle());
}

#[test]
fn a_request_that_was_passed_over_is_taken_up_once_its_parents_have_finished() {
    let mut kind = KindOptions::new("k");
    kind.parents = Parents::Changed;
    let mut bench = Bench::with(vec![kind], Limits::default());
    bench.settled(&[("a", &[]), ("b", &["a"])]);
    bench.reconcile("b");
    pass_over(&mut bench, "b");
    bench.reconcile("a");
    bench.finish("a");
    assert!(bench.is_running("b"), "although its parent changed nothing");
}
