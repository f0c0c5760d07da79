//! Tests of requests, handles, times, `first` kinds, and kinds that can't run.

use std::time::Duration;

use crate::testing::{Bench, target};
use crate::{
    Answer, AtStart, Call, CallId, Edit, Error, KindOptions, Limits, RunOutcome, Settled, Settlement, Stage,
    StoredRow,
};

fn has_settled(bench: &Bench, call: CallId) -> bool {
    let settled = Answer::Settled(Settlement::Settled);
    bench.answers_to(call).contains(&settled)
}

#[test]
fn request_1_asks_for_everything_and_ask_if_unsettled_only_for_what_is_not() {
    let mut kind = KindOptions::new("k");
    let mut bench = Bench::with(vec![kind.clone()], Limits::default());
    bench.settled(&[("a", &[]), ("b", &["a"])]);
    bench.restart();
    assert_eq!(bench.finish_all(), ["a", "b"]);
    kind.at_start = AtStart::AskIfUnsettled;
    bench.register(vec![kind]);
    bench.restart();
    assert!(bench.starts().is_empty());
    bench.reconcile("b");
    bench.fail("b");
    bench.restart();
    assert_eq!(bench.finish_all(), ["b"]);
}

#[test]
fn first_kinds_settle_once_before_anything_else_starts() {
    let mut first = KindOptions::new("parser");
    first.first = true;
    let mut bench = Bench::with(vec![KindOptions::new("k"), first], Limits::default());
    let parser = bench.new_of("parser", "p", &[]);
    bench.apply(vec![Edit::create(parser)]);
    bench.settled(&[("a", &[])]);
    bench.restart();
    assert_eq!(bench.starts(), ["p"]);
    bench.finish("p");
    assert_eq!(bench.starts(), ["a"]);
}

#[test]
fn a_handle_gets_the_first_outcome_after_it_and_the_settling_of_all_below() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"])]);
    let first = bench.reconcile("a");
    let second = bench.reconcile("a");
    bench.finish("a");
    bench.finish("a");
    let done = |answers: Vec<Answer>| {
        answers
            .iter()
            .any(|it| matches!(it, Answer::Outcome(RunOutcome::Done { .. })))
    };
    assert!(done(bench.answers_to(first)) && done(bench.answers_to(second)));
    assert!(
        !bench
            .answers_to(first)
            .contains(&Answer::Settled(Settlement::Settled))
    );
    bench.finish("b");
    assert_eq!(bench.answer_to(first), Some(Answer::Settled(Settlement::Settled)));
}

#[test]
fn a_cancelled_request_is_answered_once_its_parents_have_settled() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"]), ("c", &["b"])]);
    bench.reconcile("a");
    let call = bench.reconcile("b");
    bench.call(Call::Cancel(target("b")));
    bench.starts();
    bench.finish("a");
    assert_eq!(bench.finish_all(), ["c"]);
    assert!(
        bench
            .answers_to(call)
            .contains(&Answer::Outcome(RunOutcome::NotRun(Settled::Cancelled)))
    );
}

#[test]
fn request_5_a_time_falls_due_once() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[])]);
    let at = bench.now.wall.0 + 5_000;
    bench.finish_at("a", Some(at));
    bench.starts();
    bench.pass(Duration::from_secs(5));
    assert_eq!(bench.finish_all(), ["a"]);
    bench.pass(Duration::from_secs(5));
    assert!(bench.starts().is_empty());
}

#[test]
fn request_8_every_nudge_counts_for_the_core() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    for _ in 0..2 {
        bench.call(Call::Nudge(target("a")));
        assert_eq!(bench.finish_all(), ["a"], "the host debounces them");
    }
}

#[test]
fn request_8_nudging_all_means_those_whose_time_comes_within_the_interval() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[]), ("b", &[]), ("c", &[])]);
    let now = bench.now.wall.0;
    bench.finish_at("a", Some(now + 1_000));
    bench.finish_at("b", Some(now + 1_001));
    bench.finish("c");
    bench.starts();
    bench.call(Call::NudgeAll);
    assert_eq!(bench.finish_all(), ["a"]);
    bench.pass(Duration::from_secs(2));
    assert_eq!(
        bench.finish_all(),
        ["b"],
        "what has run since has no time any more"
    );
}

