//! Tests of cascading deletes: deleting an owner deletes its resources (C15).

use std::time::Duration;

use crate::testing::{Bench, target};
use crate::{Answer, Edit, Error, Key, NewResource, Refusal, RetryPolicy, Returned, Uid, Update};

/// Builds `owner`, which owns `a`, which owns `b`; nobody owns `free`.
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

/// Builds a kind that fails for good after one attempt, and then requests its owner.
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

const NOBODY: Uid = Uid(uuid::Uuid::from_u128(4_711));

fn owned_by(owner: Uid) -> Update {
    Update {
        owner: Some(Some(owner)),
        ..Update::default()
    }
}

fn refused(bench: &mut Bench, edits: Vec<Edit>) -> Refusal {
    let before = bench.rows.clone();
    let call = bench.apply(edits);
    assert_eq!(bench.rows, before);
    match bench.answer_to(call) {
        Some(Answer::Refused(refusal)) => refusal,
        answer => panic!("{answer:?}"),
    }
}

#[test]
fn an_owner_that_is_no_resource_is_refused_over_every_way_in() {
    let mut bench = owned();
    let unknown = |name: &str| Refusal::UnknownOwner {
        key: Key::new("k", name),
        owner: NOBODY,
    };
    let new = |bench: &mut Bench, name: &str| bench.new_resource(name, &[]).with_owner(NOBODY);
    let (fresh, again) = (new(&mut bench, "new"), new(&mut bench, "free"));
    let create = Edit::create(fresh.clone());
    assert_eq!(refused(&mut bench, vec![create.clone()]), unknown("new"));
    assert_eq!(refused(&mut bench, vec![Edit::apply(fresh)]), unknown("new"));
    assert_eq!(
        refused(&mut bench, vec![Edit::apply(again.clone())]),
        unknown("free")
    );
    let update = Edit::update(target("free"), owned_by(NOBODY));
    assert_eq!(refused(&mut bench, vec![update]), unknown("free"));
    let other = Edit::create(bench.new_resource("other", &[]));
    assert_eq!(refused(&mut bench, vec![other, create]), unknown("new"));
    let anew = vec![Edit::delete(target("free")), Edit::create(again.clone())];
    assert_eq!(refused(&mut bench, anew), unknown("free"));
    // One that is taken up again gets another owner as well.
    bench.delete("free");
    assert_eq!(refused(&mut bench, vec![Edit::create(again)]), unknown("free"));
}

#[test]
fn an_owner_that_is_gone_is_none_and_one_that_is_being_deleted_is_one() {
    let mut bench = owned();
    let owner = bench.row("owner").uid;
    let gone = |key: &str| Refusal::UnknownOwner {
        key: Key::new("k", key),
        owner,
    };
    let new = bench.new_resource("new", &[]).with_owner(owner);
    let batch = vec![Edit::force_delete(target("owner")), Edit::create(new.clone())];
    assert_eq!(refused(&mut bench, batch), gone("new"));
    let update = Edit::update(target("free"), owned_by(owner));
    let batch = vec![update, Edit::force_delete(target("owner"))];
    assert_eq!(refused(&mut bench, batch), gone("free"));
    // While its delete goes on, what that makes may belong to it.
    bench.delete("owner");
    let call = bench.apply(vec![Edit::create(new)]);
    assert!(matches!(bench.answer_to(call), Some(Answer::Applied(_))));
    bench.finish_all();
    let newer = bench.new_resource("newer", &[]).with_owner(owner);
    assert_eq!(refused(&mut bench, vec![Edit::create(newer)]), gone("newer"));
}

#[test]
fn an_owner_may_come_with_what_it_owns_also_where_it_is_there_already() {
    let mut bench = Bench::new();
    let batch = |bench: &mut Bench, edit: fn(NewResource) -> Edit| {
        let owner = bench.new_resource("owner", &[]);
        let part = bench.new_resource("part", &[]).with_owner(owner.uid);
        let call = bench.apply(vec![edit(part), edit(owner)]);
        assert!(matches!(bench.answer_to(call), Some(Answer::Applied(_))));
        assert_eq!(bench.row("part").owner, Some(bench.row("owner").uid));
        bench.finish_all();
    };
    batch(&mut bench, Edit::create);
    // The uids of these are not used: each stands for the resource of its name.
    batch(&mut bench, Edit::apply);
    bench.delete("owner");
    batch(&mut bench, Edit::create);
}
