//! Tests of explanations, root cause first.

use std::time::Duration;

use crate::testing::{Bench, target};
use crate::{
    Blocker, Call, Edit, Error, Explanation, Key, KindOptions, Limits, Phase, Pool, RetryPolicy, Returned,
    Settled, Subject,
};

fn explain(bench: &Bench, name: &str) -> Explanation {
    bench.core.explain(&target(name)).expect("it is known")
}

fn because(bench: &Bench, name: &str) -> Blocker {
    explain(bench, name).because
}

fn names(subjects: &[Subject]) -> Vec<String> {
    subjects
        .iter()
        .map(|subject| subject.key.name.as_str().to_owned())
        .collect()
}

#[test]
fn it_names_the_ancestor_that_all_waits_for_and_why_that_does_not_run() {
    let mut bench = Bench::with_concurrency(1);
    bench.create(&[("a", &[]), ("b", &[]), ("c", &["b"]), ("d", &["c"])]);
    let told = explain(&bench, "d");
    assert_eq!(told.waits_for.map(|it| it.key), Some(Key::new("k", "b")));
    assert_eq!(told.because, Blocker::ControllerFull(1));
    assert!(matches!(
        because(&bench, "a"),
        Blocker::Runs {
            phase: Phase::Reconcile,
            cancelled: false,
            ..
        }
    ));
    bench.finish_all();
    assert_eq!(because(&bench, "d"), Blocker::Settled(Settled::Idle));
}

#[test]
fn it_names_the_one_failure_above_however_many_are_blocked() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[]), ("b", &["a"]), ("c", &["b"]), ("d", &["b", "c"])]);
    bench.fail("a");
    for name in ["b", "c", "d"] {
        bench.fail(name);
    }
    assert_eq!(names(&explain(&bench, "d").blocked_by), ["a"]);
    assert!(explain(&bench, "a").blocked_by.is_empty());
}

