//! Tests of refs that must be ready, and of releases without an invocation.

use crate::testing::{Bench, target};
use crate::{Call, Edit, KindOptions, Limits, Parents, Ref, Required, Settled, Stage};

/// Builds `b`, which reads `a` and requires it to be ready.
fn strict() -> Bench {
    let mut bench = Bench::new();
    bench.create(&[("a", &[])]);
    let ready = Ref {
        required: Required::Ready,
        ..Ref::completed("k", "a")
    };
    let new = bench.new_resource("b", &[]).with_refs([ready]);
    bench.apply(vec![Edit::create(new)]);
    bench.starts();
    bench
}

fn waits(bench: &Bench) -> bool {
    matches!(bench.stage("b"), Stage::Settled(Settled::WaitingForRef(_)))
}

#[test]
fn what_needs_a_ready_ref_runs_once_that_has_succeeded() {
    let mut bench = strict();
    bench.fail("a");
    assert!(waits(&bench) && bench.starts().is_empty());
    bench.reconcile("a");
    assert_eq!(bench.finish_all(), ["a", "b"]);
    assert_eq!(bench.stage("b"), Stage::Settled(Settled::Idle));
}

#[test]
fn what_has_not_succeeded_with_its_present_spec_is_not_ready() {
    let mut bench = strict();
    bench.call(Call::Cancel(target("a")));
    bench.finish("a");
    assert!(waits(&bench), "it never ended");
    bench.reconcile("a");
    assert_eq!(bench.finish_all(), ["a", "b"]);
    bench.edit_spec("a", "new");
    bench.call(Call::Cancel(target("a")));
    bench.finish("a");
    assert!(waits(&bench), "it ended with an earlier spec");
}

#[test]
fn a_ready_ref_to_nothing_is_waited_for() {
    let mut bench = strict();
    bench.finish_all();
    bench.delete("a");
    assert_eq!(bench.finish_all(), ["delete a"]);
    assert!(waits(&bench));
}

#[test]
fn releases_are_counted() {
    let kind = KindOptions {
        parents: Parents::Changed,
        ..KindOptions::new("k")
    };
    let mut bench = Bench::with(vec![kind], Limits::default());
    bench.settled(&[("a", &[]), ("b", &["a"]), ("c", &["b"])]);
    let before = bench.core.counters();
    bench.reconcile("a");
    bench.finish_all();
    let after = bench.core.counters();
    assert_eq!(
        (after.releases - before.releases, after.starts - before.starts),
        (2, 1)
    );
}
