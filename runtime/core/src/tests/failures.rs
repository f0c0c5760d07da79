//! Traces of failures: the times at which they are forgotten, and the timers that go with them.

use std::time::Duration;

use crate::testing::{Bench, target};
use crate::{Call, Error, KindOptions, Limits, Outcome, RetryPolicy, Returned, Work};

const SECOND: Duration = Duration::from_secs(1);

fn retrying(reset_after: Duration) -> KindOptions {
    KindOptions {
        retry: RetryPolicy::Backoff {
            base: 4 * SECOND,
            cap: 60 * SECOND,
            attempts: 9,
            reset_after,
        },
        ..KindOptions::new("k")
    }
}

fn bench(reset_after: Duration) -> Bench {
    let mut bench = Bench::with(vec![retrying(reset_after)], Limits::default());
    bench.create(&[("a", &[])]);
    bench
}

fn flaky() -> Returned {
    Returned::Failed(Error::transient("flaky", "not now"))
}

fn attempts(bench: &Bench) -> u32 {
    bench.row("a").attempts
}

#[test]
fn a_success_without_failures_has_nothing_to_forget() {
    let mut bench = bench(10 * SECOND);
    bench.finish("a");
    assert_eq!((attempts(&bench), bench.timer), (0, None));
}

#[test]
fn a_success_forgets_failures_at_once_where_no_time_is_asked_for() {
    let mut bench = bench(Duration::ZERO);
    bench.returns("a", flaky());
    assert_eq!(attempts(&bench), 1);
    bench.pass(4 * SECOND);
    bench.finish("a");
    assert_eq!((attempts(&bench), bench.timer), (0, None));
}

#[test]
fn a_failure_in_time_keeps_those_before_it() {
    let mut bench = bench(10 * SECOND);
    bench.returns("a", flaky());
    bench.pass(4 * SECOND);
    bench.finish("a");
    assert_eq!(attempts(&bench), 1, "to be forgotten ten seconds from now");
    bench.pass(5 * SECOND);
    bench.call(Call::Nudge(target("a")));
    bench.returns("a", flaky());
    assert_eq!(attempts(&bench), 2);
    bench.pass(5 * SECOND);
    assert_eq!(attempts(&bench), 2, "nothing is forgiven after a failure");
}

#[test]
fn a_success_takes_the_time_of_the_retry_with_it() {
    let mut bench = bench(SECOND);
    bench.returns("a", flaky());
    bench.reconcile("a");
    bench.finish("a");
    bench.starts();
    bench.pass(60 * SECOND);
    assert!(bench.starts().is_empty());
}

#[test]
fn a_retry_that_falls_due_while_it_runs_is_that_run() {
    let mut bench = bench(SECOND);
    bench.returns("a", flaky());
    bench.reconcile("a");
    bench.starts();
    bench.pass(4 * SECOND);
    bench.finish("a");
    bench.pass(60 * SECOND);
    assert!(bench.starts().is_empty());
}

#[test]
fn retries_of_different_resources_are_spread() {
    let limits = Limits {
        jitter: Some(7),
        ..Limits::default()
    };
    let mut bench = Bench::with(vec![retrying(SECOND)], limits);
    let mut waits = std::collections::BTreeSet::new();
    for name in ["a", "b", "c", "d"] {
        bench.create(&[(name, &[])]);
        bench.returns(name, flaky());
        let due = bench.timer.expect("it is tried again");
        let wait = due.since(bench.now.mono);
        assert!(2 * SECOND <= wait && wait < 4 * SECOND, "{wait:?}");
        waits.insert(wait);
        bench.pass(wait);
        bench.finish(name);
        bench.pass(SECOND);
    }
    assert!(waits.len() > 2, "{waits:?}");
}

/// Returns true if a run that finds nothing is counted without a write.
fn is_no_op(bench: &mut Bench) -> bool {
    let before = bench.core.revision();
    let looked = Outcome::from_work(Work::Checked);
    bench.returns("a", Returned::Done(looked));
    bench.core.revision() == before
}

#[test]
fn a_look_that_leaves_failures_to_be_forgotten_is_stored() {
    let mut bench = bench(10 * SECOND);
    bench.returns("a", flaky());
    bench.pass(4 * SECOND);
    bench.finish("a");
    bench.call(Call::Nudge(target("a")));
    assert!(!is_no_op(&mut bench));
    bench.pass(10 * SECOND);
    bench.call(Call::Nudge(target("a")));
    assert!(is_no_op(&mut bench));
}

#[test]
fn a_look_that_takes_a_time_back_is_stored() {
    let mut bench = bench(SECOND);
    let at = bench.now.wall.after(10 * SECOND);
    bench.finish_at("a", Some(at.0));
    bench.reconcile("a");
    assert!(!is_no_op(&mut bench));
    assert_eq!(bench.row("a").next_reconcile, None);
    bench.reconcile("a");
    assert!(is_no_op(&mut bench));
}

#[test]
fn a_look_after_a_cancelled_run_is_stored() {
    let mut bench = bench(SECOND);
    bench.finish("a");
    bench.reconcile("a");
    bench.call(Call::Cancel(target("a")));
    bench.finish("a");
    bench.reconcile("a");
    assert!(!is_no_op(&mut bench));
    bench.reconcile("a");
    assert!(is_no_op(&mut bench));
}