#[test]
fn first_kinds_that_wait_for_another_kind_let_it_go_first_when_nothing_else_can_run() {
    let mut first = KindOptions::new("parser");
    first.first = true;
    let mut bench = Bench::with(vec![KindOptions::new("k"), first], Limits::default());
    bench.create(&[("a", &[]), ("b", &[])]);
    let parser = bench.new_of("parser", "p", &["a"]);
    bench.apply(vec![Edit::create(parser)]);
    bench.finish_all();
    bench.restart();
    assert_eq!(bench.finish_all(), ["a", "b", "p"], "no deadlock");
    assert!(bench.is_idle());
}

#[test]
fn c18_idle_is_answered_when_all_is_settled_whatever_times_are_to_come() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[])]);
    let call = bench.call(Call::WaitUntilIdle);
    assert_eq!(bench.answer_to(call), None);
    let at = bench.now.wall.0 + 60_000;
    bench.finish_at("a", Some(at));
    assert_eq!(bench.answer_to(call), Some(Answer::Done));
}

#[test]
fn a_kind_without_reconciler_is_unsupported_and_no_failed_parent() {
    let limits = Limits::default().unregistered_kinds();
    let mut bench = Bench::with(vec![KindOptions::new("k")], limits);
    let foreign = bench.new_of("foreign", "f", &[]);
    let mut child = bench.new_resource("c", &[]);
    child.refs = [crate::Ref::completed("foreign", "f")].into();
    bench.apply(vec![Edit::create(foreign), Edit::create(child)]);
    assert_eq!(bench.starts(), ["c"]);
    assert!(!bench.running("c").refs[0].failed);
    assert_eq!(bench.stage("f"), Stage::Settled(Settled::Unsupported));
}

#[test]
fn what_ran_is_kept_until_its_kind_is_registered_again() {
    let limits = Limits::default().unregistered_kinds();
    let mut bench = Bench::with(vec![KindOptions::new("k"), KindOptions::new("other")], limits);
    bench.settled(&[("a", &[])]);
    bench.register(vec![KindOptions::new("other")]);
    bench.restart();
    bench.create(&[("never_run", &[])]);
    for name in ["a", "never_run"] {
        let call = bench.delete(name);
        assert!(matches!(bench.answer_to(call), Some(Answer::Applied(_))));
    }
    bench.register(vec![KindOptions::new("k"), KindOptions::new("other")]);
    bench.restart();
    assert_eq!(bench.finish_all(), ["delete a"]);
}

#[test]
fn an_unreadable_row_is_listed_and_never_touched() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"])]);
    let before = bench.row("a");
    bench.restart_with(|row| (row.name.as_str() == "a").then(|| Error::permanent("unreadable", "cut short")));
    assert_eq!(bench.finish_all(), ["b"]);
    let call = bench.edit_spec("a", "new");
    assert!(matches!(
        bench.answer_to(call),
        Some(Answer::Refused(crate::Refusal::Unreadable(_)))
    ));
    assert_eq!(*bench.rows[&before.uid], *before);
}

#[test]
fn a_handle_waits_for_what_came_below_since_an_earlier_one() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"]), ("c", &[])]);
    let first = bench.reconcile("a");
    bench.edit_refs("c", &["a"]);
    let second = bench.reconcile("a");
    bench.finish("a");
    bench.finish("a");
    bench.finish("b");
    let settled = Answer::Settled(Settlement::Settled);
    assert!(bench.answers_to(first).contains(&settled));
    assert!(
        !bench.answers_to(second).contains(&settled),
        "`c` has not run yet"
    );
    bench.finish("c");
    assert!(bench.answers_to(second).contains(&settled));
}

#[test]
fn request_1_asks_for_what_was_made_by_another_version_of_its_kind() {
    let kind = |spec_format, state_format| KindOptions {
        at_start: AtStart::AskIfUnsettled,
        spec_format,
        state_format,
        ..KindOptions::new("k")
    };
    let mut bench = Bench::with(vec![kind(1, 1)], Limits::default());
    bench.settled(&[("a", &[])]);
    for (versions, starts) in [((1, 1), 0), ((2, 1), 1), ((2, 1), 0), ((2, 2), 1), ((2, 2), 0)] {
        bench.register(vec![kind(versions.0, versions.1)]);
        bench.restart();
        assert_eq!(bench.finish_all().len(), starts, "{versions:?}");
    }
}

