//! Tests of requests: their reasons, the runs below that go on, and the number of visits.

use crate::testing::{Bench, refs_edit, target};
use crate::{Call, Edit, Key, Limits, Ref, Required, Trigger};

/// Takes the only place with a running resource, so that requested resources stay pending.
fn crowded(resources: &[(&str, &[&str])]) -> Bench {
    let mut bench = Bench::with_concurrency(1);
    bench.settled(&[("busy", &[])]);
    bench.settled(resources);
    bench.reconcile("busy");
    bench.starts();
    bench
}

fn why(bench: &Bench, name: &str) -> Trigger {
    let told = bench.core.explain(&target(name)).expect("it is known");
    told.reason.expect("it is asked for").trigger
}

fn nudge(bench: &mut Bench, name: &str) {
    bench.call(Call::Nudge(target(name)));
}

#[test]
fn what_is_pending_tells_its_own_request_and_of_these_the_first_that_cancels() {
    let mut bench = crowded(&[("a", &[]), ("b", &["a"])]);
    nudge(&mut bench, "a");
    assert_eq!(why(&bench, "b"), Trigger::Parent);
    nudge(&mut bench, "b");
    assert_eq!(why(&bench, "b"), Trigger::Nudge);
    bench.edit_spec("b", "new");
    assert_eq!(why(&bench, "b"), Trigger::Edited);
    bench.reconcile("b");
    assert_eq!(why(&bench, "b"), Trigger::Edited);
}

#[test]
fn what_runs_tells_of_the_first_request_of_its_own_that_came_meanwhile() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    bench.reconcile("a");
    bench.edit_spec("a", "new");
    bench.reconcile("a");
    bench.finish("a");
    assert_eq!(bench.running("a").reason.trigger, Trigger::Edited);
}

/// Lets `c` join the pending cycle of `d` and `b`, which waits for the retry of a rename while `x` still runs below.
#[test]
fn an_edit_that_widens_a_pending_cycle_cancels_what_runs_on_below_it() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &["b"]), ("b", &["d", "c"]), ("c", &["c"]), ("x", &["b"])]);
    bench.rename("a", "d");
    bench.fail("d");
    bench.finish_all();
    bench.reconcile("x");
    bench.pass(std::time::Duration::from_secs(1));
    assert!(
        bench.is_running("d") && !bench.is_cancelled("x"),
        "a timed request waits"
    );
    bench.edit_refs("c", &["b"]);
    assert!(bench.is_cancelled("x"));
}

/// Builds `c`, which runs below `b`, which a nudge has made pending.
fn running_below() -> Bench {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"]), ("c", &["b"])]);
    bench.reconcile("c");
    nudge(&mut bench, "b");
    assert!(!bench.is_cancelled("c"), "a timed request waits");
    bench
}

#[test]
fn an_edit_cancels_what_runs_on_below_a_pending_resource() {
    for name in ["a", "b"] {
        let mut bench = running_below();
        bench.edit_spec(name, "new");
        assert!(bench.is_cancelled("c"), "an edit of {name}");
    }
    let mut bench = running_below();
    nudge(&mut bench, "a");
    assert!(!bench.is_cancelled("c"));
}

/// Returns the numbers of nodes and edges visited during `work`.
fn cost(bench: &mut Bench, work: impl FnOnce(&mut Bench)) -> (u64, u64) {
    bench.unchecked = true;
    let before = bench.core.counters();
    work(bench);
    let after = bench.core.counters();
    (after.nodes - before.nodes, after.edges - before.edges)
}

const LENGTH: usize = 100;

/// Builds a chain of resources, each of which depends on the previous one.
fn row() -> Bench {
    let mut bench = Bench::new();
    bench.unchecked = true;
    let name = |index: usize| format!("n{index:03}");
    let edits = (0..LENGTH).map(|index| {
        let parent = index.checked_sub(1).map(name);
        let parents: Vec<&str> = parent.iter().map(String::as_str).collect();
        Edit::create(bench.new_resource(&name(index), &parents))
    });
    let edits: Vec<Edit> = edits.collect();
    bench.apply(edits);
    bench.finish_all();
    bench
}

