//! C12: who starts first where places are few.

use std::time::Duration;

use crate::testing::{Bench, target};
use crate::{Call, Edit, Error, Key, KindOptions, Limits, Pool, RetryPolicy, Returned};

/// Makes something run, so that what is asked for next has to wait.
fn busy(bench: &mut Bench, resources: &[(&str, &[&str])]) {
    bench.settled(resources);
    bench.settled(&[("busy", &[])]);
    bench.reconcile("busy");
    bench.starts();
}

#[test]
fn c12_explicit_requests_come_before_edits_times_and_looks_for_drift() {
    let mut bench = Bench::with_places(1);
    busy(
        &mut bench,
        &[("nudged", &[]), ("edited", &[]), ("requested", &[])],
    );
    bench.call(Call::Nudge(target("nudged")));
    bench.edit_spec("edited", "new");
    bench.reconcile("requested");
    assert_eq!(bench.finish_all(), ["requested", "edited", "nudged"]);
}

#[test]
fn c12_a_request_lends_its_class_to_what_it_waits_for() {
    let mut bench = Bench::with_places(1);
    busy(&mut bench, &[("z", &[]), ("child", &["z"]), ("edited", &[])]);
    bench.call(Call::Nudge(target("z")));
    bench.edit_spec("edited", "new");
    bench.reconcile("child");
    assert_eq!(bench.finish_all(), ["z", "child", "edited"]);
}

#[test]
fn c12_waiting_raises_the_class_so_that_nothing_starves() {
    let mut bench = Bench::with_places(1);
    busy(&mut bench, &[("a", &[]), ("b", &[]), ("nudged", &[])]);
    bench.call(Call::Nudge(target("nudged")));
    let mut ran = Vec::new();
    for _ in 0..4 {
        for name in ["a", "b"] {
            bench.pass(Duration::from_secs(16));
            bench.reconcile(name);
            let running = bench.running[0].resource.name.as_str().to_owned();
            bench.finish(&running);
            ran.append(&mut bench.starts());
        }
    }
    assert!(ran.contains(&"nudged".to_owned()), "{ran:?}");
}

#[test]
fn c12_within_a_class_the_longest_way_left_comes_first() {
    let mut bench = Bench::with_places(1);
    bench.create(&[("a", &[]), ("b", &[]), ("slow", &["b"])]);
    while let Some(start) = bench.running.first().cloned() {
        let name = start.resource.name.as_str().to_owned();
        if name == "slow" {
            bench.pass(Duration::from_secs(9));
        }
        bench.finish(&name);
    }
    assert_eq!(bench.starts(), ["a", "b", "slow"]);
    bench.restart();
    assert_eq!(bench.finish_all(), ["b", "slow", "a"]);
}

#[test]
fn c12_kinds_share_the_places_of_their_pool() {
    let pool = |limit| {
        Some(Pool {
            name: "warehouse".into(),
            limit,
            exclusive: false,
        })
    };
    let kind = |name: &str, limit| KindOptions {
        pool: pool(limit),
        ..KindOptions::new(name)
    };
    let kinds = vec![kind("k", 9), kind("l", 2), KindOptions::new("m")];
    let mut bench = Bench::with(kinds, Limits::default());
    let mut edits = Vec::new();
    for (kind, name) in [("k", "a"), ("k", "b"), ("l", "c"), ("m", "d")] {
        edits.push(Edit::create(bench.new_of(kind, name, &[])));
    }
    bench.apply(edits);
    assert_eq!(bench.starts(), ["a", "b", "d"]);
    bench.finish("b");
    assert_eq!(bench.starts(), ["c"]);
}

#[test]
fn c10_an_abandoned_invocation_keeps_its_place_in_an_exclusive_pool() {
    let kind = KindOptions {
        pool: Some(Pool {
            name: "device".into(),
            limit: 1,
            exclusive: true,
        }),
        ..KindOptions::new("k")
    };
    let mut bench = Bench::with(vec![kind], Limits::default());
    bench.settled(&[("a", &[]), ("b", &[])]);
    bench.reconcile("a");
    bench.call(Call::Cancel(Key::new("k", "a").into()));
    bench.reconcile("b");
    bench.starts();
    bench.pass(Duration::from_secs(600));
    assert!(bench.starts().is_empty());
    bench.finish("a");
    assert_eq!(bench.finish_all(), ["b", "a"]);
}

#[test]
fn c12_what_is_asked_for_takes_the_class_of_what_waits_for_it_already() {
    let mut bench = Bench::with_places(1);
    busy(&mut bench, &[("z", &[]), ("child", &["z"]), ("edited", &[])]);
    bench.reconcile("child");
    bench.edit_spec("edited", "new");
    bench.call(Call::Nudge(target("z")));
    assert_eq!(bench.finish_all(), ["z", "child", "edited"]);
}

