//! Tests of faults that only one part of a rule finds, and of valid states that no rule may report.

use std::time::Duration;

use super::{finds, finds_only, rest, run, slot, world};
use crate::graph::lifecycle::Lifecycle;
use crate::graph::resource::Op;
use crate::testing::{Bench, Store, target};
use crate::{
    Call, Edit, Input, KindOptions, Limits, ObservedRef, Pool, Ref, Required, Revision, Rule, Settled,
};

#[test]
fn what_runs_below_something_unsettled_has_to_run_again() {
    let bench = Bench::with_one_below();
    finds_only(&bench.core, Rule::AncestorsFirst, |core| {
        run(core, "b").set_rerun(None);
    });
}

#[test]
fn what_runs_sees_the_resources_that_its_refs_name_now() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"])]);
    bench.reconcile("b");
    finds_only(&bench.core, Rule::RunsSeeThePresent, |core| {
        let nothing = ObservedRef {
            target: None,
            failed: false,
        };
        run(core, "b").seen_mut().expect("it sees").refs = [nothing].into();
    });
    // What need only be there may change while it runs.
    bench.finish("b");
    let exists = Ref {
        required: Required::Exists,
        ..Ref::completed("k", "a")
    };
    let new = bench.new_resource("c", &[]).with_refs([exists]);
    bench.apply(vec![Edit::create(new)]);
    bench.reconcile("a");
    let by = bench.running("a").invocation;
    bench.write_state(by, "other");
    assert!(bench.is_running("c") && !bench.is_cancelled("c"));
}

#[test]
fn places_are_those_of_what_runs() {
    let device = |kind: &str| KindOptions {
        pool: Some(Pool {
            name: "device".into(),
            limit: 2,
            exclusive: true,
        }),
        ..KindOptions::new(kind)
    };
    let limits = Limits {
        concurrency: 1,
        ..Limits::default()
    };
    let mut bench = Bench::with(vec![device("k")], limits);
    bench.settled(&[("a", &[]), ("b", &[])]);
    bench.reconcile("a");
    bench.reconcile("b");
    let kind = bench.core.graph()[slot(&bench.core, "a")].kind();
    finds_only(&bench.core, Rule::ConcurrencyLimits, |core| {
        core.scheduler_mut()
            .concurrency_limits_mut()
            .leave_after_all(kind)
    });
    // With nothing that runs, what is ready waits for nothing, for the pool has a place.
    finds(&bench.core, Rule::NoLostWakeUps, |core| {
        let slot = slot(core, "a");
        core.graph_mut()[slot].plant_stage(Lifecycle::settled_as(Settled::Idle));
        core.graph_mut().forget_runs();
        core.scheduler_mut().concurrency_limits_mut().leave(kind);
        core.graph_mut().count_unsettled(|count| *count -= 1);
    });
}

#[test]
fn what_is_ready_need_not_start_once_the_core_stops() {
    let mut bench = Bench::with_concurrency(1);
    bench.create(&[("a", &[]), ("b", &[])]);
    let by = bench.running("a").invocation;
    bench.call_by(Some(by), Call::Apply(Edit::delete(target("a")).into()));
    bench.input(Input::Shutdown {
        grace: Duration::from_secs(30),
    });
    // Nothing waits for what is gone, so that its return has nothing considered.
    bench.finish("a");
    assert!(bench.core.graph().agenda().is_empty() && bench.starts() == ["a"]);
}

#[test]
fn a_name_that_only_a_running_invocation_keeps_is_not_free() {
    let mut bench = Bench::with_a_held_name();
    bench.call(Call::Retry(target("b")));
    let by = bench.running("b").invocation;
    bench.call_by(Some(by), Call::Apply(Edit::delete(target("b")).into()));
    assert_eq!(bench.rows.len(), 1);
    bench.starts();
    bench.finish("b");
    assert_eq!(bench.starts(), ["a"]);
}

