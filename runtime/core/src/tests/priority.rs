//! Tests of the order of starts when limits are reached.

use std::time::Duration;

use crate::testing::{Bench, target};
use crate::{Call, Edit, Key, KindOptions, Limits, Pool};

/// Takes the only place with a running resource, so that later requests have to wait.
fn busy(bench: &mut Bench, resources: &[(&str, &[&str])]) {
    bench.settled(resources);
    bench.settled(&[("busy", &[])]);
    bench.reconcile("busy");
    bench.starts();
}

#[test]
fn c12_requests_and_edits_come_before_times_and_these_before_drift_checks() {
    let mut bench = Bench::with_concurrency(1);
    busy(
        &mut bench,
        &[("a_nudged", &[]), ("edited", &[]), ("requested", &[])],
    );
    bench.call(Call::Nudge(target("a_nudged")));
    bench.reconcile("requested");
    bench.edit_spec("edited", "new");
    assert_eq!(bench.finish_all(), ["edited", "requested", "a_nudged"]);
}

#[test]
fn c12_what_a_request_waits_for_inherits_its_priority() {
    let mut bench = Bench::with_concurrency(1);
    busy(&mut bench, &[("z", &[]), ("child", &["z"]), ("nudged", &[])]);
    bench.call(Call::Nudge(target("z")));
    bench.call(Call::Nudge(target("nudged")));
    bench.reconcile("child");
    assert_eq!(bench.finish_all(), ["z", "child", "nudged"]);
}

#[test]
fn c12_waiting_promotes_so_that_nothing_starves() {
    let mut bench = Bench::with_concurrency(1);
    busy(&mut bench, &[("a", &[]), ("b", &[]), ("nudged", &[])]);
    bench.call(Call::Nudge(target("nudged")));
    let mut ran = Vec::new();
    for _ in 0..6 {
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
fn c12_within_a_priority_the_longest_remaining_path_comes_first() {
    let mut bench = Bench::with_concurrency(1);
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
fn c12_what_is_asked_for_inherits_from_what_waits_for_it_already() {
    let mut bench = Bench::with_concurrency(1);
    busy(&mut bench, &[("z", &[]), ("child", &["z"]), ("nudged", &[])]);
    bench.reconcile("child");
    bench.call(Call::Nudge(target("nudged")));
    bench.call(Call::Nudge(target("z")));
    assert_eq!(bench.finish_all(), ["z", "child", "nudged"]);
}

#[test]
fn c12_nothing_is_inherited_from_what_only_a_parent_asks_for() {
    let second = Duration::from_secs(1);
    let checked = KindOptions {
        resync: Some(10 * second),
        ..KindOptions::new("k")
    };
    let limits = Limits {
        concurrency: 1,
        ..Limits::default()
    };
    let mut bench = Bench::with(vec![checked, KindOptions::new("z")], limits);
    bench.create(&[("a", &[])]);
    let news = [("child", &["a"][..]), ("busy", &[]), ("nudged", &[])];
    let news = news.map(|(name, parents)| Edit::create(bench.new_of("z", name, parents)));
    bench.apply(news.into());
    bench.finish_all();
    bench.call(Call::Reconcile(Key::new("z", "busy").into()));
    bench.pass(10 * second);
    bench.call(Call::Nudge(Key::new("z", "nudged").into()));
    bench.starts();
    // Its child is pending with the priority of a parent, which is above that of the check itself.
    bench.finish("busy");
    assert_eq!(bench.finish_all(), ["nudged", "a", "child"]);
}

#[test]
fn c12_a_request_that_was_cancelled_lends_its_place_to_no_later_one() {
    let mut bench = Bench::with_concurrency(1);
    busy(&mut bench, &[("a", &[]), ("edited", &[])]);
    bench.reconcile("a");
    bench.call(Call::Cancel(target("a")));
    bench.call(Call::Nudge(target("a")));
    bench.edit_spec("edited", "new");
    assert_eq!(bench.finish_all(), ["edited", "a"]);
}

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn c12_each_minute_of_waiting_promotes_also_beyond_the_highest_priority() {
    let mut bench = Bench::with_concurrency(1);
    busy(&mut bench, &[("a", &[]), ("b", &[]), ("c", &[])]);
    bench.reconcile("c");
    bench.pass(MINUTE);
    bench.reconcile("b");
    bench.pass(MINUTE);
    bench.reconcile("a");
    assert_eq!(bench.finish_all(), ["c", "b", "a"]);
}

#[test]
fn c12_only_what_has_waited_for_a_minute_is_promoted() {
    let mut bench = Bench::with_concurrency(1);
    busy(&mut bench, &[("nudged", &[]), ("late", &[]), ("a", &[])]);
    bench.call(Call::Nudge(target("nudged")));
    bench.pass(MINUTE / 2);
    bench.call(Call::Nudge(target("late")));
    bench.pass(MINUTE / 2);
    bench.reconcile("a");
    // The first counts as a request by now, the other does not.
    assert_eq!(bench.finish_all(), ["a", "nudged", "late"]);
}

#[test]
fn c12_after_a_restart_a_cancelled_run_says_nothing_of_how_long_one_takes() {
    let mut bench = Bench::with_concurrency(1);
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
