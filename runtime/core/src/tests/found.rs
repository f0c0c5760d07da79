//! Regression tests of faults that the simulator found.

use std::time::Duration;

use crate::testing::{Bench, refs_edit, target};
use crate::{Call, Edit, Key, KindOptions, Limits, Settled, Stage, Update};

#[test]
fn c13_a_delete_while_its_rename_runs_cancels_that_and_comes_next() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("child", &["a"])]);
    bench.rename("a", "b");
    assert!(bench.starts().contains(&"rename b".into()));
    bench.delete("b");
    assert!(bench.is_cancelled("b"));
    // What the cancelled rename returns changes nothing, whatever it says.
    bench.finish("b");
    assert!(bench.starts().contains(&"delete b".into()));
    bench.finish_all();
    assert!(bench.is_idle() && bench.rows.len() == 1);
}

#[test]
fn c13_a_delete_outdoes_an_earlier_cancel_of_what_it_took_up() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &[])]);
    bench.delete("a");
    bench.create(&[("a", &[])]);
    bench.call(Call::Cancel(target("a")));
    bench.delete("a");
    bench.reconcile("b");
    bench.starts();
    bench.finish("a");
    // It counts: the cancel was of the delete before.
    assert_eq!(bench.starts(), ["delete a"]);
    assert_eq!(bench.finish_all(), ["b"]);
}

#[test]
fn request_1_a_release_opens_the_gate_for_a_kind_whose_turn_was_over() {
    let first = KindOptions {
        first: true,
        ..KindOptions::new("z")
    };
    let mut bench = Bench::with(vec![KindOptions::new("k"), first], Limits::default());
    let before = bench.new_of("z", "old", &[]);
    bench.apply(vec![Edit::create(before)]);
    bench.finish_all();
    bench.apply(vec![Edit::rename(Key::new("z", "old"), "new")]);
    bench.fail("new");
    bench.starts();
    // It finds its name held when it is about to start, after the turn of the kind before it.
    let waits = bench.new_of("z", "old", &[]);
    let other = bench.new_of("k", "a", &[]);
    bench.apply(vec![Edit::create(waits), Edit::create(other)]);
    assert!(matches!(
        bench.stage("old"),
        Stage::Settled(Settled::WaitingForName { .. })
    ));
    assert_eq!(bench.starts(), ["a"]);
}

#[test]
fn request_1_one_of_a_first_kind_that_is_taken_up_gates_like_a_new_one() {
    let first = KindOptions {
        first: true,
        ..KindOptions::new("z")
    };
    let mut bench = Bench::with(vec![KindOptions::new("k"), first], Limits::default());
    let parser = bench.new_of("z", "p", &[]);
    bench.apply(vec![Edit::create(parser)]);
    bench.finish_all();
    bench.apply(vec![Edit::delete(Key::new("z", "p"))]);
    bench.starts();
    let again = bench.new_of("z", "p", &[]);
    let other = bench.new_of("k", "a", &[]);
    bench.apply(vec![Edit::create(again), Edit::create(other)]);
    bench.finish("p");
    assert_eq!(bench.starts(), ["p"]);
    assert_eq!(bench.finish_all(), ["a"]);
}

#[test]
fn c7_an_own_edit_that_breaks_the_cycle_counts_as_the_break() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &["b"]), ("b", &["a"])]);
    bench.apply(vec![
        Edit::rename(Key::new("k", "a"), "a2"),
        refs_edit("b", &["a2"]),
    ]);
    assert_eq!(bench.starts(), ["rename a2"]);
    let by = bench.running("a2").invocation;
    bench.call_by(Some(by), Call::Apply(refs_edit("a2", &[]).into()));
    bench.finish_all();
    assert!(bench.is_idle());
    for name in ["a2", "b"] {
        assert!(bench.row(name).error.is_none(), "{name} is on no cycle");
        let run = bench.row(name).last_run.clone().expect("a run");
        assert_eq!(run.phase, crate::Phase::Reconcile);
    }
}

#[test]
fn c6_a_drain_goes_on_when_one_edit_takes_the_place_of_another() {
    let mut bench = Bench::with(vec![KindOptions::new("k")], Limits::default());
    bench.settled(&[("a", &[]), ("x", &[])]);
    bench.rename("a", "b");
    bench.reconcile("x");
    bench.pass(Duration::from_secs(40));
    bench.rename("b", "c");
    bench.starts();
    bench.pass(Duration::from_secs(19));
    assert!(bench.starts().is_empty());
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.starts(), ["x"]);
}

