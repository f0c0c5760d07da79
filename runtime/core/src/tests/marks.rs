//! Tests of deletes, renames, cycles, and names that change hands (C6, C7, C13, C14).

use std::time::Duration;

use crate::testing::{Bench, target};
use crate::{Answer, Call, Edit, Key, Refusal, Returned, Settled, Stage};

#[test]
fn c6_deletes_come_first_then_renames_then_the_rest() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &[]), ("c", &[])]);
    bench.apply(vec![
        Edit::rename(Key::new("k", "b"), "b2"),
        Edit::delete(Key::new("k", "c")),
        crate::testing::refs_edit("a", &["b2"]),
    ]);
    assert_eq!(bench.starts(), ["delete c"]);
    bench.finish("c");
    assert_eq!(bench.starts(), ["rename b2"]);
    bench.finish("b2");
    assert_eq!(bench.finish_all(), ["b2", "a"]);
}

#[test]
fn c6_a_delete_waits_for_the_deletes_of_what_referred_to_it() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"])]);
    bench.apply(vec![
        Edit::delete(Key::new("k", "a")),
        Edit::delete(Key::new("k", "b")),
    ]);
    assert_eq!(bench.finish_all(), ["delete b", "delete a"]);
    assert!(bench.rows.is_empty());
}

#[test]
fn c6_a_delete_waits_also_for_one_whose_rename_was_unfinished() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"]), ("x", &[])]);
    bench.delete("x");
    bench.rename("b", "c");
    bench.apply(vec![
        Edit::delete(Key::new("k", "a")),
        Edit::delete(Key::new("k", "c")),
    ]);
    bench.starts();
    assert!(bench.is_running("c") && !bench.is_running("a"));
    assert_eq!(bench.finish_all(), ["delete a"]);
}

#[test]
fn c6_deletes_that_would_wait_in_a_circle_do_not() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &["b"]), ("b", &["a"])]);
    bench.apply(vec![
        Edit::delete(Key::new("k", "a")),
        Edit::delete(Key::new("k", "b")),
    ]);
    assert_eq!(bench.finish_all(), ["delete a", "delete b"]);
}

#[test]
fn c6_deletes_asked_one_after_another_do_not_wait_in_a_circle_either() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &["b"]), ("b", &[])]);
    let owner = Some(Some(bench.row("a").uid));
    bench.apply(vec![Edit::update(
        Key::new("k", "b"),
        crate::Update {
            owner,
            ..Default::default()
        },
    )]);
    bench.store = crate::testing::Store::ByHand;
    bench.delete("b");
    bench.delete("a");
    bench.commit();
    bench.commit();
    bench.store = crate::testing::Store::Prompt;
    bench.finish_all();
    assert!(bench.is_idle());
}

#[test]
fn c6_a_failed_delete_holds_nobody_back_and_is_tried_again() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &[])]);
    bench.delete("a");
    bench.reconcile("b");
    assert_eq!(bench.starts(), ["delete a"]);
    bench.fail("a");
    assert_eq!(bench.starts(), ["b"]);
    bench.pass(Duration::from_secs(1));
    bench.fail("a");
    bench.starts();
    bench.pass(Duration::from_millis(1_900));
    assert!(bench.starts().is_empty(), "the wait has doubled");
    bench.pass(Duration::from_millis(100));
    assert_eq!(bench.starts(), ["delete a"]);
}

#[test]
fn c6_a_delete_that_takes_too_long_no_longer_counts_and_its_name_is_held() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &[])]);
    bench.delete("a");
    bench.rename("b", "a");
    bench.starts();
    bench.create(&[("c", &[])]);
    assert!(bench.starts().is_empty());
    bench.pass(Duration::from_secs(60));
    assert!(bench.starts().contains(&"c".to_owned()));
    // C1: nothing starts under the name while the delete runs.
    assert!(!bench.is_running("b"));
}

#[test]
fn c6_at_the_limit_of_a_drain_what_is_unfinished_holds_nobody_back_any_more() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &[]), ("x", &[]), ("y", &[])]);
    bench.delete("x");
    bench.reconcile("a");
    assert_eq!(bench.starts(), ["delete x"]);
    bench.pass(Duration::from_secs(30));
    bench.delete("y");
    bench.pass(Duration::from_secs(29));
    assert_eq!(bench.starts(), ["delete y"]);
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.starts(), ["a"]);
    bench.reconcile("b");
    assert_eq!(bench.starts(), ["b"], "neither of the two counts");
}