#[test]
fn it_says_what_comes_first_and_what_has_not_returned() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"]), ("x", &[]), ("y", &[])]);
    bench.delete("x");
    bench.rename("y", "z");
    bench.reconcile("a");
    match because(&bench, "a") {
        Blocker::DeletesFirst { count: 1, running } => assert_eq!(names(&running), ["x"]),
        other => panic!("{other:?}"),
    }
    bench.finish("x");
    assert!(matches!(
        because(&bench, "a"),
        Blocker::RenamesFirst { count: 1, .. }
    ));
    bench.finish_all();
    bench.reconcile("b");
    bench.reconcile("a");
    match because(&bench, "a") {
        Blocker::RunsBelow(below) => assert_eq!(below.key.name.as_str(), "b"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn it_says_what_settled_resources_wait_for() {
    let options = KindOptions {
        retry: RetryPolicy::Backoff {
            base: Duration::from_secs(8),
            cap: Duration::from_secs(8),
            attempts: 9,
            reset_after: Duration::ZERO,
        },
        ..KindOptions::new("k")
    };
    let mut bench = Bench::with(vec![options], Limits::default());
    bench.create(&[("a", &["b"]), ("b", &["a"]), ("c", &[])]);
    bench.returns("c", Returned::Failed(Error::transient("flaky", "not now")));
    bench.pass(Duration::from_secs(3));
    assert_eq!(because(&bench, "c"), Blocker::RetryIn(Duration::from_secs(5)));
    assert_eq!(explain(&bench, "c").attempts, 1);
    assert!(matches!(because(&bench, "a"), Blocker::Cycle(text) if text.contains("k/b")));
    bench.call(Call::Pause(target("c")));
    bench.reconcile("c");
    assert_eq!(because(&bench, "c"), Blocker::Settled(Settled::Paused));
}

#[test]
fn it_finds_what_is_being_deleted_and_answers_calls_at_once() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    bench.apply(vec![Edit::delete(Key::new("k", "a"))]);
    bench.store = crate::testing::Store::ByHand;
    bench.fail("a");
    let call = bench.call(Call::Explain(target("a")));
    assert!(matches!(
        bench.answer_to(call),
        Some(crate::Answer::Explained(told)) if matches!(told.because, Blocker::RetryIn(_))
    ));
}

#[test]
fn it_costs_what_it_looks_at_in_a_long_chain() {
    let mut bench = Bench::new();
    bench.unchecked = true;
    let names: Vec<String> = (0..20_000).map(|index| format!("n{index:05}")).collect();
    let edits = names.iter().enumerate().map(|(index, name)| {
        let parent = index.checked_sub(1).map(|parent| names[parent].as_str());
        Edit::create(bench.new_resource(name, parent.as_slice()))
    });
    let edits = edits.collect();
    bench.apply(edits);
    let told = explain(&bench, "n19999");
    assert_eq!(told.waits_for.map(|it| it.key), Some(Key::new("k", "n00000")));
}

#[test]
fn it_names_the_limit_that_is_reached() {
    let narrow = KindOptions {
        concurrency: Some(1),
        ..KindOptions::new("k")
    };
    let first = KindOptions {
        first: true,
        pool: Some(Pool {
            name: "files".into(),
            limit: 1,
            exclusive: false,
        }),
        ..KindOptions::new("parser")
    };
    let mut bench = Bench::with(vec![narrow, first], Limits::default());
    let create = |bench: &mut Bench, kind: &str, names: &[&str]| {
        let new = names
            .iter()
            .map(|name| Edit::create(bench.new_of(kind, name, &[])));
        let new = new.collect();
        bench.apply(new);
    };
    create(&mut bench, "k", &["a", "b"]);
    assert_eq!(because(&bench, "b"), Blocker::KindFull(1));
    bench.finish_all();
    create(&mut bench, "parser", &["p", "q"]);
    let told = |bench: &Bench, name: &str| bench.core.explain(&Key::new("parser", name).into());
    let because_of = |bench: &Bench, name: &str| told(bench, name).map(|told| told.because);
    assert_eq!(because_of(&bench, "q"), Ok(Blocker::PoolFull("files".into())));
    bench.reconcile("a");
    match because(&bench, "a") {
        Blocker::Gate(first) => assert_eq!(first.key, Key::new("parser", "p")),
        other => panic!("{other:?}"),
    }
    bench.finish_all();
    bench.reconcile("a");
    assert!(matches!(because(&bench, "a"), Blocker::Runs { .. }));
}

#[test]
fn it_says_what_a_cycle_waits_for() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"]), ("x", &[])]);
    bench.reconcile("b");
    bench.apply(vec![crate::testing::refs_edit("a", &["b"])]);
    for name in ["a", "b"] {
        match because(&bench, name) {
            Blocker::RunsBelow(running) => assert_eq!(running.key.name.as_str(), "b"),
            Blocker::Runs { cancelled: true, .. } => assert_eq!(name, "b"),
            other => panic!("{other:?}"),
        }
    }
    bench.finish("b");
    bench.delete("x");
    bench.rename("a", "c");
    match because(&bench, "b") {
        Blocker::Settled(Settled::Idle) | Blocker::DeletesFirst { .. } | Blocker::Next => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_runs_waits_for_nothing_though_something_above_it_is_asked_for() {
    let bench = Bench::with_one_below();
    assert_eq!(explain(&bench, "b").waits_for, None);
}

#[test]
fn it_is_not_a_settled_parent_that_something_waits_for() {
    let mut bench = Bench::with_concurrency(1);
    bench.settled(&[("busy", &[]), ("s", &[]), ("u", &[]), ("c", &["s", "u"])]);
    bench.reconcile("busy");
    bench.reconcile("u");
    let waits_for = explain(&bench, "c").waits_for.map(|it| it.key);
    assert_eq!(waits_for, Some(Key::new("k", "u")));
}

#[test]
fn who_holds_a_name_is_told_by_its_present_name() {
    let mut bench = Bench::with_a_held_name();
    bench.rename("b", "c");
    match because(&bench, "a") {
        Blocker::Settled(Settled::WaitingForName { key, .. }) => assert_eq!(key, Key::new("k", "c")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_kind_with_a_place_left_is_not_full_during_a_shutdown_either() {
    let options = KindOptions {
        concurrency: Some(1),
        ..KindOptions::new("k")
    };
    let mut bench = Bench::with(vec![options], Limits::default());
    bench.create(&[("a", &[]), ("b", &[])]);
    assert_eq!(because(&bench, "b"), Blocker::KindFull(1));
    bench.input(crate::Input::Shutdown {
        grace: Duration::from_secs(30),
    });
    bench.finish("a");
    assert_eq!(because(&bench, "b"), Blocker::Next);
}

#[test]
fn what_a_cycle_waits_for_is_told_by_whichever_member_it_is() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &["b"]), ("b", &["a"]), ("x", &[])]);
    bench.delete("x");
    bench.apply(vec![
        Edit::rename(Key::new("k", "b"), "c"),
        crate::testing::refs_edit("a", &["c"]),
    ]);
    for name in ["a", "c"] {
        match because(&bench, name) {
            Blocker::DeletesFirst { count: 1, running } => assert_eq!(names(&running), ["x"]),
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn what_runs_below_a_cycle_below_is_found() {
    let mut bench = Bench::new();
    bench.settled(&[("s", &[]), ("x", &["s", "y"]), ("y", &["x"]), ("c", &["x"])]);
    bench.reconcile("c");
    bench.reconcile("s");
    match because(&bench, "s") {
        Blocker::RunsBelow(below) => assert_eq!(below.key.name.as_str(), "c"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_rename_that_all_wait_for_is_no_invocation_below() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"])]);
    bench.rename("b", "c");
    bench.reconcile("a");
    assert!(matches!(
        because(&bench, "a"),
        Blocker::RenamesFirst { count: 1, .. }
    ));
}

#[test]
fn what_has_no_error_and_cannot_run_blocks_what_is_below_as_well() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    bench.rename("a", "b");
    bench.fail("b");
    bench.finish_all();
    bench.create(&[("a", &[]), ("below", &["a"])]);
    bench.finish_all();
    assert_eq!(
        names(&explain(&bench, "below").blocked_by),
        ["a"],
        "its name is held"
    );
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("below", &["a"])]);
    bench.restart_with(|row| (row.name.as_str() == "a").then(|| Error::permanent("format", "unknown")));
    bench.finish_all();
    assert_eq!(
        names(&explain(&bench, "below").blocked_by),
        ["a"],
        "it can't be read"
    );
}
