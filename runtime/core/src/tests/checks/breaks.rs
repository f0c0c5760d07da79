//! Tests that break each rule once and expect a finding.

use std::sync::Arc;

use super::{finds, finds_only, rest, run, slot, world};
use crate::graph::lifecycle::Lifecycle;
use crate::graph::resource::{Cancelled, Op, Pending};
use crate::testing::Bench;
use crate::timers::{Requeue, Timer};
use crate::types::index::Slot;
use crate::types::reason::Cancels;
use crate::{
    CallId, Core, InvocationId, Mono, Now, Reason, Revision, Rule, Settled, SpecVersion, Timestamp, Trigger,
};

#[test]
fn what_runs_is_checked() {
    let world = &world();
    finds(world, Rule::OneRunPerName, |core| core.graph_mut().forget_runs());
    finds(world, Rule::OneRunPerName, |core| {
        let slot = slot(core, "a");
        core.graph_mut().plant_run(InvocationId(999), slot);
    });
    finds(world, Rule::OneRunPerName, |core| {
        let under = run(core, "a").under().clone();
        run(core, "e").plant_under(under);
    });
    finds(world, Rule::OneRunPerPath, |core| {
        let other = slot(core, "e");
        let stage = core.graph_mut()[other].plant_stage(Lifecycle::default());
        let below = slot(core, "c");
        core.graph_mut()[below].plant_stage(stage);
    });
    finds_only(world, Rule::RunsSeeThePresent, |core| {
        let seen = run(core, "a").seen_mut().expect("it sees");
        seen.spec_version = SpecVersion(99);
    });
    finds_only(world, Rule::RunsSeeThePresent, |core| {
        let seen = run(core, "a").seen_mut().expect("it sees");
        seen.refreshes.full = 99;
    });
    finds_only(world, Rule::RunsSeeThePresent, |core| {
        run(core, "a").plant_seen(None)
    });
    finds(world, Rule::AbandonedAside, |core| {
        core.graph_mut().plant_abandoned()
    });
    finds(world, Rule::AbandonedAside, |core| {
        let slot = slot(core, "f");
        let holder = core.graph()[slot].row().uid;
        let key = core.graph()[slot].row().key();
        let invocation = InvocationId(99);
        core.graph_mut()[slot].plant_stage(Lifecycle::settled_as(Settled::Abandoned {
            invocation,
            holder,
            key,
        }));
    });
    finds_only(world, Rule::ConcurrencyLimits, |core| {
        let kind = core.graph()[slot(core, "a")].kind();
        core.scheduler_mut().concurrency_limits_mut().plant_running(kind);
    });
    finds(world, Rule::ConcurrencyLimits, |core| {
        core.scheduler_mut().set_concurrency(1)
    });
    finds_only(world, Rule::ConcurrencyLimits, |core| {
        core.scheduler_mut().set_concurrency(3)
    });
    finds_only(world, Rule::ConcurrencyLimits, |core| {
        let slot = slot(core, "d");
        core.graph_mut()[slot].set_ready(None);
    });
}

#[test]
fn the_graph_is_checked() {
    let world = &world();
    for count in [
        |core: &mut Core, slot: Slot| core.graph_mut()[slot].plant_counts(1, 0, 0),
        |core: &mut Core, slot: Slot| core.graph_mut()[slot].plant_counts(0, 1, 0),
        |core: &mut Core, slot: Slot| core.graph_mut()[slot].plant_counts(0, 0, 1),
        |core: &mut Core, slot: Slot| core.graph_mut()[slot].plant_summing(),
    ] {
        finds(world, Rule::AncestorsFirst, |core| count(core, slot(core, "f")));
    }
    finds(world, Rule::PendingBelow, |core| {
        let slot = slot(core, "c");
        core.graph_mut()[slot].plant_stage(Lifecycle::settled_as(Settled::Idle));
    });
    finds_only(&Bench::with_one_below().core, Rule::PendingBelow, |core| {
        let slot = slot(core, "a");
        if let Some(pending) = core.graph_mut()[slot].pending_mut() {
            pending.plant_swept(Cancels::All);
        }
    });
    finds(world, Rule::NoRunOnCycles, |core| {
        let slot = slot(core, "x");
        core.graph_mut()[slot].plant_cycle(None);
    });
    finds(world, Rule::NoRunOnCycles, |core| {
        let cycle = core.graph()[slot(core, "x")].cycle();
        let slot = slot(core, "f");
        core.graph_mut()[slot].plant_cycle(cycle);
    });
    finds_only(world, Rule::NoRunOnCycles, |core| {
        let slot = slot(core, "x");
        core.graph_mut()[slot].row_mut().error = None;
    });
    finds(world, Rule::NoRunOnCycles, |core| {
        let slot = slot(core, "x");
        let reason = Arc::new(crate::Reason::bare(crate::Trigger::Nudge));
        core.graph_mut()[slot].plant_stage(Lifecycle::pending_as(Pending::new(reason, Mono(0))));
    });
    finds(world, Rule::EdgesAgree, |core| {
        let slot = slot(core, "b");
        core.graph_mut()[slot].plant_uncounted(0);
    });
    finds_only(world, Rule::NamesAgree, |core| {
        let slot = slot(core, "b");
        let position = core.graph()[slot].links()[0].position();
        core.graph_mut()[slot].plant_position(0, position + 1);
    });
    finds(world, Rule::NamesAgree, |core| {
        let slot = slot(core, "b");
        core.graph_mut()[slot].row_mut().refs = [].into();
    });
    finds(world, Rule::NamesAgree, |core| {
        let name = core.graph()[slot(core, "f")].name();
        core.graph_mut().unbind_only(name);
    });
    finds(world, Rule::NamesAgree, |core| {
        let slot = slot(core, "f");
        core.graph_mut()[slot].row_mut().name = "other".into();
    });
    finds_only(world, Rule::OwnersAgree, |core| {
        core.graph_mut().plant_owned(None, Slot::new(0))
    });
    finds_only(world, Rule::OwnersAgree, |core| {
        let nobody = crate::Uid(uuid::Uuid::from_u128(99));
        core.graph_mut().plant_owned(Some(nobody), Slot::new(0));
    });
}

