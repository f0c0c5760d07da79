//! Tests of times: the host's timer, the smallest requeue interval, and used requeue times.

use std::time::Duration;

use crate::testing::{Bench, target};
use crate::{
    AtStart, Call, Edit, Error, KindOptions, Limits, Mono, Nudging, Outcome, RetryPolicy, Returned, Settled,
    Stage, Timestamp,
};

const SECOND: Duration = Duration::from_secs(1);

fn wall_after(bench: &Bench, wait: Duration) -> Option<i64> {
    Some(bench.now.wall.after(wait).0)
}

#[test]
fn the_timer_is_set_to_what_is_due_first() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[]), ("b", &[])]);
    assert_eq!(bench.timer, None, "nothing is due");
    let at = wall_after(&bench, 20 * SECOND);
    bench.finish_at("a", at);
    assert_eq!(bench.timer, Some(bench.now.mono.after(20 * SECOND)));
    let at = wall_after(&bench, 5 * SECOND);
    bench.finish_at("b", at);
    let due = bench.now.mono.after(5 * SECOND);
    assert_eq!(bench.timer, Some(due));
    bench.pass(5 * SECOND);
    bench.finish("b");
    assert_eq!(bench.timer, Some(due.after(15 * SECOND)), "the other one is next");
}

#[test]
fn the_timer_looks_at_the_clock_once_a_minute_while_a_time_is_to_come() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[])]);
    let at = wall_after(&bench, 3600 * SECOND);
    bench.finish_at("a", at);
    assert_eq!(bench.timer, Some(bench.now.mono.after(60 * SECOND)));
    bench.pass(60 * SECOND);
    assert_eq!(bench.timer, Some(bench.now.mono.after(60 * SECOND)));
    // The clock was set forward: noticed at the next look.
    bench.now.wall = bench.now.wall.after(3600 * SECOND);
    bench.starts();
    bench.pass(60 * SECOND);
    assert_eq!(bench.starts(), ["a"]);
}

#[test]
fn a_resync_is_no_nearer_than_a_requeue() {
    let (micro, milli) = (Duration::from_micros, Duration::from_millis);
    for (resync, least, wait) in [
        (Duration::ZERO, milli(100), milli(100)),
        (micro(999), milli(100), milli(100)),
        (milli(99), milli(100), milli(100)),
        (milli(101), milli(100), milli(101)),
        (Duration::ZERO, Duration::ZERO, milli(1)),
        (micro(500), micro(1), milli(1)),
        (Duration::MAX, milli(100), Duration::MAX),
    ] {
        let options = KindOptions {
            resync: Some(resync),
            requeue_interval: least,
            ..KindOptions::new("k")
        };
        let mut bench = Bench::with(vec![options], Limits::default());
        bench.settled(&[("a", &[])]);
        bench.starts();
        assert_eq!(
            bench.timer,
            Some(bench.now.mono.after(wait)),
            "{resync:?}, {least:?}"
        );
        bench.pass(wait.saturating_sub(milli(1)).min(SECOND));
        assert!(bench.starts().is_empty(), "{resync:?}, {least:?}");
    }
}

#[test]
fn what_waits_for_a_place_is_looked_at_again_no_sooner_than_the_clock_goes_on() {
    let limits = Limits::default().concurrency(1).promote_after(Duration::ZERO);
    let mut bench = Bench::with(vec![KindOptions::new("k")], limits);
    bench.create(&[("a", &[]), ("b", &[])]);
    assert_eq!(bench.starts(), ["a"]);
    assert_eq!(bench.timer, Some(bench.now.mono.after(Duration::from_millis(1))));
}

/// Sets the wall clock forward by this many milliseconds, or back.
fn set_clock(bench: &mut Bench, ms: i64) {
    bench.now.wall.0 += ms;
    bench.pass(Duration::ZERO);
}

fn waits(bench: &mut Bench, outcome: Outcome) {
    bench.returns("a", Returned::Done(outcome));
    assert!(bench.starts().is_empty());
}

#[test]
fn a_wait_holds_for_its_length_however_the_clock_is_set() {
    for ms in [-3_600_000, 3_600_000] {
        let mut bench = Bench::new();
        bench.create(&[("a", &[])]);
        bench.starts();
        waits(&mut bench, Outcome::changed().requeue_after(60 * SECOND));
        set_clock(&mut bench, ms);
        bench.pass(59 * SECOND);
        assert!(bench.starts().is_empty(), "{ms}");
        bench.pass(SECOND);
        assert_eq!(bench.starts(), ["a"], "{ms}");
        bench.finish("a");
        bench.pass(7_200 * SECOND);
        assert!(bench.starts().is_empty(), "it is used up");
        assert_eq!(bench.row("a").next_reconcile, None);
    }
}