#[test]
fn c13_a_name_freed_in_the_middle_of_a_batch_wakes_nobody_before_its_end() {
    let mut bench = Bench::new();
    // "b" was "a" and "c" before, and its rename has failed: the two that have these names now wait for them.
    bench.settled(&[("a", &[])]);
    bench.rename("a", "c");
    bench.fail("c");
    bench.rename("c", "b");
    bench.fail("b");
    bench.create(&[("a", &[]), ("c", &["a"])]);
    bench.edit_refs("b", &["c"]);
    bench.fail("b");
    for name in ["a", "c"] {
        assert!(matches!(
            bench.stage(name),
            Stage::Settled(Settled::WaitingForName { .. })
        ));
    }
    // The names go round: "b" gives up its claim on "a" while that still stands for another.
    bench.apply(vec![
        Edit::rename(Key::new("k", "a"), "c"),
        Edit::rename(Key::new("k", "c"), "b"),
        Edit::rename(Key::new("k", "b"), "a"),
    ]);
    bench.finish_all();
    assert!(bench.is_idle());
}

#[test]
fn c12_a_slot_that_passes_to_another_kind_is_not_started_in_the_old_ones_turn() {
    let narrow = KindOptions {
        concurrency: Some(1),
        ..KindOptions::new("a")
    };
    let mut bench = Bench::with(
        vec![narrow, KindOptions::new("b"), KindOptions::new("c")],
        Limits::default(),
    );
    for (kind, name) in [("a", "old"), ("b", "x"), ("c", "holder")] {
        let new = bench.new_of(kind, name, &[]);
        bench.apply(vec![Edit::create(new)]);
    }
    bench.finish_all();
    // A rename holds regular work back, so that what is ready stays in the queue of its kind.
    bench.apply(vec![Edit::rename(Key::new("c", "holder"), "held")]);
    bench.call(Call::Reconcile(Key::new("b", "x").into()));
    bench.call(Call::Reconcile(Key::new("a", "old").into()));
    bench.apply(vec![Edit::force_delete(Key::new("b", "x"))]);
    // It gets the slot and the name of the one that is gone.
    let heir = bench.new_of("a", "x", &[]);
    bench.apply(vec![Edit::create(heir)]);
    bench.starts();
    bench.finish("held");
    assert_eq!(bench.starts(), ["old", "held"], "only one of kind \"a\" at once");
    assert_eq!(bench.finish_all(), ["x"]);
}

#[test]
fn c5_whether_own_refs_add_an_unsettled_parent_is_judged_by_the_whole_batch() {
    for own_first in [true, false] {
        let mut bench = Bench::new();
        let (own, parent) = if own_first { ("a", "b") } else { ("b", "a") };
        bench.settled(&[("a", &[]), ("b", &[])]);
        bench.rename(own, "own");
        let by = bench.running("own").invocation;
        let update = Update {
            spec: Some((b"new".as_slice().into(), 1)),
            ..Update::default()
        };
        let edits = vec![
            refs_edit("own", &[parent]),
            Edit::update(Key::new("k", parent), update),
        ];
        bench.starts();
        bench.call_by(Some(by), Call::Apply(crate::Batch { edits }));
        assert!(bench.is_cancelled("own"), "its new parent is pending");
        bench.finish("own");
        assert_eq!(bench.finish_all(), ["rename own", parent, "own"]);
    }
}

#[test]
fn c13_after_a_restart_a_create_takes_up_the_one_deleted_last() {
    let mut bench = Bench::new();
    // The later a resource is made here, the greater its uid; rows come back in that order.
    bench.settled(&[("b", &[]), ("a", &[])]);
    let last = bench.row("b").uid;
    bench.delete("a");
    bench.fail("a");
    bench.rename("b", "a");
    bench.delete("a");
    bench.finish("a");
    bench.fail("a");
    bench.restart();
    bench.create(&[("a", &[])]);
    assert_eq!(bench.row("a").uid, last);
}

#[test]
fn a_requeue_time_is_replaced_by_what_a_later_run_returns() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[])]);
    bench.finish_at("a", Some(0));
    bench.reconcile("a");
    bench.finish("a");
    bench.starts();
    bench.pass(Duration::from_secs(2));
    assert!(bench.starts().is_empty());
}

#[test]
fn a_name_whose_holder_deletes_itself_is_free_when_that_returns() {
    let limits = Limits {
        drain_limit: Duration::from_secs(1),
        ..Limits::default()
    };
    let mut bench = Bench::with(vec![KindOptions::new("k")], limits);
    bench.settled(&[("a", &[])]);
    bench.rename("a", "b");
    bench.create(&[("a", &[])]);
    bench.pass(Duration::from_secs(1));
    let renaming = bench.running("b").invocation;
    let delete = Edit::delete(target("b"));
    bench.call_by(Some(renaming), Call::Apply(delete.into()));
    assert!(!bench.is_running("a"), "two would run under one name");
    bench.finish("b");
    assert!(bench.is_running("a"));
}
