//! C15: deleting an owner deletes what it owns.

use std::time::Duration;

use crate::testing::{Bench, target};
use crate::{Answer, Edit, Error, Key, Refusal, RetryPolicy, Returned, Update};

/// "owner" owns "a", which owns "b"; "free" belongs to nobody.
fn owned() -> Bench {
    let mut bench = Bench::new();
    bench.settled(&[("owner", &[]), ("free", &[])]);
    for (name, owner) in [("a", "owner"), ("b", "a")] {
        let mut new = bench.new_resource(name, &[]);
        new.owner = Some(bench.row(owner).uid);
        bench.apply(vec![Edit::create(new)]);
    }
    bench.finish_all();
    bench
}

#[test]
fn c15_a_delete_takes_along_what_is_owned_the_owned_first() {
    let mut bench = owned();
    bench.delete("owner");
    assert_eq!(bench.finish_all(), ["delete b", "delete a", "delete owner"]);
    assert_eq!(bench.rows.len(), 1);
}

#[test]
fn c15_also_after_a_restart_and_when_the_owner_deletes_itself() {
    let mut bench = owned();
    bench.restart();
    bench.finish_all();
    bench.reconcile("owner");
    let by = bench.running("owner").invocation;
    bench.starts();
    let edit = Edit::delete(Key::new("k", "owner"));
    bench.call_by(Some(by), crate::Call::Apply(edit.into()));
    assert_eq!(bench.finish_all(), ["delete b", "delete a"]);
    assert_eq!(bench.rows.len(), 1);
}

#[test]
fn c15_what_the_same_batch_hands_over_stays() {
    let mut bench = owned();
    let heir = bench.row("free").uid;
    let update = Update {
        owner: Some(Some(heir)),
        ..Update::default()
    };
    bench.apply(vec![
        Edit::delete(Key::new("k", "owner")),
        Edit::update(Key::new("k", "a"), update),
    ]);
    assert_eq!(bench.finish_all(), ["delete owner"]);
    bench.delete("free");
    assert_eq!(bench.finish_all(), ["delete b", "delete a", "delete free"]);
}

#[test]
fn c15_an_owner_that_is_created_again_in_the_batch_keeps_what_it_owns() {
    let mut bench = owned();
    let again = bench.new_resource("owner", &[]);
    bench.apply(vec![Edit::delete(Key::new("k", "owner")), Edit::create(again)]);
    bench.finish_all();
    assert_eq!(bench.rows.len(), 4);
}

#[test]
fn c15_a_batch_that_edits_what_it_takes_along_contradicts_itself() {
    let mut bench = owned();
    let update = Update {
        spec: Some((b"new".as_slice().into(), 1)),
        ..Update::default()
    };
    let call = bench.apply(vec![
        Edit::delete(Key::new("k", "owner")),
        Edit::update(Key::new("k", "b"), update),
    ]);
    assert!(matches!(
        bench.answer_to(call),
        Some(Answer::Refused(Refusal::Contradiction(_)))
    ));
    assert!(bench.starts().is_empty() && bench.rows.len() == 4);
}

#[test]
fn c15_what_is_owned_may_be_deleted_beside_its_owner() {
    let mut bench = Bench::new();
    bench.settled(&[("owner", &[])]);
    let owner = Some(bench.row("owner").uid);
    let owned = crate::NewResource {
        owner,
        ..bench.new_resource("owned", &[])
    };
    bench.apply(vec![Edit::create(owned)]);
    bench.finish_all();
    let both = ["owner", "owned"].map(|name| Edit::delete(target(name)));
    bench.apply(both.into());
    assert_eq!(bench.finish_all(), ["delete owned", "delete owner"]);
    assert!(bench.rows.is_empty());
}

#[test]
fn c15_what_could_not_be_read_outlives_its_owner() {
    let mut bench = owned();
    bench
        .restart_with(|row| (row.name.as_str() == "a").then(|| crate::Error::permanent("format", "unknown")));
    bench.finish_all();
    bench.delete("owner");
    assert_eq!(bench.finish_all(), ["delete owner"]);
    assert_eq!(bench.row("a").name.as_str(), "a");
}

#[test]
fn c15_a_delete_does_not_wait_for_that_of_its_owner_which_waits_for_it() {
    let mut bench = Bench::with_concurrency(1);
    bench.settled(&[("busy", &[]), ("owned", &[]), ("owner", &["owned"])]);
    // Created again as what its owner owns, while that goes: it stays, and goes later.
    let again = crate::NewResource {
        owner: Some(bench.row("owner").uid),
        ..bench.new_resource("owned", &[])
    };
    bench.reconcile("busy");
    bench.apply(vec![
        Edit::delete(target("owned")),
        Edit::delete(target("owner")),
        Edit::create(again),
    ]);
    bench.delete("owned");
    bench.starts();
    assert_eq!(bench.finish_all(), ["delete owner", "delete owned"]);
}

/// Fails for good after one attempt, and then asks the owner.
fn requests_its_owner() -> Bench {
    let options = crate::KindOptions {
        retry: tried(1),
        on_owned: crate::OnOwned::Exhausted,
        ..crate::KindOptions::new("k")
    };
    Bench::with(vec![options], crate::Limits::default())
}

fn tried(attempts: u32) -> RetryPolicy {
    RetryPolicy::Backoff {
        base: Duration::from_secs(1),
        cap: Duration::from_secs(1),
        attempts,
        reset_after: Duration::ZERO,
    }
}

fn fail(bench: &mut Bench, name: &str) {
    bench.returns(name, Returned::Failed(Error::transient("flaky", "not now")));
}

#[test]
fn request_9_who_owns_itself_is_not_asked_when_its_attempts_are_used_up() {
    let mut bench = requests_its_owner();
    let mut new = bench.new_resource("a", &[]);
    new.owner = Some(new.uid);
    bench.apply(vec![Edit::create(new)]);
    bench.starts();
    fail(&mut bench, "a");
    assert!(bench.starts().is_empty() && bench.is_idle());
}

#[test]
fn request_9_another_policy_asks_the_owner_only_if_that_ends_the_retries() {
    let mut bench = requests_its_owner();
    bench.create(&[("owner", &[])]);
    let mut new = bench.new_resource("a", &[]);
    new.owner = Some(bench.row("owner").uid);
    bench.apply(vec![Edit::create(new.with_retry(tried(9)))]);
    bench.finish("owner");
    fail(&mut bench, "a");
    bench.starts();
    let set = |bench: &mut Bench, attempts| {
        let retry = Some(Some(tried(attempts)));
        let update = Update {
            retry,
            ..Update::default()
        };
        bench.apply(vec![Edit::update(target("a"), update)]);
        bench.finish_all()
    };
    assert!(set(&mut bench, 8).is_empty(), "it will be tried again");
    assert_eq!(set(&mut bench, 1), ["owner"]);
    assert!(set(&mut bench, 0).is_empty(), "they were used up already");
}
