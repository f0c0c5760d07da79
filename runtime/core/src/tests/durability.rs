//! What is released when: answers, snapshots and starts after their commits, and stopping.

use std::time::Duration;

use crate::testing::{Bench, Store};
use crate::{Answer, CommitError, Input, Limits, Refusal, StopReason};

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

/// The first try of a commit may be in the store although its answer never came.
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
