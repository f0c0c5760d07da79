//! Tests of deletes and renames that no longer count, and of the names that they still hold.

use std::time::Duration;

use crate::testing::{Bench, refs_edit, target};
use crate::{Call, Edit, Error, Key, KindOptions, Limits, Ref, Refusal, Required, Settled, Stage};

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn c3_a_rename_that_holds_nobody_back_any_more_keeps_what_is_above_it_waiting() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"]), ("other", &[])]);
    bench.rename("b", "c");
    bench.starts();
    bench.pass(MINUTE);
    bench.reconcile("a");
    bench.reconcile("other");
    assert_eq!(bench.starts(), ["other"]);
    bench.finish("c");
    assert_eq!(bench.starts(), ["a"]);
}

#[test]
fn c3_so_does_one_that_is_tried_again() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"]), ("other", &[])]);
    bench.rename("b", "c");
    bench.fail("c");
    bench.finish_all();
    bench.call(Call::Retry(target("c")));
    assert_eq!(bench.starts(), ["rename c"]);
    bench.reconcile("a");
    bench.reconcile("other");
    assert_eq!(bench.starts(), ["other"]);
    bench.finish("c");
    assert_eq!(bench.starts(), ["a"]);
}

#[test]
fn c3_so_does_one_that_starts_while_what_waited_has_its_turn() {
    let narrow = KindOptions {
        concurrency: Some(1),
        ..KindOptions::new("n")
    };
    let mut bench = Bench::with(vec![KindOptions::new("k"), narrow], Limits::default());
    for name in ["busy", "p"] {
        let new = bench.new_of("n", name, &[]);
        bench.apply(vec![Edit::create(new)]);
    }
    bench.settled(&[("a", &[]), ("b", &["a"]), ("x", &[]), ("other", &[])]);
    // One has the place of its kind, and another one waits for it, when the drain is over its limit.
    bench.call(Call::Reconcile(Key::new("n", "busy").into()));
    bench.rename("x", "y");
    bench.call(Call::Reconcile(Key::new("n", "p").into()));
    bench.pass(MINUTE);
    bench.starts();
    bench.rename("b", "c");
    bench.reconcile("a");
    bench.reconcile("other");
    assert_eq!(bench.starts(), ["rename c", "other"]);
    bench.finish("c");
    assert_eq!(bench.starts(), ["a"]);
}

#[test]
fn c6_a_rename_that_counts_holds_all_regular_work_back() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"]), ("other", &[])]);
    bench.rename("b", "c");
    bench.starts();
    bench.reconcile("a");
    bench.reconcile("other");
    assert!(bench.starts().is_empty());
    bench.finish("c");
    assert_eq!(bench.starts(), ["a", "other"]);
}

#[test]
fn a_name_is_not_held_by_what_nobody_can_delete() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &[])]);
    bench.delete("a");
    bench.fail("a");
    bench.restart_with(|row| (row.name.as_str() == "a").then(|| Error::permanent("format", "unknown")));
    bench.finish_all();
    bench.rename("b", "a");
    assert_eq!(bench.finish_all(), ["rename a", "a"]);
}

#[test]
fn two_resources_do_not_get_one_name() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &[])]);
    let renames = ["a", "b"].map(|name| Edit::rename(target(name), "c"));
    let call = bench.apply(renames.into());
    assert!(matches!(
        bench.answer_to(call),
        Some(crate::Answer::Refused(Refusal::NameTaken { .. }))
    ));
}

#[test]
fn a_delete_that_runs_is_not_begun_again_by_hand() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    bench.delete("a");
    bench.call(Call::Retry(target("a")));
    assert_eq!(bench.starts(), ["delete a"]);
    bench.finish("a");
    assert!(bench.rows.is_empty() && bench.is_idle());
}

#[test]
fn c10_what_waits_beside_its_abandoned_invocation_may_be_given_up_on() {
    let mut bench = Bench::new();
    bench.settled(&[("top", &[]), ("a", &["top"])]);
    bench.reconcile("a");
    bench.call(Call::Cancel(target("a")));
    bench.pass(10 * MINUTE);
    bench.reconcile("top");
    bench.apply(vec![Edit::force_delete(target("a"))]);
    bench.finish("top");
    assert!(bench.is_idle() && bench.rows.len() == 1);
    bench.finish("a");
    assert!(bench.is_idle());
}

#[test]
fn what_waits_for_a_name_is_asked_for_when_its_holder_is_given_up_on() {
    let mut bench = Bench::with_a_held_name();
    assert!(matches!(
        bench.stage("a"),
        Stage::Settled(Settled::WaitingForName { .. })
    ));
    bench.apply(vec![Edit::force_delete(target("b"))]);
    assert_eq!(bench.starts(), ["a"]);
}

#[test]
fn c3_one_that_starts_below_what_is_pending_counts_for_that() {
    let mut bench = Bench::with_concurrency(1);
    bench.settled(&[("busy", &[]), ("a", &[]), ("b", &["a"])]);
    bench.rename("b", "c");
    bench.fail("c");
    bench.finish_all();
    bench.reconcile("busy");
    bench.reconcile("a");
    bench.call(Call::Retry(target("c")));
    bench.starts();
    assert_eq!(bench.finish_all(), ["rename c", "a", "c"]);
}

#[test]
fn a_name_that_is_given_up_asks_only_for_what_waits_for_it() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("child", &["a"])]);
    bench.rename("a", "b");
    bench.fail("b");
    bench.finish_all();
    // It has the name, and waits for something else.
    let missing = Ref {
        required: Required::Ready,
        ..Ref::completed("k", "missing")
    };
    let new = bench.new_resource("a", &[]).with_refs([missing]);
    bench.apply(vec![Edit::create(new)]);
    bench.finish_all();
    bench.call(Call::Retry(target("b")));
    assert_eq!(bench.finish_all(), ["rename b", "b"]);
}

#[test]
fn c6_a_rename_that_waits_does_not_make_the_release_longer() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("x", &[]), ("y", &[]), ("v", &[])]);
    bench.delete("x");
    bench.rename("y", "z");
    bench.reconcile("a");
    bench.starts();
    bench.pass(MINUTE);
    assert_eq!(bench.starts(), ["rename z", "a"], "nothing counts any more");
    bench.rename("v", "w");
    bench.reconcile("a");
    assert_eq!(bench.starts(), ["rename w"]);
    bench.finish("a");
    assert!(bench.starts().is_empty(), "the next drain has begun");
}

#[test]
fn c7_a_cycle_that_grows_by_a_name_takes_the_new_member_in() {
    let mut bench = Bench::new();
    bench.settled(&[("x", &["y"]), ("y", &["x", "n"])]);
    bench.create(&[("n", &["x"])]);
    assert!(bench.is_idle() && bench.starts().is_empty());
    assert_eq!(bench.stage("n"), Stage::Settled(Settled::OnCycle));
}

#[test]
fn c7_a_cycle_that_grows_asks_for_the_new_members_alone() {
    let mut bench = Bench::new();
    bench.settled(&[("x", &["y"]), ("y", &["x"])]);
    bench.apply(vec![Edit::rename(target("y"), "z"), refs_edit("x", &["z"])]);
    bench.fail("z");
    bench.finish_all();
    let new = bench.new_resource("n", &["x"]);
    bench.apply(vec![Edit::create(new), refs_edit("x", &["z", "n"])]);
    assert!(bench.starts().is_empty(), "a failed rename is tried again later");
}
