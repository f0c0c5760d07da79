//! Tests of the order of release (answers, snapshots and starts after their commits), and of stopping.

use std::time::Duration;

use crate::testing::{Bench, Store, target};
use crate::{
    Answer, Batch, Call, CallId, CommitError, Edit, Effect, Input, KindOptions, Limits, Outcome, Refusal,
    Returned, Revision, RunOutcome, Settlement, Stage, StopReason, Update, Work, Write,
};

#[test]
fn nothing_is_released_before_its_rows_are_committed() {
    let mut bench = Bench::new();
    bench.store = Store::ByHand;
    bench.create(&[("a", &[])]);
    let refused = bench.reconcile("missing");
    assert!(bench.starts().is_empty() && bench.published.is_empty());
    assert_eq!(bench.answer_to(refused), None);
    bench.commit();
    assert_eq!(bench.starts(), ["a"]);
    assert!(matches!(
        bench.answer_to(refused),
        Some(Answer::Refused(Refusal::Unknown(_)))
    ));
}

#[test]
fn outcomes_do_not_hold_back_children() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"])]);
    bench.reconcile("a");
    bench.store = Store::ByHand;
    bench.starts();
    bench.finish("a");
    assert_eq!(bench.starts(), ["b"]);
}

#[test]
fn a_failing_commit_is_tried_again_for_its_patience_and_then_stops_the_core() {
    let mut bench = Bench::new();
    bench.store = Store::ByHand;
    bench.create(&[("a", &[])]);
    let call = crate::CallId(1);
    bench.fail_commit(CommitError::Failed("disk full".into()));
    bench.pass(Duration::from_secs(2));
    assert_eq!(bench.commits.len(), 1, "the same commit is asked for again");
    bench.pass(Duration::from_secs(28));
    bench.fail_commit(CommitError::Failed("disk full".into()));
    assert_eq!(
        bench.answer_to(call),
        Some(Answer::Refused(Refusal::OutcomeUnknown))
    );
    assert!(matches!(bench.stopped, Some((StopReason::StoreFailed(_), _))));
}

#[test]
fn a_lost_lease_stops_at_once() {
    let mut bench = Bench::new();
    bench.store = Store::ByHand;
    bench.create(&[("a", &[])]);
    bench.fail_commit(CommitError::LeaseLost);
    assert!(matches!(bench.stopped, Some((StopReason::LeaseLost, _))));
    assert_eq!(
        bench.answer_to(crate::CallId(1)),
        Some(Answer::Refused(Refusal::LeaseLost)),
        "the first try was refused: nothing is in the store"
    );
}

/// Covers a commit whose first try may be in the store although its answer never came.
#[test]
fn whether_a_commit_was_through_when_the_lease_was_lost_may_be_unknown() {
    for in_time in [false, true] {
        let mut bench = Bench::new();
        bench.store = Store::ByHand;
        bench.create(&[("a", &[])]);
        if in_time {
            bench.input(Input::LeaseLost);
        } else {
            bench.fail_commit(CommitError::Failed("no answer".into()));
            bench.pass(Duration::from_secs(2));
            bench.fail_commit(CommitError::LeaseLost);
        }
        assert_eq!(
            bench.answer_to(crate::CallId(1)),
            Some(Answer::Refused(Refusal::OutcomeUnknown))
        );
    }
}

#[test]
fn a_shutdown_cancels_waits_for_its_grace_and_names_what_did_not_return() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[]), ("b", &[])]);
    bench.input(Input::Shutdown {
        grace: Duration::from_secs(5),
    });
    assert!(bench.is_cancelled("a") && bench.is_cancelled("b"));
    let late = bench.reconcile("a");
    assert_eq!(
        bench.answer_to(late),
        Some(Answer::Refused(Refusal::ShuttingDown))
    );
    bench.finish("a");
    assert!(bench.stopped.is_none());
    bench.pass(Duration::from_secs(5));
    let (reason, unreturned) = bench.stopped.clone().expect("stopped");
    assert_eq!(reason, StopReason::Shutdown);
    assert_eq!(unreturned.len(), 1);
}