#[test]
fn c12_what_a_parent_asks_for_lends_it_nothing() {
    let second = Duration::from_secs(1);
    let looked_at = KindOptions {
        resync: Some(10 * second),
        ..KindOptions::new("k")
    };
    let retried = KindOptions {
        retry: RetryPolicy::Backoff {
            base: 10 * second,
            cap: 10 * second,
            attempts: 9,
            reset_after: second,
        },
        ..KindOptions::new("y")
    };
    let limits = Limits {
        concurrency: 1,
        ..Limits::default()
    };
    let kinds = vec![looked_at, retried, KindOptions::new("z")];
    for runs in ["busy", "child"] {
        let mut bench = Bench::with(kinds.clone(), limits);
        bench.create(&[("a", &[])]);
        let (child, flaky) = (
            bench.new_of("z", "child", &["a"]),
            bench.new_of("y", "flaky", &[]),
        );
        let busy = bench.new_of("z", "busy", &[]);
        bench.apply(vec![Edit::create(child), Edit::create(flaky), Edit::create(busy)]);
        while let Some(start) = bench.running.first().cloned() {
            match start.resource.name.as_str() {
                "flaky" => bench.returns("flaky", Returned::Failed(Error::transient("flaky", "not now"))),
                name => bench.finish(name),
            }
        }
        bench.call(Call::Reconcile(Key::new("z", runs).into()));
        bench.starts();
        bench.pass(10 * second);
        // A retry comes before a look for drift, though something waits for that, or has run below it.
        bench.finish(runs);
        assert_eq!(bench.starts(), ["flaky"]);
    }
}

#[test]
fn c12_a_request_that_was_cancelled_lends_its_place_to_no_later_one() {
    let mut bench = Bench::with_places(1);
    busy(&mut bench, &[("a", &[]), ("edited", &[])]);
    bench.reconcile("a");
    bench.call(Call::Cancel(target("a")));
    bench.call(Call::Nudge(target("a")));
    bench.edit_spec("edited", "new");
    assert_eq!(bench.finish_all(), ["edited", "a"]);
}

#[test]
fn c12_of_those_that_have_waited_too_long_the_oldest_comes_first() {
    let mut bench = Bench::with_places(1);
    busy(&mut bench, &[("a", &[]), ("b", &[]), ("c", &[])]);
    let patience = Duration::from_secs(30);
    bench.reconcile("b");
    bench.pass(patience / 2);
    bench.reconcile("a");
    // The first is raised as soon as it has waited for long enough, and the other not yet.
    bench.pass(patience / 2);
    bench.pass(patience);
    bench.reconcile("c");
    assert_eq!(bench.finish_all(), ["b", "a", "c"]);
}

#[test]
fn c12_only_what_has_waited_for_long_enough_is_raised() {
    let mut bench = Bench::with_places(1);
    busy(&mut bench, &[("edited", &[]), ("nudged", &[])]);
    bench.edit_spec("edited", "new");
    bench.pass(Duration::from_secs(29));
    bench.call(Call::Nudge(target("nudged")));
    bench.pass(Duration::from_secs(1));
    bench.reconcile("busy");
    bench.finish("busy");
    // The edit counts as a request by now, and is raised no further by the next look, which is too early for it.
    assert_eq!(bench.starts(), ["busy"]);
    bench.finish("busy");
    assert_eq!(bench.finish_all(), ["edited", "nudged"]);
}

#[test]
fn c12_after_a_restart_a_cancelled_run_says_nothing_of_how_long_one_takes() {
    let mut bench = Bench::with_places(1);
    bench.settled(&[("a", &[]), ("b", &[])]);
    bench.reconcile("b");
    bench.pass(Duration::from_secs(9));
    bench.call(Call::Cancel(target("b")));
    bench.finish("b");
    bench.restart();
    assert_eq!(bench.finish_all(), ["a", "b"]);
}

#[test]
fn c10_an_abandoned_invocation_gives_its_place_in_another_pool_back() {
    let kind = KindOptions {
        pool: Some(Pool {
            name: "warehouse".into(),
            limit: 1,
            exclusive: false,
        }),
        ..KindOptions::new("k")
    };
    let mut bench = Bench::with(vec![kind], Limits::default());
    bench.settled(&[("a", &[]), ("b", &[]), ("c", &[])]);
    bench.reconcile("a");
    bench.call(Call::Cancel(target("a")));
    bench.reconcile("b");
    bench.reconcile("c");
    bench.starts();
    bench.pass(Duration::from_secs(600));
    assert_eq!(bench.starts(), ["b"], "one place");
    bench.finish("a");
    assert!(bench.starts().is_empty(), "it had none to give");
    bench.finish("b");
    assert_eq!(bench.starts().len(), 1);
}