#[test]
fn what_waits_and_what_is_marked_is_checked() {
    let (world, rest) = (&world(), &rest());
    finds(world, Rule::DeletesThenRenames, |core| {
        let slot = slot(core, "f");
        core.graph_mut()[slot].set_op(Op::Due { counts: true });
    });
    finds_only(world, Rule::DeletesThenRenames, |core| {
        let slot = slot(core, "f");
        core.graph_mut()[slot].wait_for_delete();
    });
    finds(world, Rule::DeletesThenRenames, |core| {
        let slot = slot(core, "w");
        core.graph_mut()[slot].set_op(Op::None);
    });
    finds(world, Rule::DeletesThenRenames, |core| {
        let slot = slot(core, "w");
        core.graph_mut()[slot].set_op(Op::Due { counts: false });
    });
    finds_only(world, Rule::DeletesThenRenames, |core| {
        let slot = slot(core, "f");
        let (holder, key) = (core.graph()[slot].row().uid, core.graph()[slot].row().key());
        core.graph_mut()[slot].plant_stage(Lifecycle::settled_as(Settled::WaitingForName { holder, key }));
    });
    finds(world, Rule::NoLostWakeUps, |core| {
        let slot = slot(core, "f");
        core.graph_mut()[slot].plant_queued(true);
    });
    finds(world, Rule::NoLostWakeUps, |core| {
        let slot = slot(core, "b");
        core.graph_mut()[slot].plant_no_unsettled_parents();
        core.graph_mut()[slot].row_mut().paused = true;
    });
    finds(world, Rule::NoLostWakeUps, |core| {
        let slot = slot(core, "d");
        core.graph_mut()[slot].hold_until(Revision(999));
        core.graph_mut()[slot].set_ready(None);
    });
    finds(rest, Rule::NoLostWakeUps, |core| {
        let slot = slot(core, "a");
        core.graph_mut()[slot].plant_queued(true);
        core.graph_mut().plant_on_agenda(slot);
        core.graph_mut()[slot].plant_queued(false);
    });
    finds_only(world, Rule::WaitersAreAnswered, |core| {
        core.graph_mut().count_unsettled(|count| *count += 1)
    });
    finds_only(rest, Rule::WaitersAreAnswered, |core| {
        core.waiters_mut().wait_until_idle(CallId(99))
    });
    finds_only(rest, Rule::WaitersAreAnswered, |core| {
        core.plant_handle(CallId(99), slot(core, "a"))
    });
    finds_only(world, Rule::PausedStays, |core| {
        let slot = slot(core, "f");
        core.graph_mut()[slot].set_missed(Some(Arc::new(Reason::bare(Trigger::Nudge))));
    });
    finds_only(world, Rule::PausedStays, |core| {
        let slot = slot(core, "f");
        core.graph_mut()[slot].plant_stage(Lifecycle::settled_as(Settled::Paused));
    });
    finds(world, Rule::StartupBarrier, |core| {
        let slot = slot(core, "f");
        core.scheduler_mut().plant_gate(slot);
    });
    finds(world, Rule::StartupBarrier, |core| {
        let slot = slot(core, "f");
        core.graph_mut()[slot].set_gate(true);
        core.scheduler_mut().plant_gate(slot);
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
        |_| Timer::Nudge(Slot::new(999)),
    ] {
        finds_only(world, Rule::TimersAgree, |core| {
            let slot = slot(core, "f");
            core.timers_mut().set(timer(slot), later)
        });
    }
    finds_only(world, Rule::TimersAgree, |core| {
        let slot = slot(core, "w");
        core.timers_mut().clear(Timer::OpRetry(slot));
    });
    finds_only(world, Rule::TimersAgree, |core| {
        run(core, "a").plant_cancelled(Cancelled::ByCaller);
    });
    finds_only(world, Rule::TimersAgree, |core| {
        let kind = core.graph()[slot(core, "a")].kind();
        let options = core.graph_mut().options_mut(kind).expect("it is registered");
        options.deadline = Some(std::time::Duration::from_secs(1));
    });
    finds_only(world, Rule::TimersAgree, |core| {
        let requeue = Requeue::new(Some(Timestamp(i64::MAX)), None);
        core.timers_mut()
            .set_requeue(Slot::new(999), Now::default(), requeue);
    });
    finds(world, Rule::ChangesAreStored, |core| {
        core.journal_mut().plant_revision(Revision(0))
    });
    finds(world, Rule::ChangesAreStored, |core| {
        let slot = slot(core, "f");
        core.journal_mut().await_commit(Revision(1), slot);
    });
    finds(world, Rule::ChangesAreStored, |core| {
        let slot = slot(core, "f");
        core.graph_mut()[slot].row_mut().revision = Revision(999);
    });
}
