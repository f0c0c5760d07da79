//! Tests of progress under steady change: ceaseless timed requests keep no resource from completing.

use std::time::Duration;

use crate::testing::{Bench, target};
use crate::{Call, Edit, Input, KindOptions, Limits, OnTimedAncestor, RetryPolicy};

const SECOND: Duration = Duration::from_secs(1);

fn nudge(bench: &mut Bench, name: &str) {
    bench.pass(SECOND);
    bench.call(Call::Nudge(target(name)));
}

/// Lets `b` run repeatedly below `a`, cancelled each time by a nudge of `a`, for this many seconds.
fn cancelled_for(seconds: u64) -> Bench {
    let options = KindOptions {
        on_timed_ancestor: OnTimedAncestor::Cancel,
        ..KindOptions::new("k")
    };
    let mut bench = Bench::with(vec![options], Limits::default());
    bench.settled(&[("a", &[]), ("b", &["a"])]);
    nudge(&mut bench, "a");
    bench.finish("a");
    for _ in 0..seconds {
        nudge(&mut bench, "a");
        assert!(bench.is_cancelled("b"));
        bench.finish("b");
        bench.finish("a");
    }
    bench.starts();
    bench
}

#[test]
fn c17_what_timed_requests_have_cancelled_for_long_runs_to_its_end() {
    let mut bench = cancelled_for(30);
    nudge(&mut bench, "a");
    assert!(!bench.is_cancelled("b") && bench.starts().is_empty(), "deferred");
    bench.finish("b");
    bench.pass(SECOND);
    assert_eq!(bench.starts(), ["a"], "nothing is lost");
}

#[test]
fn c17_edits_and_callers_cancel_also_what_is_starved() {
    let mut bench = cancelled_for(30);
    nudge(&mut bench, "a");
    assert!(!bench.is_cancelled("b"));
    bench.edit_spec("a", "new");
    assert!(bench.is_cancelled("b"));
}

/// Keeps `r` waiting below `s` and `t` for this many seconds: nudged in turn, one of them always runs.
fn kept_waiting(seconds: u64) -> Bench {
    let mut bench = Bench::new();
    bench.settled(&[("s", &[]), ("t", &[]), ("r", &["s", "t"])]);
    bench.call(Call::Nudge(target("s")));
    keep_waiting(&mut bench, seconds);
    bench
}

/// Nudges `s` and `t` in turn; `s` runs in the end, and `t` is idle.
fn keep_waiting(bench: &mut Bench, seconds: u64) {
    for _ in 0..seconds / 2 {
        nudge(bench, "t");
        bench.finish("s");
        nudge(bench, "s");
        bench.finish("t");
    }
    assert!(!bench.is_running("r") && bench.is_running("s"));
    bench.starts();
}

#[test]
fn c17_what_timed_requests_kept_waiting_for_long_comes_before_further_ones() {
    let mut bench = kept_waiting(28);
    nudge(&mut bench, "t");
    assert_eq!(bench.starts(), ["t"], "29 s");
    bench.finish("t");
    nudge(&mut bench, "t");
    assert!(bench.starts().is_empty(), "30 s");
    bench.finish("s");
    assert_eq!(bench.starts(), ["r"]);
    nudge(&mut bench, "s");
    assert!(
        !bench.is_cancelled("r") && bench.starts().is_empty(),
        "until it has completed once"
    );
    bench.finish("r");
    bench.pass(SECOND);
    assert_eq!(bench.starts(), ["s", "t"], "nothing is lost");
}

#[test]
fn c17_only_requests_above_the_one_that_waits_are_deferred() {
    let mut bench = kept_waiting(28);
    bench.pass(SECOND * 2);
    bench.create(&[("other", &[]), ("below", &["r"])]);
    bench.finish("other");
    bench.starts();
    nudge(&mut bench, "other");
    assert_eq!(bench.starts(), ["other"]);
    bench.call(Call::Nudge(target("r")));
    bench.finish("s");
    assert_eq!(
        bench.starts(),
        ["r"],
        "a timed request of its own is none of an ancestor"
    );
}

#[test]
fn c17_waits_anew_when_something_else_than_a_timed_request_comes_from_above() {
    let mut bench = kept_waiting(20);
    bench.reconcile("t");
    bench.finish("t");
    keep_waiting(&mut bench, 20);
    keep_waiting(&mut bench, 8);
    bench.pass(SECOND);
    nudge(&mut bench, "t");
    assert!(bench.starts().is_empty(), "30 s after the request");
}