#[test]
fn what_waits_for_a_commit_may_be_told_by_its_place_or_by_what_runs_below() {
    let exists = Ref {
        required: Required::Exists,
        ..Ref::completed("k", "p")
    };
    let mut bench = Bench::with_concurrency(1);
    bench.settled(&[("busy", &[]), ("p", &[]), ("below", &["a"])]);
    let new = bench.new_resource("a", &[]).with_refs([exists]);
    bench.apply(vec![Edit::create(new)]);
    bench.finish_all();
    for runs in ["busy", "below"] {
        bench.reconcile(runs);
        bench.reconcile("a");
        bench.store = Store::ByHand;
        bench.edit_spec("p", runs);
        assert!(bench.is_running(runs) && !bench.commits.is_empty());
        bench.store = Store::Prompt;
        bench.commit();
        bench.finish_all();
    }
}

#[test]
fn the_gate_is_of_first_kinds_and_unsettled() {
    let first = KindOptions {
        first: true,
        ..KindOptions::new("k")
    };
    let mut bench = Bench::with(vec![first, KindOptions::new("z")], Limits::default());
    bench.settled(&[("a", &[])]);
    let other = bench.new_of("z", "other", &[]);
    bench.apply(vec![Edit::create(other)]);
    for name in ["a", "other"] {
        finds_only(&bench.core, Rule::StartupBarrier, |core| {
            let slot = slot(core, name);
            core.graph_mut()[slot].set_gate(true);
            core.scheduler_mut().plant_gate(slot);
        });
    }
}

#[test]
fn links_are_those_of_their_refs() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"]), ("c", &["a"])]);
    finds_only(&bench.core, Rule::NamesAgree, |core| {
        let slot = slot(core, "b");
        core.graph_mut()[slot].row_mut().refs = [Ref::completed("k", "other")].into();
    });
    finds_only(&bench.core, Rule::NamesAgree, |core| {
        let (b, c) = (slot(core, "b"), slot(core, "c"));
        let position = core.graph()[c].links()[0].position();
        core.graph_mut()[b].plant_position(0, position);
    });
}

#[test]
fn each_end_of_what_is_durable_is_checked() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &[])]);
    bench.delete("b");
    bench.finish("b");
    let (core, stored) = (&bench.core, bench.row("a").revision);
    finds_only(core, Rule::ChangesAreStored, |core| {
        core.journal_mut().plant_revision(stored)
    });
    finds(core, Rule::ChangesAreStored, |core| {
        let durable = core.journal().durable();
        let slot = slot(core, "a");
        core.journal_mut().await_commit(durable, slot);
    });
    finds_only(core, Rule::ChangesAreStored, |core| {
        let slot = slot(core, "a");
        core.journal_mut().plant_revision(Revision(99));
        core.graph_mut()[slot].row_mut().revision = Revision(99);
        core.graph_mut()[slot].mark_row_dirty();
    });
}

#[test]
fn a_delete_that_waits_for_none_has_to_be_due() {
    let mut bench = Bench::with_concurrency(1);
    bench.settled(&[("busy", &[]), ("a", &[])]);
    bench.reconcile("busy");
    bench.delete("a");
    finds(&bench.core, Rule::NoLostWakeUps, |core| {
        let slot = slot(core, "a");
        core.graph_mut()[slot].set_op(Op::Failed);
    });
}

#[test]
fn a_rename_that_waits_for_a_commit_is_told_of_it() {
    let mut bench = Bench::with_concurrency(1);
    bench.settled(&[("busy", &[]), ("a", &[])]);
    bench.reconcile("busy");
    bench.rename("a", "b");
    finds(&bench.core, Rule::NoLostWakeUps, |core| {
        let slot = slot(core, "b");
        core.graph_mut()[slot].hold_until(Revision(999));
        core.graph_mut()[slot].set_ready(None);
    });
}

#[test]
fn cycles_are_known_once_and_with_their_members() {
    let world = &world();
    finds_only(world, Rule::NoRunOnCycles, |core| {
        let cycle = core.graph()[slot(core, "x")].cycle().expect("it is on one");
        let other = slot(core, "f");
        core.graph_mut().cycles_mut().members_mut(cycle).push(other);
    });
    finds_only(&rest(), Rule::NoRunOnCycles, |core| {
        core.graph_mut().cycles_mut().add(Vec::new());
    });
}

#[test]
fn every_rule_that_is_checked_is_told() {
    let checked = rest().check_against(None);
    assert!(
        checked
            .rules
            .starts_with(&[Rule::OneRunPerName, Rule::OneRunPerPath])
            && checked.rules.len() == 18
    );
}
