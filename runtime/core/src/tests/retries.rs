//! Tests of retries, deadlines, resyncs and pauses.

use std::time::Duration;

use crate::testing::{Bench, target};
use crate::{
    Answer, Blocker, Call, Edit, Error, Key, KindOptions, Limits, OnOwned, RetryPolicy, Returned, RunOutcome,
    Settled, Stage, Trigger, Update,
};

const SECOND: Duration = Duration::from_secs(1);

fn flaky() -> Returned {
    Returned::Failed(Error::transient("flaky", "it did not work this time"))
}

fn retrying(attempts: u32) -> KindOptions {
    KindOptions {
        retry: RetryPolicy::Backoff {
            base: SECOND,
            cap: 3 * SECOND,
            attempts,
            reset_after: 10 * SECOND,
        },
        on_owned: OnOwned::Exhausted,
        ..KindOptions::new("k")
    }
}

fn bench(options: KindOptions) -> Bench {
    let mut bench = Bench::with(vec![options], Limits::default());
    bench.create(&[("a", &[])]);
    bench.starts();
    bench
}

#[test]
fn retries_wait_twice_as_long_each_time_up_to_their_cap() {
    let mut bench = bench(retrying(9));
    for wait in [1, 2, 3, 3] {
        bench.returns("a", flaky());
        assert_eq!(bench.stage("a"), Stage::Settled(Settled::Retrying));
        bench.pass(wait * SECOND - Duration::from_millis(1));
        assert!(!bench.is_running("a"));
        bench.pass(Duration::from_millis(1));
        assert_eq!(bench.running("a").reason.trigger, Trigger::Retry);
    }
}

#[test]
fn retries_spread_within_the_second_half_of_the_wait() {
    let limits = Limits {
        jitter: Some(7),
        ..Limits::default()
    };
    let mut bench = Bench::with(vec![retrying(9)], limits);
    bench.create(&[("a", &[])]);
    bench.returns("a", flaky());
    bench.pass(SECOND / 2 - Duration::from_millis(1));
    assert!(!bench.is_running("a"));
    bench.pass(SECOND / 2 + Duration::from_millis(1));
    assert!(bench.is_running("a"));
}

#[test]
fn retry_after_replaces_the_wait_once() {
    let mut bench = bench(retrying(9));
    let mut error = Error::transient("busy", "come back later");
    error.retry_after = Some(30 * SECOND);
    bench.returns("a", Returned::Failed(error));
    bench.pass(29 * SECOND);
    assert!(!bench.is_running("a"));
    bench.pass(SECOND);
    bench.returns("a", flaky());
    bench.pass(2 * SECOND);
    assert!(bench.is_running("a"));
}

#[test]
fn retries_are_for_transient_errors_of_kinds_that_want_them() {
    let mut bench = bench(retrying(9));
    bench.fail("a");
    bench.pass(600 * SECOND);
    assert!(!bench.is_running("a"), "permanent");
    let mut bench = Bench::new();
    bench.create(&[("a", &[])]);
    bench.returns("a", flaky());
    bench.pass(600 * SECOND);
    assert!(!bench.is_running("a"), "never");
}

#[test]
fn retries_that_are_used_up_ask_the_owner_and_an_edit_starts_anew() {
    let mut bench = Bench::with(vec![retrying(2)], Limits::default());
    bench.create(&[("owner", &[])]);
    let mut owned = bench.new_resource("a", &[]);
    owned.owner = Some(bench.row("owner").uid);
    bench.apply(vec![Edit::create(owned)]);
    bench.finish("owner");
    bench.returns("a", flaky());
    bench.pass(SECOND);
    bench.starts();
    bench.returns("a", flaky());
    assert_eq!(bench.stage("a"), Stage::Settled(Settled::Failed));
    assert_eq!(bench.starts(), ["owner"]);
    assert_eq!(bench.running("owner").reason.trigger, Trigger::Recovered);
    bench.finish_all();
    bench.pass(600 * SECOND);
    assert!(bench.starts().is_empty(), "no further retry is set");
    bench.edit_spec("a", "new");
    bench.returns("a", flaky());
    assert_eq!(bench.row("a").attempts, 1);
    assert_eq!(bench.stage("a"), Stage::Settled(Settled::Retrying));
}