/// Returns the numbers of nodes and edges visited during `work`, per resource of the chain.
fn each(mut bench: Bench, work: impl FnOnce(&mut Bench)) -> (u64, u64) {
    let (nodes, edges) = cost(&mut bench, work);
    let part = |count: u64| (count as f64 / LENGTH as f64).round() as u64;
    (part(nodes), part(edges))
}

#[test]
fn every_look_is_counted() {
    let ask = |bench: &mut Bench| {
        bench.reconcile("n000");
    };
    let run = |bench: &mut Bench| {
        bench.reconcile("n000");
        bench.finish_all();
    };
    let raise = |bench: &mut Bench| {
        nudge(bench, "n000");
        bench.reconcile("n099");
    };
    let close = |bench: &mut Bench| {
        bench.apply(vec![refs_edit("n000", &["n099"])]);
    };
    let rename = |bench: &mut Bench| {
        let keys: Vec<Key> = bench.rows.values().map(|row| row.key()).collect();
        let rename = |key: Key| {
            let name = format!("m{}", key.name);
            Edit::rename(key, name.as_str())
        };
        bench.apply(keys.into_iter().map(rename).collect());
    };
    // Nodes and edges for each resource. Fewer are as good; none would mean that nobody counts.
    assert_eq!((each(row(), ask), each(row(), run)), ((3, 1), (5, 2)));
    assert_eq!(each(row(), raise), (4, 2));
    assert_eq!(each(row(), close), (6, 7));
    assert_eq!(each(row(), rename), (5, 1));
    let mut started = row();
    started.restart();
    let told_again = each(started, |bench| {
        bench.edit_spec("n000", "new");
    });
    assert_eq!(told_again, (0, 1));
    let leaf = cost(&mut crowded(&[("a", &[])]), |bench| nudge(bench, "a"));
    assert_eq!(leaf, (3, 0));
    let below = cost(&mut running_below(), |bench| {
        bench.edit_spec("a", "new");
    });
    assert_eq!(below, (5, 2));
    // What has returned looks at all below it for who waits for it.
    let mut fan = Bench::new();
    fan.settled(&[("a", &[]), ("b", &["a"]), ("c", &["a"]), ("d", &["a"])]);
    fan.reconcile("a");
    fan.edit_spec("a", "new");
    assert_eq!(cost(&mut fan, |bench| bench.finish("a")), (1, 3));
    // What ends below something pending tells that.
    let mut under = Bench::new();
    under.settled(&[("a", &[]), ("b", &["a"])]);
    under.reconcile("b");
    under.reconcile("a");
    assert_eq!(cost(&mut under, |bench| bench.finish("b")), (2, 1));
    // What has waited for long is promoted.
    let mut waits = crowded(&[("a", &[]), ("b", &[])]);
    waits.reconcile("a");
    waits.reconcile("b");
    let wait = Limits::default().promote_after;
    assert_eq!(cost(&mut waits, |bench| bench.pass(wait)), (4, 0));
}

#[test]
fn what_need_only_be_there_waits_for_nobody_who_refers_to_it() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"])]);
    let exists = Ref {
        required: Required::Exists,
        ..Ref::completed("k", "a")
    };
    let new = bench.new_resource("c", &[]).with_refs([exists]);
    bench.apply(vec![Edit::create(new)]);
    // It runs, and refers to what is requested now.
    assert_eq!(bench.starts(), ["c"]);
    bench.reconcile("a");
    assert_eq!(bench.starts(), ["a"]);
    assert!(!bench.is_cancelled("c"));
}

/// Returns the numbers of nodes and edges that a further request visits.
fn cost_of_a_further(name: &str, bench: &mut Bench) -> (u64, u64) {
    cost(bench, |bench| {
        bench.reconcile(name);
    })
}

#[test]
fn a_further_request_for_what_is_pending_visits_nothing_below_it() {
    let mut bench = running_below();
    bench.reconcile("b");
    assert!(bench.is_cancelled("c"));
    let first = cost_of_a_further("b", &mut bench);
    assert_eq!(first, cost_of_a_further("b", &mut bench));
    // The resource itself, and what evaluates it.
    assert_eq!(first.1, 0);
}
