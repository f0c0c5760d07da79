//! Answers to callers that wait for an outcome.

use std::time::Duration;

use crate::testing::{Bench, target};
use crate::{Answer, Call, RunOutcome, Settled};

fn outcome(bench: &Bench, call: crate::CallId) -> Option<RunOutcome> {
    let told = bench.answers_to(call);
    told.into_iter().find_map(|answer| match answer {
        Answer::Outcome(outcome) => Some(outcome),
        _ => None,
    })
}

#[test]
fn the_end_of_an_earlier_invocation_is_no_outcome() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    bench.rename("a", "b");
    let call = bench.reconcile("b");
    bench.call(Call::Cancel(target("b")));
    bench.finish("b");
    // The rename was cancelled, and has failed; what was asked for cannot run before that is done.
    assert_eq!(outcome(&bench, call), Some(RunOutcome::NotRun(Settled::Retrying)));
}

#[test]
fn what_is_deleted_beside_its_abandoned_invocation_is_told_as_deleted() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    let call = bench.reconcile("a");
    bench.delete("a");
    bench.pass(Duration::from_secs(600));
    assert_eq!(outcome(&bench, call), Some(RunOutcome::Deleted));
}
