//! The timeline: what the host's timer is set to, times in the past, and what becomes of a time that was used up.

use std::time::Duration;

use crate::testing::{Bench, target};
use crate::{
    Call, Edit, Error, KindOptions, Limits, Mono, Nudging, RetryPolicy, Returned, Settled, Standing,
    Timestamp,
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
fn a_time_that_is_now_is_past() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[])]);
    let now = Some(bench.now.wall.0);
    for _ in 0..4 {
        bench.finish_at("a", now);
    }
    assert!(!bench.is_running("a"), "the fourth in a row waits for a second");
    assert_eq!(bench.timer, Some(bench.now.mono.after(SECOND)));
}

#[test]
fn a_time_in_the_past_means_the_end_of_the_queue() {
    let mut bench = Bench::with_places(1);
    bench.settled(&[("a", &[]), ("b", &[])]);
    bench.reconcile("a");
    bench.call(Call::Nudge(target("b")));
    bench.starts();
    bench.finish_at("a", Some(0));
    assert_eq!(bench.starts(), ["b"]);
    bench.finish("b");
    assert_eq!(bench.starts(), ["a"]);
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
    assert_eq!(bench.standing("a"), Standing::Settled(Settled::Paused));
    assert_eq!(bench.row("a").next_reconcile, None);
}

#[test]
fn a_past_time_that_has_to_wait_is_shown_until_it_is_taken_up() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[])]);
    for _ in 0..4 {
        bench.finish_at("a", Some(7));
    }
    assert_eq!(bench.row("a").next_reconcile, Some(Timestamp(7)));
    bench.pass(SECOND);
    bench.finish("a");
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
    let mut bench = Bench::with_places(1);
    bench.create(&[("a", &[]), ("b", &[])]);
    assert_eq!(
        bench.timer,
        Some(Mono(1_000).after(30 * SECOND)),
        "the one that waits is raised"
    );
    bench.finish_all();
    bench.pass(30 * SECOND);
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

#[test]
fn request_5_times_in_the_past_are_bounded_only_in_a_row() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[])]);
    for _ in 0..3 {
        bench.finish_at("a", Some(0));
    }
    bench.finish_at("a", None);
    bench.reconcile("a");
    bench.starts();
    bench.finish_at("a", Some(0));
    assert_eq!(bench.starts(), ["a"], "the first of another row");
}
