//! Something of each rule is broken, and found.

use std::sync::Arc;

use super::{finds, finds_only, rest, run, slot, world};
use crate::resource::{Cancelled, Op, Slot, Stage};
use crate::timeline::Alarm;
use crate::{CallId, Core, InvocationId, Mono, Revision, Rule, Settled, SpecVersion, Timestamp};

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
