//! Regression tests of faults that were found in real controllers, each by its name.

use std::time::Duration;

use crate::testing::{Bench, target};
use crate::{Answer, Call, Edit, Key, Limits, RunOutcome, Settled, Stage, Timestamp, Update};

fn idle() -> Stage {
    Stage::Settled(Settled::Idle)
}

#[test]
fn a_rename_that_closes_a_cycle_leaves_nothing_pending() {
    let mut bench = Bench::new();
    // `a` refers to a name that nobody has yet.
    bench.settled(&[
        ("a", &["z"]),
        ("b", &["a"]),
        ("below", &["b", "z"]),
        ("other", &[]),
    ]);
    bench.rename("b", "z");
    bench.reconcile("other");
    bench.finish_all();
    assert!(bench.is_idle());
    for member in ["a", "z"] {
        assert_eq!(bench.stage(member), Stage::Settled(Settled::OnCycle));
        let error = bench
            .row(member)
            .error
            .clone()
            .expect("an error that spells it out");
        assert!(
            error.message.contains("k/a") && error.message.contains("k/z"),
            "{error:?}"
        );
    }
    assert_eq!((bench.stage("below"), bench.stage("other")), (idle(), idle()));
    bench.edit_refs("a", &[]);
    assert_eq!(bench.finish_all(), ["a", "z", "below"]);
    assert_eq!((bench.stage("a"), bench.stage("z")), (idle(), idle()));
}

#[test]
fn what_lost_its_refs_and_has_a_child_runs_when_it_is_asked_for_after_its_former_parent_ran() {
    let mut bench = Bench::new();
    bench.settled(&[("parent", &[]), ("middle", &["parent"]), ("child", &["middle"])]);
    bench.edit_refs("middle", &[]);
    bench.finish_all();
    bench.reconcile("parent");
    assert_eq!(bench.finish_all(), ["parent"]);
    bench.reconcile("middle");
    assert_eq!(bench.finish_all(), ["middle", "child"]);
    let waits = bench.call(Call::WaitUntilIdle);
    assert_eq!(bench.answer_to(waits), Some(Answer::Done));
    // The same while its former parent runs, and is requested once more.
    bench.edit_refs("middle", &["parent"]);
    bench.finish_all();
    bench.reconcile("parent");
    bench.edit_refs("middle", &[]);
    bench.reconcile("parent");
    bench.reconcile("middle");
    let waits = bench.call(Call::WaitUntilIdle);
    assert_eq!(bench.answer_to(waits), None);
    bench.finish_all();
    assert_eq!(bench.answer_to(waits), Some(Answer::Done));
    for name in ["parent", "middle", "child"] {
        assert_eq!(bench.stage(name), idle());
    }
}

#[test]
fn a_renamed_while_the_rename_of_b_onto_its_old_name_runs_loses_neither() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &[]), ("below", &["a"])]);
    let (a, b) = (bench.row("a").uid, bench.row("b").uid);
    bench.rename("a", "c");
    bench.finish("c");
    bench.rename("b", "a");
    while !bench.is_running("a") {
        // What runs below the name that passed on comes back first.
        bench.finish("c");
    }
    bench.rename("c", "d");
    bench.finish_all();
    assert!(bench.is_idle());
    assert_eq!((bench.row("d").uid, bench.row("a").uid), (a, b));
    assert_eq!((bench.stage("d"), bench.stage("a")), (idle(), idle()));
    assert!(bench.rows.values().all(|row| !row.intents.is_renamed()));
    // And before the first rename is done: the names pass on in one go.
    bench.rename("d", "e");
    bench.rename("a", "d");
    bench.rename("e", "f");
    bench.finish_all();
    assert!(bench.is_idle());
    assert_eq!((bench.row("f").uid, bench.row("d").uid), (a, b));
    assert!(bench.rows.values().all(|row| !row.intents.is_renamed()));
}

#[test]
fn a_rename_onto_an_existing_name_is_refused_before_anything_changes() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"])]);
    let (revision, a) = (bench.core.revision(), bench.row("a"));
    let update = Update {
        spec: Some((b"new".as_slice().into(), 1)),
        ..Update::default()
    };
    let key = || Key::new("k", "a");
    for edits in [
        vec![Edit::rename(key(), "B")],
        vec![Edit::update(key(), update), Edit::rename(key(), "b")],
        vec![
            Edit::delete(Key::new("k", "b")),
            Edit::rename(key(), "b"),
            Edit::rename(key(), "c"),
        ],
    ] {
        let call = bench.apply(edits);
        assert!(matches!(bench.answer_to(call), Some(Answer::Refused(_))));
        assert_eq!(bench.core.revision(), revision);
        assert_eq!(*bench.row("a"), *a);
        assert!(bench.starts().is_empty() && bench.is_idle());
    }
}

#[test]
fn a_pending_descendant_keeps_its_old_error_until_it_has_run() {
    let mut bench = Bench::new();
    bench.create(&[("parent", &[]), ("child", &["parent"]), ("below", &["child"])]);
    bench.finish("parent");
    bench.fail("child");
    assert!(bench.running("below").refs[0].failed);
    bench.finish("below");
    bench.edit_spec("parent", "new");
    assert_eq!(bench.stage("child"), Stage::Pending);
    assert!(
        bench.row("child").error.is_some(),
        "the previous error, shown as such"
    );
    bench.finish("parent");
    assert!(bench.row("child").error.is_some());
    bench.finish("child");
    assert_eq!(
        (bench.row("child").error.clone(), bench.stage("child")),
        (None, idle())
    );
    assert!(!bench.running("below").refs[0].failed);
}

#[test]
fn a_plain_cancel_leaves_times_and_those_below_as_they_were() {
    let mut bench = Bench::new();
    bench.create(&[("parent", &[]), ("child", &["parent"])]);
    let due = bench.now.wall.0 + 5_000;
    bench.finish_at("parent", Some(due));
    bench.finish_all();
    let request = bench.reconcile("parent");
    bench.starts();
    bench.call(Call::Cancel(target("parent")));
    assert!(bench.is_cancelled("parent"));
    // What it returns is dropped, its time as well.
    bench.finish_at("parent", Some(due + 5_000));
    assert_eq!(bench.stage("parent"), Stage::Settled(Settled::Cancelled));
    assert_eq!(bench.finish_all(), ["child"]);
    let outcome = Answer::Outcome(RunOutcome::NotRun(Settled::Cancelled));
    assert!(bench.answers_to(request).contains(&outcome));
    let row = bench.row("parent");
    assert_eq!(
        (row.error.clone(), row.next_reconcile),
        (None, Some(Timestamp(due)))
    );
    assert!(bench.is_idle());
    bench.pass(Duration::from_secs(5));
    assert_eq!(bench.finish_all(), ["parent", "child"]);
    assert_eq!(bench.stage("parent"), idle());
}

#[test]
fn a_hundred_thousand_ready_resources_are_no_more_invocations_than_there_are_places() {
    let mut bench = Bench::new();
    bench.unchecked = true;
    let names: Vec<String> = (0..100_000).map(|number| format!("n{number}")).collect();
    let edits = names
        .iter()
        .map(|name| Edit::create(bench.new_resource(name, &[])));
    let edits: Vec<Edit> = edits.collect();
    bench.apply(edits);
    let places = Limits::default().concurrency;
    assert_eq!(bench.running.len(), places);
    for started in 0..500 {
        assert_eq!(bench.core.counters().starts, (places + started) as u64);
        let name = bench.running[0].resource.name.to_string();
        bench.finish(&name);
        assert_eq!(bench.running.len(), places);
    }
}