#[test]
fn attempts_survive_a_restart() {
    let mut bench = bench(retrying(3));
    bench.returns("a", flaky());
    bench.restart();
    bench.returns("a", flaky());
    assert_eq!(bench.row("a").attempts, 2);
    bench.pass(2 * SECOND);
    bench.returns("a", flaky());
    assert_eq!(bench.stage("a"), Stage::Settled(Settled::Failed));
}

#[test]
fn retry_by_hand_runs_what_failed_at_once_and_nothing_else() {
    let mut bench = bench(retrying(1));
    bench.returns("a", flaky());
    bench.call(Call::Retry(target("a")));
    assert_eq!(bench.running("a").reason.trigger, Trigger::Retry);
    bench.finish("a");
    bench.starts();
    bench.call(Call::Retry(target("a")));
    assert!(bench.starts().is_empty());
    // Deletes that failed too, though their name is free.
    bench.delete("a");
    bench.fail("a");
    bench.starts();
    bench.call(Call::Retry(target("a")));
    assert_eq!(bench.finish_all(), ["delete a"]);
}

#[test]
fn an_invocation_that_takes_too_long_is_cancelled_and_has_failed() {
    let mut options = retrying(9);
    options.deadline = Some(5 * SECOND);
    let mut bench = bench(options);
    let call = bench.reconcile("a");
    bench.finish("a");
    bench.pass(4 * SECOND);
    assert!(!bench.is_cancelled("a"));
    bench.pass(SECOND);
    assert!(bench.is_cancelled("a"));
    bench.finish("a");
    assert!(bench.answers_to(call).iter().any(|answer| matches!(
        answer,
        Answer::Outcome(RunOutcome::Failed { error, .. }) if &*error.code == "deadline"
    )));
    bench.pass(SECOND);
    assert!(bench.is_running("a"), "it is tried again");
}

#[test]
fn request_6_a_resync_comes_an_interval_after_the_last_completed_reconcile() {
    let options = KindOptions {
        resync: Some(60 * SECOND),
        ..KindOptions::new("k")
    };
    let mut bench = bench(options);
    bench.finish("a");
    bench.pass(59 * SECOND);
    bench.reconcile("a");
    bench.finish("a");
    bench.pass(59 * SECOND);
    assert!(!bench.is_running("a"));
    bench.pass(SECOND);
    assert_eq!(bench.running("a").reason.trigger, Trigger::Resync);
    bench.finish("a");
    bench.delete("a");
    bench.finish_all();
    bench.pass(120 * SECOND);
    assert!(bench.is_idle());
}

#[test]
fn c19_a_pause_cancels_nothing_and_what_asks_meanwhile_counts_once_at_resume() {
    let mut bench = bench(KindOptions::new("k"));
    bench.create(&[("child", &["a"])]);
    bench.call(Call::Pause(target("a")));
    assert!(!bench.is_cancelled("a"));
    bench.finish("a");
    bench.finish_all();
    let call = bench.reconcile("a");
    bench.reconcile("a");
    // Those below go on with its last state.
    assert_eq!(bench.starts(), ["child"]);
    bench.finish("child");
    let outcome = Answer::Outcome(RunOutcome::NotRun(Settled::Paused));
    assert!(bench.answers_to(call).contains(&outcome));
    bench.restart();
    bench.finish_all();
    assert_eq!(bench.stage("a"), Stage::Settled(Settled::Paused));
    bench.call(Call::Resume(target("a")));
    assert_eq!(bench.finish_all(), ["a", "child"]);
    bench.call(Call::Pause(target("a")));
    bench.call(Call::Resume(target("a")));
    assert!(bench.starts().is_empty(), "nothing asked meanwhile");
}

