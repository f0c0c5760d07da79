//! Tests of request 9: an owner whose kind says so is requested when its resources change, and sees them.

use crate::testing::{Bench, Store, target};
use crate::{Edit, KindOptions, Limits, OnOwned, Outcome, Returned, Trigger, Work};

/// Builds `owner`, which owns `part`; both have completed.
fn bench() -> Bench {
    let kind = KindOptions {
        on_owned: OnOwned::Changed,
        ..KindOptions::new("k")
    };
    let mut bench = Bench::with(vec![kind], Limits::default());
    bench.settled(&[("owner", &[])]);
    add(&mut bench, "part");
    assert_eq!(
        bench.finish_all(),
        ["part", "owner"],
        "it completes for the first time"
    );
    bench
}

fn add(bench: &mut Bench, name: &str) {
    let mut new = bench.new_resource(name, &[]);
    new.owner = Some(bench.row("owner").uid);
    bench.apply(vec![Edit::create(new)]);
}

fn completes(bench: &mut Bench, outcome: Outcome) -> Vec<String> {
    bench.reconcile("part");
    bench.starts();
    bench.returns("part", Returned::Done(outcome));
    bench.finish_all()
}

#[test]
fn an_owner_is_asked_when_a_part_completes_otherwise_than_before_and_only_then() {
    let mut bench = bench();
    assert!(
        completes(&mut bench, Outcome::from_work(Work::Built)).is_empty(),
        "as before"
    );
    assert_eq!(
        completes(&mut bench, Outcome::unchanged().unready("soon")),
        ["owner"]
    );
    assert!(completes(&mut bench, Outcome::unchanged().unready("soon")).is_empty());
    assert_eq!(completes(&mut bench, Outcome::unchanged()), ["owner"]);
    bench.reconcile("part");
    let by = bench.running("part").invocation;
    bench.write_state(by, "other");
    assert_eq!(bench.finish_all(), ["part", "owner"]);
    for (asks, when) in [(true, "it fails"), (false, "it fails as before")] {
        bench.reconcile("part");
        bench.starts();
        bench.fail("part");
        assert_eq!(bench.finish_all() == ["owner"], asks, "{when}");
    }
    assert_eq!(
        completes(&mut bench, Outcome::unchanged()),
        ["owner"],
        "it works again"
    );
}

#[test]
fn a_state_that_a_cancelled_run_wrote_is_told_when_the_next_one_completes() {
    let mut bench = bench();
    bench.reconcile("part");
    let by = bench.running("part").invocation;
    bench.write_state(by, "other");
    bench.reconcile("part");
    bench.finish("part");
    bench.restart();
    bench.finish("owner");
    bench.starts();
    assert_eq!(bench.finish_all(), ["owner"]);
}

#[test]
fn an_owner_is_asked_when_a_part_has_left_the_catalog_and_says_why() {
    let mut bench = bench();
    bench.delete("part");
    assert_eq!(bench.finish_all(), ["delete part", "owner"]);
    add(&mut bench, "next");
    bench.finish_all();
    bench.apply(vec![Edit::force_delete(target("next"))]);
    let reason = bench.running("owner").reason;
    assert_eq!(reason.trigger, Trigger::Recovered);
    let cause = reason.cause.as_ref().and_then(|cause| cause.key());
    assert_eq!(cause.map(|key| key.name.as_str()), Some("next"));
}

#[test]
fn an_owner_sees_what_it_owns_in_order_with_its_failures() {
    let mut bench = bench();
    add(&mut bench, "Another");
    bench.fail("Another");
    let owned = bench.running("owner").owned;
    let seen: Vec<(&str, bool)> = owned
        .iter()
        .map(|view| (view.resource.name.as_str(), view.failed))
        .collect();
    assert_eq!(seen, [("Another", true), ("part", false)]);
    assert!(bench.running("owner").refs.is_empty());
}

#[test]
fn an_owner_of_a_kind_that_asks_for_nothing_sees_nothing() {
    let mut bench = Bench::new();
    bench.settled(&[("owner", &[])]);
    add(&mut bench, "part");
    assert_eq!(bench.finish_all(), ["part"]);
    bench.reconcile("owner");
    assert!(bench.running("owner").owned.is_empty());
}

#[test]
fn an_owner_starts_once_the_edits_of_what_it_owns_are_committed() {
    let mut bench = bench();
    bench.store = Store::ByHand;
    bench.edit_spec("part", "new");
    bench.reconcile("owner");
    assert!(
        !bench.is_running("owner"),
        "it would see what may not have happened"
    );
    bench.commit();
    assert!(bench.is_running("owner"));
}