#[test]
fn request_1_leaves_out_what_may_rest_unless_it_is_unsettled() {
    let mut bench = Bench::new();
    bench.settled(&[
        ("parent", &[]),
        ("rests", &["parent"]),
        ("looks", &["parent"]),
        ("failed", &[]),
    ]);
    bench.reconcile("failed");
    bench.fail("failed");
    let all_but_looks = |stored: StoredRow| StoredRow {
        may_rest: stored.row.name.as_str() != "looks",
        ..stored
    };
    bench.restart_from(all_but_looks);
    assert_eq!(bench.finish_all(), ["failed", "looks"]);
    // Of what a parent made since, one that rests has not seen anything.
    bench.reconcile("parent");
    let by = bench.running("parent").invocation;
    bench.write_state(by, "made");
    bench.finish("parent");
    bench.restart_from(all_but_looks);
    assert!(bench.finish_all().contains(&"rests".to_owned()));
}

#[test]
fn a_state_is_stored_with_the_version_of_its_message() {
    let kind = KindOptions {
        state_format: 7,
        ..KindOptions::new("k")
    };
    let mut bench = Bench::with(vec![kind], Limits::default());
    bench.create(&[("a", &[])]);
    let by = bench.running("a").invocation;
    bench.write_state(by, "made");
    assert_eq!(bench.row("a").state_format, 7);
}

#[test]
fn progress_is_shown_while_it_runs() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[])]);
    let invocation = bench.running("a").invocation;
    let text: std::sync::Arc<str> = "half way".into();
    bench.input(crate::Input::Progress {
        invocation,
        text: text.clone(),
    });
    let slot = bench.core.graph().find(bench.row("a").uid).expect("it is there");
    assert_eq!(bench.core.graph().status(slot).progress, Some(text));
    bench.finish("a");
    assert_eq!(bench.core.graph().status(slot).progress, None);
}

#[test]
fn a_handle_waits_for_what_is_below_at_the_time_of_its_own_request() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"])]);
    let before = bench.reconcile("a");
    bench.create(&[("c", &["a"])]);
    let after = bench.reconcile("a");
    bench.finish("a");
    bench.finish("a");
    bench.finish("b");
    assert!(has_settled(&bench, before) && !has_settled(&bench, after));
    bench.finish("c");
    assert_eq!(bench.answer_to(after), Some(Answer::Settled(Settlement::Settled)));
}

#[test]
fn a_handle_of_what_is_to_be_deleted_is_told_so_though_the_delete_fails() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    let call = bench.reconcile("a");
    bench.delete("a");
    bench.finish("a");
    bench.fail("a");
    assert!(
        bench
            .answers_to(call)
            .contains(&Answer::Outcome(RunOutcome::Failed {
                invocation: crate::InvocationId(3),
                error: bench
                    .published
                    .values()
                    .next()
                    .and_then(|row| row.error.clone())
                    .expect("it failed"),
            }))
    );
}

#[test]
fn who_is_gone_is_told_nothing_more() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    let handle = bench.reconcile("a");
    let (gone, stays) = (bench.call(Call::WaitUntilIdle), bench.call(Call::WaitUntilIdle));
    for call in [handle, gone] {
        bench.input(crate::Input::Forget(call));
    }
    bench.finish("a");
    assert_eq!(bench.answers_to(handle).len(), 1, "that the request stands");
    assert_eq!(
        (bench.answer_to(gone), bench.answer_to(stays)),
        (None, Some(Answer::Done))
    );
}

#[test]
fn a_later_handle_waits_also_for_what_has_settled_for_an_earlier_one() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"]), ("c", &["a"])]);
    let before = bench.reconcile("a");
    bench.finish("a");
    bench.finish("b");
    let after = bench.reconcile("a");
    bench.finish("c");
    bench.finish("a");
    bench.finish("c");
    assert!(
        has_settled(&bench, before) && !has_settled(&bench, after),
        "it waits for \"b\" once more"
    );
    bench.finish("b");
    assert_eq!(bench.answer_to(after), Some(Answer::Settled(Settlement::Settled)));
}
