//! Tests of answers to callers that wait for an outcome.

use std::time::Duration;

use crate::testing::{Bench, target};
use crate::{Answer, Batch, Call, Edit, Input, RunOutcome, Settled, Settlement, Update};

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
    // The rename was cancelled, and has failed; what was requested cannot run before that is done.
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

fn outcomes(bench: &Bench, call: crate::CallId) -> Option<Vec<RunOutcome>> {
    let told = bench.answers_to(call);
    told.into_iter().find_map(|answer| match answer {
        Answer::Outcomes(outcomes) => Some(outcomes),
        _ => None,
    })
}

fn is_settled(bench: &Bench, call: crate::CallId) -> bool {
    bench
        .answers_to(call)
        .contains(&Answer::Settled(Settlement::Settled))
}

fn await_edits(bench: &mut Bench, edits: Vec<Edit>) -> crate::CallId {
    bench.call(Call::ApplyAndAwait(Batch { edits }))
}

#[test]
fn a_create_is_awaited_to_the_end_of_its_first_run() {
    let mut bench = Bench::new();
    let new = bench.new_resource("a", &[]);
    let call = await_edits(&mut bench, vec![Edit::create(new)]);
    assert!(matches!(bench.answers_to(call).as_slice(), [Answer::Applied(_)]));
    assert_eq!(bench.finish_all(), ["a"], "it runs once");
    assert!(matches!(
        outcomes(&bench, call).as_deref(),
        Some([RunOutcome::Done { .. }])
    ));
    assert!(is_settled(&bench, call));
}

#[test]
fn an_update_is_awaited_to_the_end_of_the_run_that_saw_it() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"])]);
    bench.reconcile("a");
    let spec = Some((std::sync::Arc::from(*b"other"), 1));
    let update = Update {
        spec,
        ..Update::default()
    };
    let call = await_edits(&mut bench, vec![Edit::update(target("a"), update.clone())]);
    // The invocation that ran before is cancelled; its end is no outcome of the update.
    bench.finish("a");
    assert_eq!(outcomes(&bench, call), None);
    // The same update again changes nothing: the invocation that runs has seen it.
    let again = await_edits(&mut bench, vec![Edit::update(target("a"), update.clone())]);
    bench.fail("a");
    for call in [call, again] {
        let outcomes = outcomes(&bench, call);
        assert!(matches!(outcomes.as_deref(), Some([RunOutcome::Failed { .. }])));
        assert!(!is_settled(&bench, call), "what is below has yet to settle");
    }
    bench.finish_all();
    assert!(is_settled(&bench, call) && is_settled(&bench, again));
    let idle = await_edits(&mut bench, vec![Edit::update(target("a"), update)]);
    let outcome = RunOutcome::NotRun(Settled::Failed);
    assert_eq!(
        outcomes(&bench, idle),
        Some(vec![outcome]),
        "nothing was asked for"
    );
    assert!(is_settled(&bench, idle));
}

#[test]
fn a_delete_is_awaited_until_it_is_done() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    let call = await_edits(&mut bench, vec![Edit::delete(target("a"))]);
    bench.fail("a");
    let first = outcomes(&bench, call);
    assert!(
        matches!(first.as_deref(), Some([RunOutcome::Failed { .. }])),
        "{first:?}"
    );
    assert!(!is_settled(&bench, call), "it is tried again");
    let second = await_edits(&mut bench, vec![Edit::delete(target("a"))]);
    assert_eq!(
        outcomes(&bench, second),
        Some(vec![RunOutcome::NotRun(Settled::Retrying)])
    );
    bench.pass(Duration::from_secs(5));
    bench.finish_all();
    assert!(is_settled(&bench, call) && is_settled(&bench, second));

    bench.settled(&[("b", &[])]);
    let forced = await_edits(&mut bench, vec![Edit::force_delete(target("b"))]);
    assert_eq!(outcomes(&bench, forced), Some(vec![RunOutcome::Deleted]));
    assert!(is_settled(&bench, forced));
}

