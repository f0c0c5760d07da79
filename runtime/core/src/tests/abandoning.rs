//! Tests of invocations that do not return after their cancel (C10).

use std::time::Duration;

use crate::testing::{Bench, target};
use crate::{Answer, Call, Edit, InvocationId, Key, KindOptions, Limits, Refusal, Settled, Stage, Trigger};

const DEADLINE: Duration = Duration::from_secs(600);

/// Builds `a` with `below` under it and `other` beside it; the run of `a` is cancelled and does not return.
fn stuck() -> (Bench, InvocationId) {
    let mut bench = Bench::new();
    bench.settled(&[("top", &[]), ("a", &["top"]), ("below", &["a"]), ("other", &[])]);
    bench.reconcile("a");
    let invocation = bench.running("a").invocation;
    bench.edit_spec("a", "new");
    bench.starts();
    bench.pass(DEADLINE);
    (bench, invocation)
}

fn is_abandoned(bench: &Bench, name: &str, by: InvocationId) -> bool {
    matches!(
        bench.stage(name),
        Stage::Settled(Settled::Abandoned { invocation, .. }) if invocation == by
    )
}

#[test]
fn c10_it_is_reported_and_nothing_else_waits_for_it() {
    let (mut bench, by) = stuck();
    assert!(bench.is_idle());
    assert!(is_abandoned(&bench, "a", by) && is_abandoned(&bench, "below", by));
    bench.reconcile("top");
    bench.reconcile("other");
    assert_eq!(bench.starts(), ["top", "other"]);
    bench.finish("top");
    bench.finish("other");
    assert!(bench.is_idle() && bench.starts().is_empty());
    let call = bench.reconcile("below");
    let kept_out = |answer: &Answer| {
        matches!(
            answer,
            Answer::Outcome(crate::RunOutcome::NotRun(Settled::Abandoned { .. }))
        )
    };
    assert!(bench.answers_to(call).iter().any(kept_out));
}

#[test]
fn c10_it_is_taken_up_again_when_it_returns_after_all() {
    let (mut bench, by) = stuck();
    bench.finish("a");
    assert_eq!(bench.starts(), ["a"]);
    let run = bench.running("a");
    assert!(run.invocation != by && run.reason.trigger == Trigger::Recovered);
    assert_eq!(bench.finish_all(), ["below"]);
    assert!(bench.is_idle());
}

#[test]
fn c10_its_writes_are_refused() {
    let (mut bench, by) = stuck();
    let call = bench.write_state(by, "late");
    let refused = Some(Answer::Refused(Refusal::InvocationCancelled));
    assert_eq!(bench.answer_to(call), refused);
}

#[test]
fn c10_its_slot_is_free() {
    let mut bench = Bench::with_concurrency(1);
    bench.settled(&[("a", &[]), ("b", &[])]);
    bench.reconcile("a");
    bench.call(Call::Cancel(target("a")));
    bench.reconcile("b");
    bench.starts();
    bench.pass(DEADLINE);
    assert_eq!(bench.starts(), ["b"]);
}

#[test]
fn c10_its_delete_waits_for_it_and_holds_nobody_back() {
    let (mut bench, _) = stuck();
    bench.delete("a");
    bench.reconcile("other");
    assert_eq!(bench.starts(), ["below", "other"]);
    bench.finish("below");
    bench.finish("other");
    assert!(bench.is_idle());
    bench.finish("a");
    assert_eq!(bench.starts(), ["delete a"]);
    bench.finish_all();
    assert_eq!(bench.rows.len(), 3);
}

#[test]
fn c10_what_gets_one_of_its_names_is_kept_out_and_asked_for_afterwards() {
    let (mut bench, by) = stuck();
    bench.rename("a", "b");
    bench.create(&[("a", &[])]);
    bench.rename("other", "a2");
    bench.finish("a2");
    assert!(is_abandoned(&bench, "a", by) && is_abandoned(&bench, "b", by));
    bench.starts();
    let run = bench.running.iter().position(|start| start.invocation == by);
    let run = bench.running.remove(run.expect("it has not returned"));
    bench.input(crate::Input::Returned {
        invocation: run.invocation,
        result: crate::Returned::Panicked("late".into()),
    });
    // Both of the same class, so by their names.
    assert_eq!(bench.finish_all(), ["rename b", "a", "b", "below"]);
    assert!(bench.is_idle());
}