#[test]
fn c17_a_requeue_and_a_retry_are_deferred_as_well() {
    let mut options = KindOptions::new("k");
    options.timed_patience = Duration::from_secs(4);
    options.retry = RetryPolicy::Backoff {
        base: SECOND * 5,
        cap: SECOND * 5,
        attempts: 9,
        reset_after: Duration::ZERO,
    };
    let mut bench = Bench::with(vec![options], Limits::default());
    bench.settled(&[("s", &[]), ("t", &[]), ("u", &[]), ("r", &["s", "t", "u"])]);
    bench.reconcile("t");
    bench.reconcile("u");
    let at = bench.now.wall.0 + 5_000;
    bench.finish_at("t", Some(at));
    bench.returns(
        "u",
        crate::Returned::Failed(crate::Error::transient("flaky", "not now")),
    );
    bench.finish("r");
    bench.call(Call::Nudge(target("s")));
    bench.starts();
    bench.pass(SECOND * 5);
    assert!(bench.starts().is_empty(), "both are due");
    bench.finish("s");
    assert_eq!(bench.starts(), ["r"]);
    bench.finish("r");
    bench.pass(SECOND);
    assert_eq!(bench.starts(), ["t", "u"]);
}

#[test]
fn c17_what_is_taken_up_again_has_not_waited_while_its_delete_ran() {
    let mut bench = Bench::new();
    bench.settled(&[("s", &[]), ("t", &[]), ("r", &["s", "t"])]);
    bench.pass(SECOND * 40);
    bench.delete("r");
    let by = bench.running("r").invocation;
    bench.pass(SECOND * 29);
    // Its own delete takes it up: nobody else's request says since when it waits.
    let again = bench.new_resource("r", &["s", "t"]);
    bench.call_by(Some(by), Call::Apply(Edit::create(again).into()));
    nudge(&mut bench, "s");
    bench.finish("r");
    assert!(bench.is_running("s") && !bench.is_running("r"));
    bench.starts();
    nudge(&mut bench, "t");
    assert_eq!(bench.starts(), ["t"], "it has waited for two seconds, not for 31");
}

/// Stops one second before `r` has waited for too long, while `s` runs.
fn nearly_starved() -> Bench {
    let mut bench = kept_waiting(28);
    nudge(&mut bench, "t");
    bench.finish("t");
    bench.starts();
    bench
}

/// Lets `r` have its turn below `s` and `t`, after which all have just settled.
fn caught_up() -> Bench {
    let mut bench = nearly_starved();
    nudge(&mut bench, "t");
    assert!(bench.starts().is_empty());
    bench.finish("s");
    bench.finish("r");
    assert!(bench.is_idle());
    bench.starts();
    bench
}

#[test]
fn c17_nothing_is_deferred_once_all_has_settled() {
    let mut bench = caught_up();
    bench.call(Call::Nudge(target("s")));
    assert_eq!(bench.starts(), ["s"]);
    let mut bench = caught_up();
    bench.create(&[("other", &[])]);
    bench.call(Call::Nudge(target("s")));
    assert_eq!(
        bench.starts(),
        ["other", "s"],
        "nor if something is asked for then"
    );
}

#[test]
fn c17_every_look_at_who_waits_is_counted() {
    let mut bench = nearly_starved();
    bench.pass(SECOND);
    bench.unchecked = true;
    let before = bench.core.counters();
    bench.call(Call::Nudge(target("t")));
    let after = bench.core.counters();
    // What stands above `r`, once for when something came for it and once to put that off; and `r` itself.
    assert_eq!((after.nodes - before.nodes, after.edges - before.edges), (5, 4));
}

/// Builds a deferred requeue of `t`, because `r` below it has waited for long.
fn deferred() -> Bench {
    let mut options = KindOptions::new("k");
    options.timed_patience = SECOND * 4;
    let mut bench = Bench::with(vec![options], Limits::default());
    bench.settled(&[("s", &[]), ("t", &[]), ("r", &["s", "t"])]);
    bench.reconcile("t");
    let at = bench.now.wall.after(SECOND * 5);
    bench.finish_at("t", Some(at.0));
    bench.finish("r");
    bench.call(Call::Nudge(target("s")));
    bench.pass(SECOND * 5);
    assert!(bench.is_running("s") && !bench.is_running("t"));
    bench.starts();
    bench
}

#[test]
fn c17_a_deferred_request_is_forgotten_with_its_resource() {
    let mut bench = deferred();
    bench.delete("t");
    bench.finish("t");
    assert!(bench.rows.values().all(|row| row.name.as_str() != "t"));
}

#[test]
fn c17_a_deferred_request_is_dropped_during_a_shutdown() {
    let mut bench = deferred();
    let grace = SECOND * 30;
    let end = bench.now.mono.after(grace);
    bench.input(Input::Shutdown { grace });
    bench.pass(SECOND);
    assert_eq!(bench.timer, Some(end));
}