#[test]
fn what_resumes_or_is_tried_again_by_hand_is_still_led_back_to_its_edit() {
    let mut bench = bench(KindOptions::new("k"));
    bench.returns("a", flaky());
    let chain = |bench: &Bench| -> Vec<Trigger> {
        let running = bench.running("a");
        let key = Key::new("k", "a");
        let links = running.reason.chain(&key);
        links.iter().map(|link| link.reason.trigger).collect()
    };
    for _ in 0..2 {
        bench.call(Call::Retry(target("a")));
        assert_eq!(chain(&bench), [Trigger::Created, Trigger::Retry]);
        bench.returns("a", flaky());
    }
    bench.starts();
    bench.call(Call::Pause(target("a")));
    bench.edit_spec("a", "2");
    bench.reconcile("a");
    assert!(bench.starts().is_empty());
    bench.call(Call::Resume(target("a")));
    assert_eq!(chain(&bench), [Trigger::Edited, Trigger::Recovered]);
}

#[test]
fn c19_a_paused_resource_runs_once_by_force_and_is_renamed_and_deleted() {
    let mut bench = bench(KindOptions::new("k"));
    bench.finish("a");
    bench.call(Call::Pause(target("a")));
    bench.starts();
    bench.call(Call::ReconcileOnce(target("a")));
    assert_eq!(bench.finish_all(), ["a"]);
    bench.edit_spec("a", "new");
    bench.apply(vec![Edit::rename(Key::new("k", "a"), "b")]);
    assert_eq!(bench.finish_all(), ["rename b"]);
    bench.delete("b");
    assert_eq!(bench.finish_all(), ["delete b"]);
}

fn backoff(base: Duration, attempts: u32) -> RetryPolicy {
    RetryPolicy::Backoff {
        base,
        cap: 60 * SECOND,
        attempts,
        reset_after: 10 * SECOND,
    }
}

/// Builds `a` with a retry policy of its own, in a kind with another one.
fn overridden(of_kind: RetryPolicy, own: RetryPolicy) -> Bench {
    let options = KindOptions {
        retry: of_kind,
        ..KindOptions::new("k")
    };
    let mut bench = Bench::with(vec![options], Limits::default());
    let new = bench.new_resource("a", &[]).with_retry(own);
    bench.apply(vec![Edit::create(new)]);
    bench.starts();
    bench
}

fn set_policy(bench: &mut Bench, policy: Option<RetryPolicy>) {
    let update = Update {
        retry: Some(policy),
        ..Update::default()
    };
    bench.apply(vec![Edit::update(Key::new("k", "a"), update)]);
}

fn retries_in(bench: &Bench) -> Option<Duration> {
    match bench.core.explain(&target("a")).unwrap().because {
        Blocker::RetryIn(wait) => Some(wait),
        _ => None,
    }
}

#[test]
fn a_policy_of_its_own_holds_instead_of_that_of_the_kind() {
    let mut own = overridden(RetryPolicy::Never, backoff(5 * SECOND, 2));
    own.returns("a", flaky());
    assert_eq!(retries_in(&own), Some(5 * SECOND));
    own.pass(5 * SECOND);
    own.returns("a", flaky());
    assert_eq!(own.stage("a"), Stage::Settled(Settled::Failed), "used up");

    let mut never = overridden(backoff(SECOND, 9), RetryPolicy::Never);
    never.returns("a", flaky());
    assert_eq!(never.stage("a"), Stage::Settled(Settled::Failed));
    assert_eq!(never.row("a").attempts, 1);
    never.pass(600 * SECOND);
    assert!(never.starts().is_empty());
}

#[test]
fn a_policy_and_its_attempts_survive_a_restart() {
    let mut bench = overridden(RetryPolicy::Never, backoff(SECOND, 3));
    bench.returns("a", flaky());
    bench.restart();
    bench.returns("a", flaky());
    assert_eq!(bench.row("a").attempts, 2);
    assert_eq!(retries_in(&bench), Some(2 * SECOND));
    bench.restart();
    bench.returns("a", flaky());
    assert_eq!(bench.stage("a"), Stage::Settled(Settled::Failed), "used up");
}