#[test]
fn c10_one_that_was_deleted_by_force_goes_when_it_returns() {
    let (mut bench, by) = stuck();
    bench.apply(vec![Edit::force_delete(Key::new("k", "a"))]);
    bench.finish("below");
    bench.create(&[("a", &[])]);
    assert!(is_abandoned(&bench, "a", by));
    bench.restart();
    assert!(
        bench.starts().contains(&"a".to_owned()),
        "a restart knows of none"
    );
}

#[test]
fn c10_a_shutdown_names_it_and_does_not_wait_for_it() {
    let (mut bench, by) = stuck();
    bench.input(crate::Input::Shutdown {
        grace: Duration::from_secs(30),
    });
    let (_, unreturned) = bench.stopped.clone().expect("it stops at once");
    assert_eq!(unreturned.first().map(|one| one.invocation), Some(by));
}

#[test]
fn c10_nothing_is_abandoned_any_more_during_a_shutdown() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    bench.reconcile("a");
    bench.edit_spec("a", "new");
    bench.pass(DEADLINE - Duration::from_secs(1));
    bench.input(crate::Input::Shutdown {
        grace: Duration::from_secs(30),
    });
    bench.pass(Duration::from_secs(2));
    assert!(bench.stopped.is_none());
    bench.finish("a");
    let (_, unreturned) = bench.stopped.clone().expect("all has returned");
    assert!(unreturned.is_empty());
}

#[test]
fn c10_it_counts_as_a_run_once_it_has_returned() {
    let (mut bench, _) = stuck();
    let before = bench.row("a").runs_total;
    bench.finish("a");
    assert_eq!(bench.row("a").runs_total, before + 1);
}

#[test]
fn c10_it_keeps_others_only_from_the_names_that_it_began_with() {
    let (mut bench, _) = stuck();
    // What has to do with a name that the abandoned one's resource gets later.
    bench.rename("other", "c");
    bench.fail("c");
    bench.starts();
    bench.rename("a", "other");
    bench.finish("below");
    bench.starts();
    bench.call(Call::Retry(target("c")));
    assert_eq!(bench.starts(), ["rename c"]);
}

#[test]
fn c6_what_it_does_not_keep_out_holds_regular_work_back_as_ever() {
    let (mut bench, _) = stuck();
    bench.delete("other");
    bench.reconcile("top");
    assert_eq!(bench.starts(), ["delete other"]);
    bench.finish("other");
    assert_eq!(bench.starts(), ["top"]);
}

/// Builds `x`, renamed to the name of `y`, whose delete or rename has failed. The rename is abandoned, and returns
/// before the failed operation is tried again.
fn beside_one_that_failed(end: impl FnOnce(&mut Bench)) -> Bench {
    let options = KindOptions {
        cancel_deadline: Duration::from_millis(100),
        ..KindOptions::new("k")
    };
    let mut bench = Bench::with(vec![options], Limits::default());
    bench.settled(&[("y", &[]), ("below", &["y"]), ("x", &[])]);
    end(&mut bench);
    bench.finish_all();
    bench.rename("x", "y");
    let run = bench.running.first().cloned().expect("it is renamed");
    bench.edit_spec("y", "new");
    bench.pass(Duration::from_millis(100));
    assert!(is_abandoned(&bench, "y", run.invocation));
    bench.starts();
    bench.finish("y");
    bench
}

#[test]
fn c10_when_it_returns_nothing_is_asked_for_that_it_did_not_keep_out() {
    let mut bench = beside_one_that_failed(|bench| {
        bench.rename("y", "z");
        bench.fail("z");
        bench.create(&[("beside", &["z"])]);
    });
    assert_eq!(bench.starts(), ["rename y"]);
    let mut bench = beside_one_that_failed(|bench| {
        bench.delete("y");
        bench.fail("y");
    });
    assert_eq!(bench.starts(), ["rename y"]);
}

#[test]
fn c10_it_says_that_it_runs_again_for_that_though_something_else_asks_as_well() {
    let (mut bench, _) = stuck();
    bench.reconcile("top");
    bench.finish("a");
    bench.finish("top");
    assert_eq!(bench.running("a").reason.trigger, Trigger::Recovered);
}

#[test]
fn a_name_that_an_abandoned_invocation_did_not_begin_under_is_free_once_its_resource_is_gone() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[])]);
    bench.call(Call::Cancel(target("a")));
    bench.pass(Duration::from_secs(601));
    bench.rename("a", "b");
    bench.rename("b", "c");
    bench.create(&[("b", &[])]);
    let waits = bench.stage("b");
    assert!(
        matches!(waits, Stage::Settled(Settled::WaitingForName { .. })),
        "{waits:?}"
    );
    bench.apply(vec![Edit::force_delete(target("c"))]);
    assert!(bench.is_running("b"));
}