#[test]
fn a_wait_is_never_longer_than_it_was_to_be_over_a_restart() {
    let kind = KindOptions {
        at_start: AtStart::AskIfUnsettled,
        ..KindOptions::new("k")
    };
    let mut bench = Bench::with(vec![kind], Limits::default());
    bench.create(&[("a", &[])]);
    bench.starts();
    waits(&mut bench, Outcome::changed().requeue_after(60 * SECOND));
    bench.pass(20 * SECOND);
    bench.restart();
    bench.pass(40 * SECOND - Duration::from_millis(1));
    assert!(bench.starts().is_empty(), "what is left of it counts");
    bench.pass(Duration::from_millis(1));
    assert_eq!(bench.starts(), ["a"]);
    waits(&mut bench, Outcome::unchanged().requeue_after(60 * SECOND));
    for _ in 0..2 {
        bench.now.wall.0 -= 3_600_000;
        bench.restart();
        bench.pass(59 * SECOND);
        assert!(bench.starts().is_empty());
    }
    bench.pass(SECOND);
    assert_eq!(bench.starts(), ["a"]);
    // A time of day is one after a restart, too.
    let at = wall_after(&bench, 60 * SECOND);
    bench.finish_at("a", at);
    bench.now.wall.0 -= 3_600_000;
    bench.restart();
    bench.pass(3_600 * SECOND);
    assert!(bench.starts().is_empty());
    bench.pass(60 * SECOND);
    assert_eq!(bench.starts(), ["a"]);
}

#[test]
fn of_a_time_and_a_wait_the_first_counts() {
    for (at, back, due) in [(30, 0, 30), (90, 0, 60), (60, 3_600_000, 60), (30, 3_600_000, 60)] {
        for fails in [false, true] {
            let mut bench = Bench::new();
            bench.create(&[("a", &[])]);
            bench.starts();
            let retrigger = Some(bench.now.wall.after(at * SECOND));
            let requeue_after = Some(60 * SECOND);
            let mut error = Error::permanent("broken", "it does not work");
            (error.retrigger, error.requeue_after) = (retrigger, requeue_after);
            let outcome = Outcome {
                retrigger,
                requeue_after,
                ..Outcome::changed()
            };
            bench.returns(
                "a",
                if fails {
                    Returned::Failed(error)
                } else {
                    Returned::Done(outcome)
                },
            );
            set_clock(&mut bench, -back);
            bench.pass(due * SECOND - Duration::from_millis(1));
            assert!(bench.starts().is_empty(), "{at} {back}");
            bench.pass(Duration::from_millis(1));
            assert_eq!(bench.starts(), ["a"], "{at} {back}");
            bench.finish("a");
            bench.pass(7_200 * SECOND);
            assert!(bench.starts().is_empty(), "the other one is over with it");
        }
    }
}

#[test]
fn a_failed_run_that_says_nothing_leaves_a_wait_as_it_is() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[])]);
    bench.starts();
    waits(&mut bench, Outcome::changed().requeue_after(60 * SECOND));
    bench.pass(20 * SECOND);
    bench.reconcile("a");
    bench.starts();
    bench.fail("a");
    set_clock(&mut bench, -3_600_000);
    bench.pass(39 * SECOND);
    assert!(bench.starts().is_empty());
    bench.pass(SECOND);
    assert_eq!(bench.starts(), ["a"]);
}

#[test]
fn a_clock_that_is_set_back_during_a_run_does_not_defer_the_next() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[])]);
    bench.starts();
    set_clock(&mut bench, -3_600_000);
    let at = wall_after(&bench, SECOND);
    bench.finish_at("a", at);
    bench.pass(SECOND);
    assert_eq!(bench.starts(), ["a"]);
}

#[test]
fn a_requeue_time_is_at_least_an_interval_after_the_start_of_its_run() {
    let interval = Duration::from_millis(100);
    for wanted in [0, 1_000_000, 1_000_099] {
        let mut bench = Bench::new();
        bench.create(&[("a", &[])]);
        bench.starts();
        let due = bench.now.wall.after(interval);
        bench.finish_at("a", Some(wanted));
        assert_eq!(bench.row("a").next_reconcile, Some(due), "{wanted}");
        assert_eq!(bench.timer, Some(bench.now.mono.after(interval)));
        bench.pass(interval - Duration::from_millis(1));
        assert!(bench.starts().is_empty());
        bench.pass(Duration::from_millis(1));
        assert_eq!(bench.starts(), ["a"]);
        bench.finish("a");
        assert_eq!(bench.row("a").next_reconcile, None);
    }
}