#[test]
fn c6_what_is_marked_after_a_drain_waits_for_the_work_that_was_pending_then() {
    let mut bench = Bench::with_concurrency(2);
    bench.settled(&[("a", &[]), ("b", &[]), ("c", &[]), ("x", &[]), ("y", &[])]);
    bench.delete("x");
    for name in ["a", "b"] {
        bench.reconcile(name);
    }
    bench.pass(Duration::from_secs(60));
    assert_eq!(bench.starts(), ["delete x", "a"], "one place is left");
    bench.rename("y", "z");
    bench.reconcile("c");
    bench.finish("a");
    assert_eq!(
        bench.starts(),
        ["rename z"],
        "it holds nobody back, and comes first all the same"
    );
    bench.finish("z");
    assert_eq!(bench.starts(), ["b"]);
    // All that was pending has had its turn: the next one begins a drain.
    bench.rename("z", "y");
    bench.finish("b");
    assert_eq!(bench.starts(), ["rename y"]);
    bench.finish("x");
    assert!(bench.starts().is_empty());
    bench.finish("y");
    assert_eq!(bench.starts(), ["c", "y"]);
}

#[test]
fn c6_a_name_that_is_held_is_waited_for() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &[])]);
    bench.delete("a");
    bench.fail("a");
    bench.rename("b", "a");
    bench.starts();
    bench.finish_all();
    assert!(matches!(
        bench.stage("a"),
        Stage::Settled(Settled::WaitingForName { .. })
    ));
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.starts(), ["delete a"]);
    bench.finish("a");
    assert_eq!(bench.finish_all(), ["a"]);
    assert!(matches!(bench.stage("a"), Stage::Settled(Settled::Idle)));
}

#[test]
fn c6_a_resource_whose_rename_failed_is_a_failed_parent_and_not_reconciled() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("child", &["b"])]);
    bench.rename("a", "b");
    bench.fail("b");
    assert_eq!(bench.starts(), ["rename b", "child"]);
    assert!(bench.running("child").refs[0].failed);
    bench.finish_all();
    assert!(matches!(bench.stage("b"), Stage::Settled(Settled::Retrying)));
}

#[test]
fn c6_a_forced_delete_gives_up_on_the_reconciler_and_says_so() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    bench.delete("a");
    bench.fail("a");
    bench.apply(vec![Edit::force_delete(Key::new("k", "a"))]);
    assert!(bench.rows.is_empty());
    assert_eq!(bench.history.last().map(|row| row.invocation), Some(None));
}

#[test]
fn a_delete_is_not_lost_while_its_rename_waits_to_start() {
    let mut bench = Bench::with(
        vec![crate::KindOptions::new("k")],
        crate::Limits {
            concurrency: 1,
            ..crate::Limits::default()
        },
    );
    bench.settled(&[("a", &[]), ("b", &[])]);
    bench.reconcile("b");
    bench.rename("a", "c");
    bench.delete("c");
    bench.starts();
    assert_eq!(bench.finish_all(), ["delete c"]);
}

#[test]
fn c7_every_member_of_a_cycle_spells_it_out_and_none_is_invoked() {
    let mut bench = Bench::new();
    bench.create(&[("a", &["b"]), ("b", &["c"]), ("c", &["a"]), ("below", &["a"])]);
    assert_eq!(bench.starts(), ["below"]);
    assert!(bench.running("below").refs[0].failed);
    for name in ["a", "b", "c"] {
        let error = bench.row(name).error.clone().expect("an error");
        assert_eq!(
            &*error.message,
            "on a cycle: \"k/a\" -> \"k/b\" -> \"k/c\" -> \"k/a\""
        );
    }
    bench.finish("below");
    bench.edit_refs("b", &[]);
    assert_eq!(bench.finish_all(), ["b", "a", "below", "c"]);
    assert!(bench.row("a").error.is_none());
}

#[test]
fn c7_an_invocation_that_comes_onto_a_cycle_by_its_own_write_is_cancelled() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"])]);
    bench.reconcile("a");
    let by = bench.running("a").invocation;
    bench.call_by(
        Some(by),
        Call::Apply(crate::testing::refs_edit("a", &["b"]).into()),
    );
    assert!(bench.is_cancelled("a"));
    bench.finish("a");
    assert!(bench.is_idle());
}

#[test]
fn c7_a_failed_rename_on_a_cycle_leaves_the_error_that_spells_it_out() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &["b"]), ("b", &["a"])]);
    bench.rename("a", "b2");
    bench.apply(vec![crate::testing::refs_edit("b", &["b2"])]);
    bench.fail("b2");
    bench.finish_all();
    assert_eq!(
        bench.row("b2").error.as_ref().map(|error| error.code.to_string()),
        Some("cycle".into())
    );
}

#[test]
fn c13_names_that_swap_end_with_one_rename_each() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &[])]);
    let a = bench.row("a").uid;
    bench.apply(vec![
        Edit::rename(Key::new("k", "a"), "b"),
        Edit::rename(Key::new("k", "b"), "a"),
    ]);
    assert_eq!(bench.finish_all(), ["rename a", "rename b", "a", "b"]);
    assert_eq!(bench.row("b").uid, a);
    assert!(bench.row("a").intents.former_names.is_empty());
}

