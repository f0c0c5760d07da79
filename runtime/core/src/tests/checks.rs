//! The checks of consistency find what is broken by hand, and call it by the rule that it breaks.

use std::sync::Arc;

use crate::resource::{Cancelled, Op, Slot, Stage};
use crate::testing::{Bench, target};
use crate::timeline::Alarm;
use crate::{
    Call, CallId, Compared, Core, Edit, Epoch, Finding, InvocationId, KindOptions, Limits, Mono, NewResource,
    Revision, Rule, Settled, SpecVersion, Stored, Timestamp,
};

/// `a` runs, `b` and `c` wait for it, `d` waits for a place; `x` and `y` are a cycle; `z` is to be renamed; `o` owns
/// `p`.
fn world() -> Core {
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

/// The same with nothing to do.
fn rest() -> Core {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"])]);
    bench.core.clone()
}

fn slot(core: &Core, name: &str) -> Slot {
    let mut found = core.slots.iter();
    let found = found.find(|(_, resource)| resource.row.name.as_str() == name);
    found.expect("it is there").0
}

fn run<'a>(core: &'a mut Core, name: &str) -> &'a mut crate::resource::Running {
    let slot = slot(core, name);
    core.slots[slot].run_mut().expect("it runs")
}

/// Breaks something of the world, and gives back the rules that are said to be broken.
fn broken(core: &Core, break_it: impl FnOnce(&mut Core)) -> Vec<Rule> {
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

/// That this rule is broken is found, whatever else is.
fn finds(core: &Core, rule: Rule, break_it: impl FnOnce(&mut Core)) {
    let rules = broken(core, break_it);
    assert!(rules.contains(&rule), "{rule} is not among {rules:?}");
}

/// Nothing but this rule is broken.
fn finds_only(core: &Core, rule: Rule, break_it: impl FnOnce(&mut Core)) {
    assert_eq!(broken(core, break_it), [rule]);
}

#[test]
fn what_runs_is_checked() {
    let world = &world();
    finds(world, Rule::C1, |core| core.runs.clear());
    finds(world, Rule::C1, |core| {
        core.runs.insert(InvocationId(999), slot(core, "a"));
    });
    finds(world, Rule::C1, |core| {
        let under = run(core, "a").under.clone();
        run(core, "e").under = under;
    });
    finds(world, Rule::C2, |core| {
        let other = slot(core, "e");
        let stage = std::mem::replace(&mut core.slots[other].stage, Stage::Settled(Settled::Idle.into()));
        let below = slot(core, "c");
        core.slots[below].stage = stage;
    });
    finds_only(world, Rule::C5, |core| {
        let seen = run(core, "a").seen.as_mut().expect("it sees");
        seen.spec_version = SpecVersion(99);
    });
    finds_only(world, Rule::C5, |core| {
        let seen = run(core, "a").seen.as_mut().expect("it sees");
        seen.refreshes.full = 99;
    });
    finds_only(world, Rule::C5, |core| run(core, "a").seen = None);
    finds(world, Rule::C10, |core| core.abandoned += 1);
    finds(world, Rule::C10, |core| {
        let slot = slot(core, "f");
        let holder = core.slots[slot].row.uid;
        let key = core.slots[slot].row.key();
        let invocation = InvocationId(99);
        core.slots[slot].stage = Stage::Settled(
            Settled::Abandoned {
                invocation,
                holder,
                key,
            }
            .into(),
        );
    });
    finds_only(world, Rule::C12, |core| {
        let kind = core.slots[slot(core, "a")].kind;
        core.kinds[kind].running += 1;
    });
    finds(world, Rule::C12, |core| core.limits.concurrency = 1);
    finds_only(world, Rule::C12, |core| core.limits.concurrency = 3);
    finds_only(world, Rule::C12, |core| {
        let slot = slot(core, "d");
        core.slots[slot].listed.ready = None;
    });
}

#[test]
fn the_graph_is_checked() {
    let world = &world();
    for count in [
        |core: &mut Core, slot: Slot| core.slots[slot].unsettled_parents += 1,
        |core: &mut Core, slot: Slot| core.slots[slot].busy_children += 1,
        |core: &mut Core, slot: Slot| core.slots[slot].running += 1,
        |core: &mut Core, slot: Slot| core.slots[slot].summing = true,
    ] {
        finds(world, Rule::C3, |core| count(core, slot(core, "f")));
    }
    finds(world, Rule::C4, |core| {
        let slot = slot(core, "c");
        core.slots[slot].stage = Stage::Settled(Settled::Idle.into());
    });
    finds_only(world, Rule::C4, |core| core.lingering += 1);
    finds(world, Rule::C4, |core| {
        core.lingering += 1;
        let run = run(core, "a");
        (run.lingering, run.cancelled) = (true, Cancelled::ToRunAgain);
    });
    finds(world, Rule::C7, |core| {
        let slot = slot(core, "x");
        core.slots[slot].cycle = None;
    });
    finds(world, Rule::C7, |core| {
        let cycle = core.slots[slot(core, "x")].cycle;
        let slot = slot(core, "f");
        core.slots[slot].cycle = cycle;
    });
    finds_only(world, Rule::C7, |core| {
        let slot = slot(core, "x");
        Arc::make_mut(&mut core.slots[slot].row).error = None;
    });
    finds(world, Rule::C7, |core| {
        let slot = slot(core, "x");
        core.slots[slot].stage = Stage::Pending(crate::resource::Pending {
            reason: Arc::new(crate::Reason::bare(crate::Why::Nudge)),
            cancelled: false,
            late: false,
            class: crate::Class::Parent,
            since: Mono(0),
        });
    });
    finds(world, Rule::C14, |core| {
        let slot = slot(core, "b");
        core.slots[slot].links[0].counted = false;
    });
    finds_only(world, Rule::C13, |core| {
        let slot = slot(core, "b");
        core.slots[slot].links[0].position += 1;
    });
    finds(world, Rule::C13, |core| {
        let slot = slot(core, "b");
        Arc::make_mut(&mut core.slots[slot].row).refs = [].into();
    });
    finds(world, Rule::C13, |core| {
        let name = core.slots[slot(core, "f")].name;
        core.names[name].live = None;
    });
    finds(world, Rule::C13, |core| {
        let slot = slot(core, "f");
        Arc::make_mut(&mut core.slots[slot].row).name = "other".into();
    });
    finds_only(world, Rule::C15, |core| core.owned.clear());
    finds_only(world, Rule::C15, |core| {
        let nobody = crate::Uid(uuid::Uuid::from_u128(99));
        core.owned.entry(nobody).or_default().insert(Slot(0));
    });
}

#[test]
fn what_waits_and_what_is_marked_is_checked() {
    let (world, rest) = (&world(), &rest());
    finds(world, Rule::C6, |core| {
        let slot = slot(core, "f");
        core.slots[slot].op = Op::Due {
            since: Mono(0),
            counts: true,
        };
    });
    finds_only(world, Rule::C6, |core| {
        let slot = slot(core, "f");
        core.slots[slot].extra_mut().delete_waits += 1;
    });
    finds(world, Rule::C6, |core| {
        let slot = slot(core, "w");
        core.slots[slot].op = Op::None;
    });
    finds(world, Rule::C6, |core| {
        let slot = slot(core, "w");
        core.slots[slot].op = Op::Due {
            since: Mono(0),
            counts: false,
        };
    });
    finds_only(world, Rule::C6, |core| {
        let slot = slot(core, "f");
        let (holder, key) = (core.slots[slot].row.uid, core.slots[slot].row.key());
        core.slots[slot].stage = Stage::Settled(Settled::WaitingForName { holder, key }.into());
    });
    finds(world, Rule::C11, |core| {
        let slot = slot(core, "f");
        core.slots[slot].listed.queued = true;
    });
    finds(world, Rule::C11, |core| {
        let slot = slot(core, "b");
        core.slots[slot].unsettled_parents = 0;
        Arc::make_mut(&mut core.slots[slot].row).paused = true;
    });
    finds(world, Rule::C11, |core| {
        let slot = slot(core, "d");
        core.slots[slot].hold = Revision(999);
        core.slots[slot].listed.ready = None;
    });
    finds(rest, Rule::C11, |core| {
        let slot = slot(core, "a");
        core.slots[slot].listed.queued = true;
        core.queue.push_back(slot);
        core.slots[slot].listed.queued = false;
    });
    finds_only(world, Rule::C18, |core| core.unsettled += 1);
    finds_only(rest, Rule::C18, |core| core.handles.wait_until_idle(CallId(99)));
    finds_only(rest, Rule::C18, |core| {
        core.open_handle(CallId(99), slot(core, "a"))
    });
    finds_only(world, Rule::C19, |core| {
        let slot = slot(core, "f");
        core.slots[slot].extra_mut().missed = true;
    });
    finds_only(world, Rule::C19, |core| {
        let slot = slot(core, "f");
        core.slots[slot].stage = Stage::Settled(Settled::Paused.into());
    });
    finds(world, Rule::Gate, |core| {
        core.gate.insert(slot(core, "f"));
    });
    finds(world, Rule::Gate, |core| {
        let slot = slot(core, "f");
        core.slots[slot].gates = true;
        core.gate.insert(slot);
    });
}

#[test]
fn times_and_durability_are_checked() {
    let (world, later) = (&world(), Mono(9_000_000));
    finds_only(world, Rule::Times, |core| {
        let slot = slot(core, "f");
        core.slots[slot].extra_mut().retry_at = Some(later);
    });
    for alarm in [
        |slot| Alarm::Retry(slot),
        |slot| Alarm::Nudge(slot),
        |_| Alarm::Deadline(InvocationId(99)),
    ] {
        finds_only(world, Rule::Times, |core| {
            core.timeline.set(later, alarm(slot(core, "f")))
        });
    }
    finds_only(world, Rule::Times, |core| {
        let slot = slot(core, "f");
        core.slots[slot].extra_mut().retrigger = Some(Timestamp(i64::MAX));
    });
    finds_only(world, Rule::Times, |core| {
        let slot = slot(core, "f");
        core.timeline.set_retrigger(Timestamp(i64::MAX), slot);
    });
    finds(world, Rule::Durability, |core| core.revision = Revision(0));
    finds(world, Rule::Durability, |core| {
        core.awaiting.insert(Revision(1), vec![slot(core, "f")]);
    });
    finds(world, Rule::Durability, |core| {
        let slot = slot(core, "f");
        Arc::make_mut(&mut core.slots[slot].row).revision = Revision(999);
    });
}

#[test]
fn of_each_rule_so_many_findings_are_told() {
    let mut bench = Bench::new();
    let names: Vec<String> = (0..50).map(|index| format!("n{index}")).collect();
    let all: Vec<(&str, &[&str])> = names.iter().map(|name| (name.as_str(), [].as_slice())).collect();
    bench.settled(&all);
    let mut core = bench.core.clone();
    for index in 0..50 {
        core.slots[Slot(index)].extra_mut().delete_waits += 1;
    }
    let findings = core.check_consistency();
    assert_eq!(findings.len(), 20);
    let Finding { rule, subject, .. } = &findings[0];
    assert_eq!((*rule, subject.is_some()), (Rule::C6, true));
    assert!(findings[0].to_string().contains("C6"), "{}", findings[0]);
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
        assert!(checked.rules.contains(&Rule::Stored) && checked.resources == bench.rows.len());
        assert!(
            checked
                .findings
                .iter()
                .all(|finding| finding.rule == Rule::Stored)
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