#[test]
fn a_shutdown_does_not_wait_for_ever_for_a_commit_that_hangs() {
    let mut bench = Bench::new();
    bench.store = Store::ByHand;
    bench.create(&[("a", &[])]);
    let grace = Duration::from_secs(5);
    bench.input(Input::Shutdown { grace });
    bench.pass(grace);
    assert!(bench.stopped.is_none(), "the store has its own patience");
    bench.pass(Limits::default().commit_patience);
    assert!(matches!(bench.stopped, Some((StopReason::StoreFailed(_), _))));
}

#[test]
fn a_second_shutdown_hardly_waits_for_a_commit_that_hangs() {
    let mut bench = Bench::new();
    bench.store = Store::ByHand;
    bench.create(&[("a", &[])]);
    for _ in 0..2 {
        bench.input(Input::Shutdown {
            grace: Duration::from_secs(3_600),
        });
    }
    bench.pass(Duration::from_secs(1));
    assert!(matches!(bench.stopped, Some((StopReason::StoreFailed(_), _))));
}

#[test]
fn a_failed_commit_is_tried_again_after_a_wait_that_doubles_up_to_its_cap() {
    let mut bench = Bench::new();
    bench.store = Store::ByHand;
    bench.create(&[("a", &[])]);
    let first = bench.commits[0].id;
    for wait in [50, 100, 200, 400, 800, 1_600, 2_000, 2_000] {
        bench.fail_commit(CommitError::Failed("disk full".into()));
        let wait = Duration::from_millis(wait);
        assert_eq!(bench.timer, Some(bench.now.mono.after(wait)));
        bench.pass(wait);
        assert_eq!(bench.commits.last().map(|commit| commit.id), Some(first));
    }
}

#[test]
fn whatever_waits_for_the_store_counts_against_the_bound_on_calls() {
    let limits = Limits {
        backlog: 10,
        ..Limits::default()
    };
    let mut bench = Bench::with(vec![KindOptions::new("k")], limits);
    bench.settled(&[("a", &[]), ("b", &[]), ("c", &[])]);
    bench.reconcile("a");
    bench.store = Store::ByHand;
    bench.edit_spec("b", "1");
    // One row, one resource that is gone, five answers, and a run that no row tells of.
    bench.edit_spec("b", "2");
    let looked = Outcome::from_work(Work::Checked);
    bench.returns("a", Returned::Done(looked));
    bench.apply(vec![Edit::force_delete(target("c"))]);
    assert_eq!(bench.core.journal().backlog(), 8);
    assert!(bench.core.accepts_calls());
    bench.edit_spec("a", "1");
    assert!(!bench.core.accepts_calls());
    while !bench.commits.is_empty() {
        bench.commit();
    }
    assert_eq!(bench.core.journal().backlog(), 0);
}

#[test]
fn a_shutdown_waits_for_a_commit_that_nobody_waits_for() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[])]);
    bench.store = Store::ByHand;
    bench.finish("a");
    bench.input(Input::Shutdown {
        grace: Duration::from_secs(5),
    });
    assert!(bench.stopped.is_none());
    bench.commit();
    assert!(matches!(bench.stopped, Some((StopReason::Shutdown, _))));
    assert_eq!(
        bench.rows.values().map(|row| row.runs_total).collect::<Vec<_>>(),
        [1]
    );
}

#[test]
fn a_commit_carries_out_the_answers_up_to_its_revision() {
    let mut bench = Bench::new();
    bench.store = Store::ByHand;
    let first = bench.apply(vec![]);
    assert!(bench.answer_to(first).is_some(), "it changes nothing");
    bench.create(&[("a", &[])]);
    bench.create(&[("b", &[])]);
    let through = |revision| bench.core.answers_through(Revision(revision)).count();
    assert_eq!([through(0), through(1), through(2)], [0, 1, 2]);
}

#[test]
fn the_store_hears_nothing_of_what_it_never_had_and_of_the_rest_once() {
    let mut bench = Bench::new();
    bench.store = Store::ByHand;
    bench.create(&[("busy", &[])]);
    bench.create(&[("a", &[])]);
    bench.apply(vec![Edit::force_delete(target("a"))]);
    bench.create(&[("b", &[])]);
    bench.commit();
    let written = bench.commits[0].writes.iter().map(|write| match write {
        Write::Put(row) => row.name.to_string(),
        Write::Remove(uid) => format!("without {uid}"),
    });
    assert_eq!(written.collect::<Vec<_>>(), ["b"]);
}