#[test]
fn the_edits_of_a_batch_are_awaited_together() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &[])]);
    let new = bench.new_resource("c", &["b"]);
    let edits = vec![
        Edit::delete(target("a")),
        Edit::create(new),
        Edit::rename(target("b"), "d"),
    ];
    let call = await_edits(&mut bench, edits);
    bench.finish("a");
    assert_eq!(outcomes(&bench, call), None);
    bench.finish_all();
    assert!(matches!(
        outcomes(&bench, call).as_deref(),
        Some([
            RunOutcome::Deleted,
            RunOutcome::Done { .. },
            RunOutcome::Done { .. }
        ])
    ));
    assert!(is_settled(&bench, call));
    let nothing = await_edits(&mut bench, Vec::new());
    assert_eq!(outcomes(&bench, nothing), Some(Vec::new()));
    assert!(is_settled(&bench, nothing));
}

#[test]
fn edits_of_a_shared_instance_are_awaited_beyond_their_holder() {
    let mut bench = Bench::new();
    bench.create(&[("a", &[])]);
    let uids = vec![bench.row("a").uid, crate::Uid(uuid::Uuid::from_u128(99))];
    let revision = bench.core.revision();
    let call = bench.call(Call::Await(crate::Applied { revision, uids }));
    bench.finish_all();
    assert!(matches!(
        outcomes(&bench, call).as_deref(),
        Some([RunOutcome::Done { .. }, RunOutcome::Deleted])
    ));
    assert!(is_settled(&bench, call));
}

#[test]
fn whoever_awaits_edits_when_the_controller_ends_is_told_so() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &[])]);
    let edits = vec![Edit::force_delete(target("a")), Edit::delete(target("b"))];
    let call = await_edits(&mut bench, edits);
    bench.input(Input::Shutdown {
        grace: Duration::from_secs(1),
    });
    assert_eq!(
        outcomes(&bench, call),
        Some(vec![RunOutcome::Deleted, RunOutcome::ShutDown])
    );
    assert!(
        bench
            .answers_to(call)
            .contains(&Answer::Settled(Settlement::ShutDown))
    );
}

#[test]
fn an_apply_creates_a_resource_or_replaces_all_of_its_columns() {
    let mut bench = Bench::new();
    bench.settled(&[("p", &[])]);
    let new = bench.new_resource("a", &["p"]);
    let uid = new.uid;
    bench.apply(vec![Edit::apply(new)]);
    assert_eq!(bench.finish_all(), ["a"]);
    // Another declaration of it has a uid of its own, which is not used.
    let other = bench.new_resource("a", &[]);
    bench.apply(vec![Edit::apply(other.clone())]);
    assert_eq!(bench.row("a").uid, uid);
    assert!(
        bench.row("a").refs.is_empty(),
        "what it does not say is taken away"
    );
    assert_eq!(bench.finish_all(), ["a"]);
    bench.apply(vec![Edit::apply(other.clone())]);
    assert!(bench.finish_all().is_empty(), "nothing has changed");
    // One that is being deleted is taken up again.
    bench.delete("a");
    bench.apply(vec![Edit::apply(other.clone())]);
    bench.finish_all();
    assert_eq!(bench.row("a").uid, uid);
    // Beside an edit that says something else it is a contradiction.
    let edits = vec![Edit::rename(target("a"), "z"), Edit::apply(other)];
    let call = bench.apply(edits);
    let refused = bench.answers_to(call);
    assert!(matches!(
        refused.as_slice(),
        [Answer::Refused(crate::Refusal::Contradiction(_))]
    ));
}

#[test]
fn a_cancel_finds_a_delete_that_runs_by_its_uid() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[])]);
    let uid = bench.row("a").uid;
    bench.delete("a");
    let by_name = bench.call(Call::Cancel(target("a")));
    assert!(matches!(
        bench.answer_to(by_name),
        Some(Answer::Refused(crate::Refusal::Unknown(_)))
    ));
    let running = bench.running("a").invocation;
    let by_uid = bench.call(Call::Cancel(uid.into()));
    assert_eq!(bench.answer_to(by_uid), Some(Answer::Done));
    assert_eq!(bench.cancelled, [running]);
    bench.finish("a");
    assert!(bench.starts().len() == 1, "it is tried again later");
    bench.pass(Duration::from_secs(5));
    bench.finish("a");
    assert!(bench.rows.is_empty());
}