#[test]
fn another_policy_asks_for_nothing_cancels_nothing_and_is_no_change_of_the_spec() {
    let mut bench = overridden(RetryPolicy::Never, RetryPolicy::Never);
    let version = bench.row("a").spec_version;
    set_policy(&mut bench, Some(backoff(SECOND, 2)));
    assert!(!bench.is_cancelled("a"));
    assert_eq!(bench.row("a").spec_version, version);
    bench.finish("a");
    assert!(bench.starts().is_empty());
    let revision = bench.row("a").revision;
    set_policy(&mut bench, Some(backoff(SECOND, 2)));
    assert_eq!(bench.row("a").revision, revision, "it was so before");
    set_policy(&mut bench, None);
    assert_eq!(bench.row("a").retry, None);
    assert!(bench.starts().is_empty());
}

#[test]
fn another_policy_holds_also_for_the_failure_that_stands() {
    let mut bench = overridden(backoff(SECOND, 9), backoff(30 * SECOND, 9));
    bench.returns("a", flaky());
    bench.pass(4 * SECOND);
    set_policy(&mut bench, Some(backoff(10 * SECOND, 9)));
    assert_eq!(retries_in(&bench), Some(6 * SECOND), "counted from the failure");
    set_policy(&mut bench, Some(RetryPolicy::Never));
    assert_eq!(bench.stage("a"), Stage::Settled(Settled::Failed));
    bench.pass(60 * SECOND);
    assert!(bench.starts().is_empty());
    // What its kind has it wait for is over long since.
    set_policy(&mut bench, None);
    bench.pass(Duration::ZERO);
    assert_eq!(bench.running("a").reason.trigger, Trigger::Retry);
}

#[test]
fn more_attempts_revive_what_had_used_them_up_and_fewer_end_it() {
    let mut bench = overridden(RetryPolicy::Never, backoff(SECOND, 1));
    bench.returns("a", flaky());
    assert_eq!(bench.stage("a"), Stage::Settled(Settled::Failed));
    set_policy(&mut bench, Some(backoff(SECOND, 2)));
    assert_eq!(bench.stage("a"), Stage::Settled(Settled::Retrying));
    set_policy(&mut bench, Some(backoff(SECOND, 1)));
    assert_eq!(bench.stage("a"), Stage::Settled(Settled::Failed));
    bench.pass(60 * SECOND);
    assert!(bench.starts().is_empty());
}

#[test]
fn another_policy_brings_back_no_retry_that_was_taken_up() {
    let mut bench = overridden(RetryPolicy::Never, backoff(SECOND, 9));
    bench.returns("a", flaky());
    bench.pass(SECOND);
    assert!(bench.is_running("a"));
    bench.call(Call::Cancel(target("a")));
    bench.finish("a");
    bench.starts();
    set_policy(&mut bench, Some(backoff(2 * SECOND, 9)));
    bench.pass(60 * SECOND);
    assert!(bench.starts().is_empty(), "it was cancelled by a caller");
}

#[test]
fn waits_are_short_again_by_the_policy_that_is_in_force() {
    let waits_after = |policy: Option<RetryPolicy>, pass: u32| {
        let mut bench = overridden(RetryPolicy::Never, backoff(SECOND, 9));
        bench.returns("a", flaky());
        bench.pass(SECOND);
        bench.finish("a");
        bench.pass(4 * SECOND);
        set_policy(&mut bench, policy);
        bench.pass(pass * SECOND);
        // Whatever was remembered is seen by the policy that it had.
        set_policy(&mut bench, Some(backoff(SECOND, 9)));
        bench.call(Call::Nudge(target("a")));
        bench.returns("a", flaky());
        retries_in(&bench)
    };
    assert_eq!(
        waits_after(Some(backoff(2 * SECOND, 9)), 9),
        Some(2 * SECOND),
        "counted from the change"
    );
    assert_eq!(waits_after(Some(backoff(2 * SECOND, 9)), 10), Some(SECOND));
    assert_eq!(
        waits_after(None, 0),
        Some(SECOND),
        "one without a time remembers nothing"
    );
}

#[test]
fn a_resource_without_a_policy_costs_one_pointer() {
    let bench = bench(retrying(9));
    assert_eq!(size_of_val(&bench.row("a").retry), size_of::<usize>());
}
