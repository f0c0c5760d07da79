//! Tests that the consistency checks find planted faults, and name the broken rule.

mod breaks;
mod finer;

use std::sync::Arc;

use crate::testing::{Bench, target};
use crate::types::index::Slot;
use crate::{
    Call, Compared, Core, Edit, Epoch, Finding, KindOptions, Limits, NewResource, Revision, Rule, Stored,
};

/// Builds a core in which `a` runs; `b` and `c` wait for it; `d` waits for a place; `x` and `y` are a cycle; `z` is to
/// be renamed; `o` owns `p`.
pub(crate) fn world() -> Core {
    let limits = Limits {
        concurrency: 2,
        ..Limits::default()
    };
    let mut bench = Bench::with(vec![KindOptions::new("k")], limits);
    bench.settled(&[("a", &[]), ("b", &["a"]), ("c", &["b"]), ("d", &[]), ("e", &[])]);
    bench.settled(&[("x", &["y"]), ("y", &["x"]), ("o", &[]), ("f", &[]), ("z", &[])]);
    let owner = Some(bench.row("o").uid);
    let owned = NewResource {
        owner,
        ..bench.new_resource("p", &[])
    };
    bench.apply(vec![Edit::create(owned)]);
    bench.finish_all();
    bench.rename("z", "w");
    bench.fail("w");
    for name in ["a", "e", "d"] {
        bench.reconcile(name);
    }
    assert_eq!(bench.core.check_consistency(), []);
    bench.core.clone()
}

/// Builds a core in which everything is settled.
pub(crate) fn rest() -> Core {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"])]);
    bench.core.clone()
}

pub(crate) fn slot(core: &Core, name: &str) -> Slot {
    let mut found = core.graph().iter();
    let found = found.find(|(_, resource)| resource.row().name.as_str() == name);
    found.expect("it is there").0
}

pub(crate) fn run<'a>(core: &'a mut Core, name: &str) -> &'a mut crate::graph::resource::Running {
    let slot = slot(core, name);
    core.graph_mut()[slot].run_mut().expect("it runs")
}

/// Damages a copy of the core, and returns the rules that the check reports as broken.
pub(crate) fn broken(core: &Core, break_it: impl FnOnce(&mut Core)) -> Vec<Rule> {
    let mut core = core.clone();
    break_it(&mut core);
    let mut rules: Vec<Rule> = core
        .check_consistency()
        .iter()
        .map(|finding| finding.rule)
        .collect();
    rules.dedup();
    rules
}

/// Checks that the damage is found as a break of this rule, perhaps with others.
pub(crate) fn finds(core: &Core, rule: Rule, break_it: impl FnOnce(&mut Core)) {
    let rules = broken(core, break_it);
    assert!(rules.contains(&rule), "{rule} is not among {rules:?}");
}

/// Checks that the damage is found as a break of this rule alone.
pub(crate) fn finds_only(core: &Core, rule: Rule, break_it: impl FnOnce(&mut Core)) {
    assert_eq!(broken(core, break_it), [rule]);
}

#[test]
fn of_each_rule_so_many_findings_are_told() {
    let mut bench = Bench::new();
    let names: Vec<String> = (0..50).map(|index| format!("n{index}")).collect();
    let all: Vec<(&str, &[&str])> = names.iter().map(|name| (name.as_str(), [].as_slice())).collect();
    bench.settled(&all);
    let mut core = bench.core.clone();
    for index in 0..50 {
        core.graph_mut()[Slot::new(index)].wait_for_delete();
    }
    let findings = core.check_consistency();
    assert_eq!(findings.len(), 20);
    let Finding { rule, subject, .. } = &findings[0];
    assert_eq!((*rule, subject.is_some()), (Rule::DeletesThenRenames, true));
    assert!(
        findings[0].to_string().contains("deletes_then_renames"),
        "{}",
        findings[0]
    );
}

#[test]
fn a_stored_catalog_is_compared_row_by_row() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &[])]);
    let stored = Stored {
        revision: bench.core.revision(),
        epoch: Epoch(1),
        rows: bench.rows.values().cloned().map(Into::into).collect(),
    };
    let told = |bench: &Bench, stored: &Stored| {
        let checked = bench.core.check_against(Some(stored));
        assert!(checked.rules.contains(&Rule::StoreAgrees) && checked.resources == bench.rows.len());
        assert!(
            checked
                .findings
                .iter()
                .all(|finding| finding.rule == Rule::StoreAgrees)
        );
        (checked.compared, checked.findings.len())
    };
    assert_eq!(told(&bench, &stored), (Compared::Whole, 0));
    let with = |change: fn(&mut Stored)| {
        let mut other = stored.clone();
        change(&mut other);
        other
    };
    let other_epoch = with(|stored| stored.epoch = Epoch(7));
    assert_eq!(told(&bench, &other_epoch), (Compared::Whole, 1));
    let later = with(|stored| stored.revision = Revision(99));
    assert_eq!(told(&bench, &later), (Compared::Partly, 1));
    let less = with(|stored| drop(stored.rows.pop()));
    assert_eq!(told(&bench, &less), (Compared::Whole, 1));
    let twice = with(|stored| stored.rows.push(stored.rows[0].clone()));
    assert_eq!(told(&bench, &twice), (Compared::Whole, 1));
    let otherwise = with(|stored| Arc::make_mut(&mut stored.rows[0].row).hidden = true);
    assert_eq!(told(&bench, &otherwise), (Compared::Whole, 1));
    let unknown = with(|stored| {
        let mut row = stored.rows[0].row.clone();
        Arc::make_mut(&mut row).uid = crate::Uid(uuid::Uuid::from_u128(99));
        stored.rows.push(row.into());
    });
    assert_eq!(told(&bench, &unknown), (Compared::Whole, 1));
    // What has changed since is no finding.
    bench.store = crate::testing::Store::ByHand;
    bench.edit_spec("a", "new");
    assert_eq!(told(&bench, &stored), (Compared::Partly, 0));
    let call = bench.call(Call::Check(None));
    assert!(matches!(
        bench.answer_to(call),
        Some(crate::Answer::Checked(checked)) if checked.compared == Compared::Not && checked.findings.is_empty()
    ));
    assert!(bench.core.explain(&target("a")).is_ok());
}
