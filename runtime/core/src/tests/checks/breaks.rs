//! Something of each rule is broken, and found.

use std::sync::Arc;

use super::{finds, finds_only, rest, run, slot, world};
use crate::resource::lifecycle::Lifecycle;
use crate::resource::{Cancelled, Op, Pending, Slot};
use crate::testing::Bench;
use crate::timers::Timer;
use crate::types::reason::Cancels;
use crate::{CallId, Core, InvocationId, Mono, Revision, Rule, Settled, SpecVersion, Timestamp};

#[test]
fn what_runs_is_checked() {
    let world = &world();
    finds(world, Rule::OneRunPerName, |core| core.runs.clear());
    finds(world, Rule::OneRunPerName, |core| {
        core.runs.insert(InvocationId(999), slot(core, "a"));
    });
    finds(world, Rule::OneRunPerName, |core| {
        let under = run(core, "a").under.clone();
        run(core, "e").under = under;
    });
    finds(world, Rule::OneRunPerPath, |core| {
        let other = slot(core, "e");
        let stage = std::mem::take(&mut core.slots[other].lifecycle);
        let below = slot(core, "c");
        core.slots[below].lifecycle = stage;
    });
    finds_only(world, Rule::RunsSeeThePresent, |core| {
        let seen = run(core, "a").seen.as_mut().expect("it sees");
        seen.spec_version = SpecVersion(99);
    });
    finds_only(world, Rule::RunsSeeThePresent, |core| {
        let seen = run(core, "a").seen.as_mut().expect("it sees");
        seen.refreshes.full = 99;
    });
    finds_only(world, Rule::RunsSeeThePresent, |core| run(core, "a").seen = None);
    finds(world, Rule::AbandonedAside, |core| core.abandoned += 1);
    finds(world, Rule::AbandonedAside, |core| {
        let slot = slot(core, "f");
        let holder = core.slots[slot].row.uid;
        let key = core.slots[slot].row.key();
        let invocation = InvocationId(99);
        core.slots[slot].lifecycle = Lifecycle::settled_as(Settled::Abandoned {
            invocation,
            holder,
            key,
        });
    });
    finds_only(world, Rule::ConcurrencyLimits, |core| {
        let kind = core.slots[slot(core, "a")].kind;
        core.kinds[kind].running += 1;
    });
    finds(world, Rule::ConcurrencyLimits, |core| core.limits.concurrency = 1);
    finds_only(world, Rule::ConcurrencyLimits, |core| core.limits.concurrency = 3);
    finds_only(world, Rule::ConcurrencyLimits, |core| {
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
        finds(world, Rule::AncestorsFirst, |core| count(core, slot(core, "f")));
    }
    finds(world, Rule::PendingBelow, |core| {
        let slot = slot(core, "c");
        core.slots[slot].lifecycle = Lifecycle::settled_as(Settled::Idle);
    });
    finds_only(&Bench::with_one_below().core, Rule::PendingBelow, |core| {
        let slot = slot(core, "a");
        if let Some(pending) = core.slots[slot].pending_mut() {
            pending.swept = Cancels::All;
        }
    });
    finds(world, Rule::NoRunOnCycles, |core| {
        let slot = slot(core, "x");
        core.slots[slot].cycle = None;
    });
    finds(world, Rule::NoRunOnCycles, |core| {
        let cycle = core.slots[slot(core, "x")].cycle;
        let slot = slot(core, "f");
        core.slots[slot].cycle = cycle;
    });
    finds_only(world, Rule::NoRunOnCycles, |core| {
        let slot = slot(core, "x");
        Arc::make_mut(&mut core.slots[slot].row).error = None;
    });
    finds(world, Rule::NoRunOnCycles, |core| {
        let slot = slot(core, "x");
        let reason = Arc::new(crate::Reason::bare(crate::Why::Nudge));
        core.slots[slot].lifecycle = Lifecycle::pending_as(Pending::new(reason, Mono(0)));
    });
    finds(world, Rule::EdgesAgree, |core| {
        let slot = slot(core, "b");
        core.slots[slot].links[0].counted = false;
    });
    finds_only(world, Rule::NamesAgree, |core| {
        let slot = slot(core, "b");
        core.slots[slot].links[0].position += 1;
    });
    finds(world, Rule::NamesAgree, |core| {
        let slot = slot(core, "b");
        Arc::make_mut(&mut core.slots[slot].row).refs = [].into();
    });
    finds(world, Rule::NamesAgree, |core| {
        let name = core.slots[slot(core, "f")].name;
        core.names[name].live = None;
    });
    finds(world, Rule::NamesAgree, |core| {
        let slot = slot(core, "f");
        Arc::make_mut(&mut core.slots[slot].row).name = "other".into();
    });
    finds_only(world, Rule::OwnersAgree, |core| core.owned.clear());
    finds_only(world, Rule::OwnersAgree, |core| {
        let nobody = crate::Uid(uuid::Uuid::from_u128(99));
        core.owned.entry(nobody).or_default().insert(Slot(0));
    });
}

#[test]
fn what_waits_and_what_is_marked_is_checked() {
    let (world, rest) = (&world(), &rest());
    finds(world, Rule::DeletesThenRenames, |core| {
        let slot = slot(core, "f");
        core.slots[slot].op = Op::Due { counts: true };
    });
    finds_only(world, Rule::DeletesThenRenames, |core| {
        let slot = slot(core, "f");
        core.slots[slot].extra_mut().delete_waits += 1;
    });
    finds(world, Rule::DeletesThenRenames, |core| {
        let slot = slot(core, "w");
        core.slots[slot].op = Op::None;
    });
    finds(world, Rule::DeletesThenRenames, |core| {
        let slot = slot(core, "w");
        core.slots[slot].op = Op::Due { counts: false };
    });
    finds_only(world, Rule::DeletesThenRenames, |core| {
        let slot = slot(core, "f");
        let (holder, key) = (core.slots[slot].row.uid, core.slots[slot].row.key());
        core.slots[slot].lifecycle = Lifecycle::settled_as(Settled::WaitingForName { holder, key });
    });
    finds(world, Rule::NoLostWakeUps, |core| {
        let slot = slot(core, "f");
        core.slots[slot].listed.queued = true;
    });
    finds(world, Rule::NoLostWakeUps, |core| {
        let slot = slot(core, "b");
        core.slots[slot].unsettled_parents = 0;
        Arc::make_mut(&mut core.slots[slot].row).paused = true;
    });
    finds(world, Rule::NoLostWakeUps, |core| {
        let slot = slot(core, "d");
        core.slots[slot].hold = Revision(999);
        core.slots[slot].listed.ready = None;
    });
    finds(rest, Rule::NoLostWakeUps, |core| {
        let slot = slot(core, "a");
        core.slots[slot].listed.queued = true;
        core.queue.push_back(slot);
        core.slots[slot].listed.queued = false;
    });
    finds_only(world, Rule::WaitersAreAnswered, |core| core.unsettled += 1);
    finds_only(rest, Rule::WaitersAreAnswered, |core| {
        core.handles.wait_until_idle(CallId(99))
    });
    finds_only(rest, Rule::WaitersAreAnswered, |core| {
        core.open_handle(CallId(99), slot(core, "a"))
    });
    finds_only(world, Rule::PausedStays, |core| {
        let slot = slot(core, "f");
        core.slots[slot].extra_mut().missed = true;
    });
    finds_only(world, Rule::PausedStays, |core| {
        let slot = slot(core, "f");
        core.slots[slot].lifecycle = Lifecycle::settled_as(Settled::Paused);
    });
    finds(world, Rule::StartupBarrier, |core| {
        core.gate.insert(slot(core, "f"));
    });
    finds(world, Rule::StartupBarrier, |core| {
        let slot = slot(core, "f");
        core.slots[slot].gates = true;
        core.gate.insert(slot);
    });
}

#[test]
fn times_and_durability_are_checked() {
    let (world, later) = (&world(), Mono(9_000_000));
    for timer in [
        |_| Timer::Deadline(InvocationId(99)),
        |_| Timer::Abandon(InvocationId(99)),
        |slot| Timer::Retry(slot),
        |slot| Timer::OpRetry(slot),
        |slot| Timer::Forgive(slot),
        |_| Timer::Nudge(Slot(999)),
    ] {
        finds_only(world, Rule::TimersAgree, |core| {
            core.timers.set(timer(slot(core, "f")), later)
        });
    }
    finds_only(world, Rule::TimersAgree, |core| {
        core.timers.clear(Timer::OpRetry(slot(core, "w")));
    });
    finds_only(world, Rule::TimersAgree, |core| {
        run(core, "a").cancelled = Cancelled::ByCaller;
    });
    finds_only(world, Rule::TimersAgree, |core| {
        let kind = core.slots[slot(core, "a")].kind;
        let options = core.kinds[kind].options.as_mut().expect("it is registered");
        options.deadline = Some(std::time::Duration::from_secs(1));
    });
    finds_only(world, Rule::TimersAgree, |core| {
        core.timers.set_requeue(Slot(999), Some(Timestamp(i64::MAX)));
    });
    finds(world, Rule::ChangesAreStored, |core| core.revision = Revision(0));
    finds(world, Rule::ChangesAreStored, |core| {
        core.awaiting.insert(Revision(1), vec![slot(core, "f")]);
    });
    finds(world, Rule::ChangesAreStored, |core| {
        let slot = slot(core, "f");
        Arc::make_mut(&mut core.slots[slot].row).revision = Revision(999);
    });
}
