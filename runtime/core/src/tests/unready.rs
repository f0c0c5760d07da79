//! Tests of successful runs that leave their resource unready.

use crate::testing::Bench;
use crate::{Edit, Outcome, Ref, Required, Returned, Settled, Stage, StoredRow};

/// Builds two readers of `a`: `strict` requires it to be ready, `lax` only that it has completed.
fn read_by_two() -> Bench {
    let mut bench = Bench::new();
    bench.create(&[("a", &[]), ("lax", &["a"])]);
    let ready = Ref {
        required: Required::Ready,
        ..Ref::completed("k", "a")
    };
    let new = bench.new_resource("strict", &[]).with_refs([ready]);
    bench.apply(vec![Edit::create(new)]);
    bench.starts();
    bench
}

fn unready(bench: &mut Bench, name: &str, why: &str) {
    bench.returns(name, Returned::Done(Outcome::unchanged().unready(why)));
}

#[test]
fn what_needs_a_ready_ref_waits_for_an_unready_one_and_what_needs_a_completed_one_does_not() {
    let mut bench = read_by_two();
    unready(&mut bench, "a", "it starts");
    assert_eq!(bench.finish_all(), ["lax"]);
    let waits = bench.stage("strict");
    assert!(
        matches!(waits, Stage::Settled(Settled::WaitingForRef(_))),
        "{waits:?}"
    );
    assert_eq!(bench.stage("a"), Stage::Settled(Settled::Idle));
    assert_eq!(bench.row("a").error, None);
    bench.reconcile("a");
    assert_eq!(bench.finish_all(), ["a", "lax", "strict"]);
}

#[test]
fn readiness_is_stored_until_the_next_completed_run() {
    let mut bench = read_by_two();
    unready(&mut bench, "a", "it starts");
    bench.finish_all();
    bench.restart();
    assert_eq!(bench.row("a").unready.as_deref(), Some("it starts"));
    bench.fail("a");
    assert_eq!(bench.row("a").unready, None, "its error says more");
    assert!(bench.row("a").error.is_some());
}

#[test]
fn what_was_not_ready_is_asked_for_at_a_start_whatever_its_kind_says() {
    let may_rest = |stored| StoredRow {
        may_rest: true,
        ..stored
    };
    let mut bench = read_by_two();
    unready(&mut bench, "a", "it starts");
    bench.finish_all();
    bench.starts();
    bench.restart_from(may_rest);
    assert_eq!(bench.starts(), ["a"]);
    unready(&mut bench, "a", "it starts");
    bench.finish_all();
    bench.restart_from(may_rest);
    assert_eq!(bench.finish_all(), ["a", "lax", "strict"]);
    bench.starts();
    bench.restart_from(may_rest);
    assert!(bench.starts().is_empty(), "all is well");
}

#[test]
fn a_run_that_finds_the_same_readiness_is_not_stored_and_one_that_finds_another_is() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    bench.reconcile("a");
    unready(&mut bench, "a", "it starts");
    let before = bench.row("a").revision;
    bench.reconcile("a");
    unready(&mut bench, "a", "it starts");
    assert_eq!(bench.row("a").revision, before);
    for why in ["it stops", "it starts"] {
        let before = bench.row("a").revision;
        bench.reconcile("a");
        unready(&mut bench, "a", why);
        assert!(bench.row("a").revision > before, "{why}");
    }
    let before = bench.row("a").revision;
    bench.reconcile("a");
    bench.returns("a", Returned::Done(Outcome::unchanged()));
    assert!(bench.row("a").revision > before && bench.row("a").unready.is_none());
}