#[test]
fn a_run_longer_than_its_interval_may_run_again_at_once() {
    let mut bench = Bench::with_concurrency(1);
    bench.settled(&[("a", &[]), ("b", &[])]);
    bench.reconcile("a");
    bench.reconcile("b");
    bench.starts();
    bench.pass(SECOND);
    bench.finish_at("a", Some(0));
    assert_eq!(bench.starts(), ["b"], "a request comes before a requeue");
    bench.finish("b");
    assert_eq!(bench.starts(), ["a"]);
}

#[test]
fn each_kind_has_its_own_smallest_requeue_interval() {
    let slow = KindOptions {
        requeue_interval: 10 * SECOND,
        ..KindOptions::new("k")
    };
    let mut bench = Bench::with(vec![slow], Limits::default());
    bench.create(&[("a", &[])]);
    bench.starts();
    let soon = wall_after(&bench, SECOND);
    bench.finish_at("a", soon);
    bench.pass(9 * SECOND);
    assert!(bench.starts().is_empty());
    bench.pass(SECOND);
    assert_eq!(bench.starts(), ["a"]);
}

#[test]
fn no_requeue_falls_due_while_the_controller_stops() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[]), ("b", &[])]);
    let at = wall_after(&bench, SECOND);
    bench.finish_at("a", at);
    bench.starts();
    let grace = 30 * SECOND;
    let end = bench.now.mono.after(grace);
    bench.input(crate::Input::Shutdown { grace });
    bench.pass(2 * SECOND);
    assert!(bench.starts().is_empty());
    assert_eq!(bench.timer, Some(end), "it is not looked at again and again");
}

#[test]
fn a_time_that_fell_due_while_it_was_paused_is_used_up() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[])]);
    let at = wall_after(&bench, SECOND);
    bench.finish_at("a", at);
    assert_eq!(bench.row("a").next_reconcile, at.map(Timestamp));
    bench.call(Call::Pause(target("a")));
    bench.pass(SECOND);
    assert_eq!(bench.stage("a"), Stage::Settled(Settled::Paused));
    assert_eq!(bench.row("a").next_reconcile, None);
}

#[test]
fn request_8_nudging_all_takes_what_is_tried_again_or_looked_at_soon() {
    let flaky = || Returned::Failed(Error::transient("flaky", "it did not work"));
    let wait = |base| RetryPolicy::Backoff {
        base,
        cap: 60 * SECOND,
        attempts: 9,
        reset_after: SECOND,
    };
    for (base, resync, starts) in [
        (SECOND, None, true),
        (2 * SECOND, None, false),
        (9 * SECOND, Some(SECOND), true),
        (9 * SECOND, Some(2 * SECOND), false),
    ] {
        let kind = KindOptions {
            retry: wait(base),
            resync,
            ..KindOptions::new("k")
        };
        let mut bench = Bench::with(vec![kind], Limits::default());
        bench.create(&[("a", &[])]);
        bench.starts();
        bench.returns("a", flaky());
        bench.call(Call::NudgeAll);
        assert_eq!(!bench.starts().is_empty(), starts, "{base:?}, {resync:?}");
    }
}

#[test]
fn nothing_is_due_once_all_is_at_rest() {
    let mut bench = Bench::with_concurrency(1);
    bench.create(&[("a", &[]), ("b", &[])]);
    assert_eq!(
        bench.timer,
        Some(Mono(1_000).after(60 * SECOND)),
        "the one that waits is promoted"
    );
    bench.finish_all();
    bench.pass(60 * SECOND);
    assert_eq!(bench.timer, None);
}

#[test]
fn request_8_each_kind_has_its_own_interval() {
    let kind = |name: &str, seconds| KindOptions {
        nudging: Nudging {
            interval: seconds * SECOND,
            longest_wait: seconds * SECOND,
        },
        ..KindOptions::new(name)
    };
    let mut bench = Bench::with(vec![kind("k", 1), kind("slow", 10)], Limits::default());
    let slow = bench.new_of("slow", "b", &[]);
    bench.create(&[("a", &[])]);
    bench.apply(vec![Edit::create(slow)]);
    let at = wall_after(&bench, 5 * SECOND);
    bench.finish_at("a", at);
    bench.finish_at("b", at);
    bench.starts();
    bench.call(Call::NudgeAll);
    assert_eq!(bench.starts(), ["b"]);
}