#[test]
fn c13_a_change_of_case_alone_is_a_rename() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"])]);
    bench.rename("a", "A");
    assert_eq!(bench.finish_all(), ["rename A", "A", "b"]);
}

#[test]
fn c13_a_create_takes_up_what_is_being_deleted_and_cancels_that_first() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    let uid = bench.row("a").uid;
    bench.delete("a");
    bench.create(&[("a", &[])]);
    assert!(bench.is_cancelled("a"));
    bench.finish("a");
    assert_eq!(bench.finish_all(), ["delete a", "a"]);
    assert_eq!(bench.row("a").uid, uid);
}

#[test]
fn c13_a_taken_up_delete_that_a_caller_cancelled_is_over() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    bench.delete("a");
    bench.create(&[("a", &[])]);
    bench.call(Call::Cancel(target("a")));
    bench.fail("a");
    bench.finish_all();
    assert!(bench.is_idle() && !bench.row("a").intents.is_deleted());
}

#[test]
fn c13_a_rename_onto_a_deleted_one_leaves_that_to_its_delete() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &[])]);
    bench.apply(vec![
        Edit::delete(Key::new("k", "a")),
        Edit::rename(Key::new("k", "b"), "a"),
    ]);
    assert_eq!(bench.finish_all(), ["delete a", "rename a", "a"]);
    assert_eq!(bench.rows.len(), 1);
}

#[test]
fn c14_a_resource_that_deletes_itself_is_gone_at_once_and_asks_its_children() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"])]);
    bench.reconcile("a");
    let by = bench.running("a").invocation;
    bench.starts();
    bench.call_by(Some(by), Call::Apply(Edit::delete(Key::new("k", "a")).into()));
    assert_eq!(bench.rows.len(), 1);
    assert_eq!(bench.starts(), ["b"]);
    assert!(bench.running("b").refs[0].target.is_none());
    // C1: a new one of that name waits until the invocation has returned.
    bench.create(&[("a", &[])]);
    bench.finish("b");
    assert!(bench.starts().is_empty());
    bench.returns("a", Returned::Done(crate::Outcome::default()));
    assert_eq!(bench.finish_all(), ["a", "b"]);
}

#[test]
fn request_2_a_name_that_passes_to_another_uid_asks_for_its_referrers() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"])]);
    let again = bench.new_resource("a", &[]);
    bench.apply(vec![Edit::force_delete(Key::new("k", "a")), Edit::create(again)]);
    assert_eq!(bench.finish_all(), ["a", "b"]);
    assert_eq!(
        bench.row("b").last_run.as_ref().map(|run| run.reason.trigger),
        Some(crate::Trigger::RefChanged)
    );
}

#[test]
fn a_batch_is_refused_whole() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &[])]);
    let revision = bench.core.revision();
    let taken = bench.apply(vec![
        Edit::delete(Key::new("k", "b")),
        Edit::create(bench_resource("x")),
        Edit::create(bench_resource("a")),
    ]);
    assert!(matches!(
        bench.answer_to(taken),
        Some(Answer::Refused(Refusal::NameTaken { .. }))
    ));
    let torn = bench.apply(vec![
        Edit::delete(Key::new("k", "a")),
        Edit::rename(Key::new("k", "a"), "c"),
    ]);
    assert!(matches!(
        bench.answer_to(torn),
        Some(Answer::Refused(Refusal::Contradiction(_)))
    ));
    assert_eq!(bench.core.revision(), revision);
    assert!(bench.starts().is_empty());
}

fn bench_resource(name: &str) -> crate::NewResource {
    let uid = crate::Uid(uuid::Uuid::from_u128(
        1_000 + name.len() as u128 + u128::from(name.as_bytes()[0]),
    ));
    crate::NewResource::new(uid, "k", name, b"s".as_slice())
}

#[test]
fn the_errors_of_a_long_cycle_take_space_in_proportion_to_it() {
    let mut bench = Bench::new();
    let names: Vec<String> = (0..1_000).map(|number| format!("n{number:04}")).collect();
    let after = |index: usize| names[(index + 1) % names.len()].as_str();
    let parents: Vec<[&str; 1]> = (0..names.len()).map(|index| [after(index)]).collect();
    let circle: Vec<(&str, &[&str])> = names
        .iter()
        .zip(&parents)
        .map(|(name, parents)| (name.as_str(), &parents[..]))
        .collect();
    bench.create(&circle);
    for name in &names {
        let row = bench.row(name);
        let error = row.error.as_ref().expect("each member says so");
        assert!(
            error
                .message
                .starts_with("on a cycle: \"k/n0000\" -> \"k/n0001\" -> ")
        );
        assert!(error.message.contains(" -> ... 984 more ... -> "));
        assert!(
            error.message.ends_with("\"k/n0999\" -> \"k/n0000\""),
            "{}",
            error.message
        );
        assert!(error.message.len() < 400);
    }
}
