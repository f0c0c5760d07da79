//! Tests of a failure's traces: what remains after a success, and the timers.

use std::time::Duration;

use crate::testing::{Bench, target};
use crate::{
    Blocker, Call, Error, KindOptions, Limits, Outcome, RetryPolicy, Returned, Settled, Stage, Work,
};

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

/// Returns the wait before the next attempt of `a`.
fn wait(bench: &Bench) -> Duration {
    let said = bench.core.explain(&target("a")).expect("it is there");
    match said.because {
        Blocker::RetryIn(wait) => wait,
        other => panic!("it is not tried again: {other:?}"),
    }
}

#[test]
fn a_success_leaves_nothing_of_failures_where_no_time_is_asked_for() {
    let mut bench = bench(Duration::ZERO);
    bench.returns("a", flaky());
    assert_eq!((attempts(&bench), wait(&bench)), (1, 4 * SECOND));
    bench.pass(4 * SECOND);
    bench.finish("a");
    assert_eq!((attempts(&bench), bench.timer), (0, None));
    bench.call(Call::Nudge(target("a")));
    bench.returns("a", flaky());
    assert_eq!((attempts(&bench), wait(&bench)), (1, 4 * SECOND));
}

#[test]
fn a_success_ends_the_row_of_failures_and_waits_stay_long_until_it_has_lasted() {
    let mut bench = bench(10 * SECOND);
    bench.returns("a", flaky());
    bench.pass(4 * SECOND);
    bench.finish("a");
    assert_eq!(attempts(&bench), 0);
    bench.pass(5 * SECOND);
    bench.call(Call::Nudge(target("a")));
    bench.returns("a", flaky());
    assert_eq!((attempts(&bench), wait(&bench)), (1, 8 * SECOND));
    bench.pass(5 * SECOND);
    assert_eq!(wait(&bench), 3 * SECOND, "nothing is forgiven after a failure");
    bench.pass(3 * SECOND);
    bench.finish("a");
    bench.pass(10 * SECOND);
    bench.call(Call::Nudge(target("a")));
    bench.returns("a", flaky());
    assert_eq!((attempts(&bench), wait(&bench)), (1, 4 * SECOND));
}

#[test]
fn failures_between_successes_never_use_the_attempts_up() {
    let mut bench = bench(600 * SECOND);
    for _ in 0..30 {
        bench.returns("a", flaky());
        assert_eq!(attempts(&bench), 1);
        assert_eq!(bench.stage("a"), Stage::Settled(Settled::Retrying));
        bench.pass(60 * SECOND);
        bench.finish("a");
        bench.call(Call::Nudge(target("a")));
    }
}

#[test]
fn a_request_to_look_again_forgets_no_failures_and_one_for_other_work_does() {
    let mut bench = bench(10 * SECOND);
    for failures in 1..9 {
        bench.returns("a", flaky());
        assert_eq!(attempts(&bench), failures);
        bench.reconcile("a");
    }
    bench.returns("a", flaky());
    assert_eq!(bench.stage("a"), Stage::Settled(Settled::Failed), "used up");
    bench.reconcile("a");
    bench.returns("a", flaky());
    assert_eq!(
        bench.stage("a"),
        Stage::Settled(Settled::Failed),
        "and a look is no attempt more"
    );
    let refresh = Call::Refresh {
        target: target("a"),
        full: false,
    };
    for anew in [refresh, Call::Retry(target("a"))] {
        bench.call(anew);
        bench.returns("a", flaky());
        assert_eq!((attempts(&bench), wait(&bench)), (1, 4 * SECOND));
    }
    bench.edit_spec("a", "other");
    bench.returns("a", flaky());
    assert_eq!((attempts(&bench), wait(&bench)), (1, 4 * SECOND));
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

/// Returns true if a run of `a` that finds nothing to do is counted without a write.
fn is_no_op(bench: &mut Bench) -> bool {
    let before = bench.core.revision();
    let looked = Outcome::from_work(Work::Checked);
    bench.returns("a", Returned::Done(looked));
    bench.core.revision() == before
}

#[test]
fn a_look_after_a_success_is_not_stored_though_waits_are_still_long() {
    let mut bench = bench(10 * SECOND);
    bench.returns("a", flaky());
    bench.pass(4 * SECOND);
    assert!(!is_no_op(&mut bench), "that one ended the failures");
    bench.call(Call::Nudge(target("a")));
    assert!(is_no_op(&mut bench));
    bench.call(Call::Nudge(target("a")));
    bench.returns("a", flaky());
    assert_eq!(wait(&bench), 8 * SECOND);
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