#[test]
fn readers_are_told_how_a_new_resource_stands_though_nothing_happens_to_it() {
    let mut bench = Bench::with_concurrency(1);
    bench.create(&[("a", &[]), ("b", &[])]);
    assert_eq!(bench.stage("b"), Stage::Pending);
    let is_cancelled = |bench: &Bench| match bench.stage("a") {
        Stage::Running { cancelled, .. } => cancelled,
        other => panic!("{other:?}"),
    };
    assert!(!is_cancelled(&bench));
    bench.edit_spec("a", "new");
    assert!(is_cancelled(&bench));
}

#[test]
fn who_waits_for_an_outcome_is_told_that_none_will_come() {
    let stops = [
        (Input::LeaseLost, RunOutcome::LeaseLost, Settlement::LeaseLost),
        (
            Input::Shutdown {
                grace: Duration::from_secs(5),
            },
            RunOutcome::ShutDown,
            Settlement::ShutDown,
        ),
    ];
    for (stop, outcome, settled) in stops {
        let mut bench = Bench::new();
        bench.settled(&[("a", &[]), ("b", &["a"])]);
        let both = bench.reconcile("a");
        let one = bench.reconcile("b");
        bench.finish("a");
        let gone = bench.answers_to(both).len();
        bench.input(stop);
        let told = |call, from: usize| bench.answers_to(call)[from..].to_vec();
        assert_eq!(
            told(both, gone),
            [Answer::Settled(settled)],
            "its outcome is known"
        );
        assert_eq!(told(one, 1), [Answer::Outcome(outcome), Answer::Settled(settled)]);
    }
}

#[test]
fn what_has_stopped_says_nothing_more() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    bench.input(Input::Shutdown {
        grace: Duration::from_secs(5),
    });
    assert!(bench.stopped.is_some() && bench.core.is_stopped());
    bench.timer = None;
    let call = bench.reconcile("a");
    bench.pass(Duration::from_secs(600));
    assert_eq!((bench.answer_to(call), bench.timer), (None, None));
}

#[test]
fn a_host_knows_what_its_next_flush_would_bring_and_may_leave_the_commit_out() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &[]), ("c", &[]), ("d", &[]), ("e", &[])]);
    let (core, now) = (&mut bench.core, bench.now);
    let mut effects = Vec::new();
    let hide = |name| {
        let update = Update {
            hidden: Some(true),
            ..Update::default()
        };
        Edit::update(target(name), update)
    };
    let batches = [
        vec![hide("a"), hide("b")],
        vec![hide("c"), hide("d"), Edit::force_delete(target("e"))],
    ];
    for (number, edits) in (900..).zip(batches) {
        let call = Call::Apply(Batch { edits });
        let id = CallId(number);
        core.handle(now, Input::Call { id, by: None, call }, &mut effects);
    }
    let answers = |effects: &[Effect]| {
        let answers = effects.iter().filter(|it| matches!(it, Effect::Answer { .. }));
        answers.count()
    };
    core.flush_but_commit(now, &mut effects);
    let commits = |effect: &Effect| matches!(effect, Effect::Commit(_));
    assert!(!effects.iter().any(commits) && answers(&effects) == 0);
    // Four rows, one that is gone, and what history says of that.
    assert_eq!((core.to_commit(), core.answers_to_release()), (6, 0));
    core.flush(now, &mut effects);
    let commit = effects.iter().find_map(|effect| match effect {
        Effect::Commit(commit) => Some(commit.id),
        _ => None,
    });
    assert_eq!(
        (core.to_commit(), core.answers_to_release()),
        (0, 0),
        "the store is busy"
    );
    core.handle(now, Input::Committed(commit.expect("a commit")), &mut effects);
    assert_eq!((core.to_commit(), core.answers_to_release()), (0, 2));
    core.flush_but_commit(now, &mut effects);
    assert_eq!((core.answers_to_release(), answers(&effects)), (0, 2));
}
