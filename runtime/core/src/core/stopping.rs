//! Shutdown in order, and the immediate stop when the store fails or the lease is lost.

use std::time::Duration;

use super::Core;
use crate::calls::refusals::refuse_all;
use crate::graph::resource::Cancelled;
use crate::timers::Timer;
use crate::{Answer, Effect, Refusal, RunOutcome, Settlement, StopReason};

/// Time limit of the last commit after a second shutdown request, which means that the end is urgent.
const HASTY_PATIENCE: Duration = Duration::from_secs(1);

/// Phases of a shutdown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Service {
    Serving,
    /// Shutting down: invocations may return until the grace period ends.
    Returning,
    /// Shutting down: unreturned invocations are given up, and the last changes are committed.
    Committing,
    Stopped,
}

impl Core {
    /// Returns true if the core accepts calls and starts work.
    pub fn is_serving(&self) -> bool {
        self.service == Service::Serving
    }

    /// Returns true if the core has emitted [`Effect::Stopped`], after which it ignores inputs and emits nothing.
    pub fn is_stopped(&self) -> bool {
        self.service == Service::Stopped
    }

    /// Begins a shutdown. A second call ends the grace period and shortens the wait for the store.
    pub(super) fn shutdown(&mut self, grace: Duration) {
        if self.service != Service::Serving {
            self.finish_committing(HASTY_PATIENCE.min(self.limits.commit_patience));
            return;
        }
        self.service = Service::Returning;
        self.timers.set(Timer::Grace, self.now.mono.after(grace));
        self.cancel_everything();
        for call in self.waiters.take_idle() {
            self.answer(call, Answer::Refused(Refusal::ShuttingDown));
        }
        for (call, open) in self.waiters.take_open() {
            for answer in open.end(&RunOutcome::ShutDown, Settlement::ShutDown) {
                self.answer(call, answer);
            }
        }
    }

    pub(super) fn grace_is_over(&mut self) {
        if self.service == Service::Returning {
            self.finish_committing(self.limits.commit_patience);
        }
    }

    /// Stops waiting for invocations, and waits only for the store, for a limited time: a commit may hang.
    fn finish_committing(&mut self, patience: Duration) {
        self.service = Service::Committing;
        self.timers.set(Timer::LastCommit, self.now.mono.after(patience));
    }

    /// Stops the core as after a failure of the store, because the last commit took too long.
    pub(super) fn last_commit_is_overdue(&mut self) {
        if self.service == Service::Committing {
            let message = "it did not end the last commit in time".to_owned();
            self.stop(StopReason::StoreFailed(message));
        }
    }

    fn cancel_everything(&mut self) {
        let mut running: Vec<_> = self.graph.runs().collect();
        // The table of runs has no order, and effects have one.
        running.sort_unstable();
        for (_, slot) in running {
            self.cancel_run(slot, Cancelled::ByShutdown);
        }
    }

    /// Stops the core if a shutdown is complete: invocations have returned or the grace period is over, and everything
    /// is durable.
    pub(super) fn stop_if_done(&mut self) {
        if self.service == Service::Returning && self.graph.active() == 0 {
            self.finish_committing(self.limits.commit_patience);
        }
        if self.service == Service::Committing && self.journal.is_clean() {
            self.service = Service::Stopped;
            let unreturned = self.graph.unreturned();
            self.out.push(Effect::Stopped {
                reason: StopReason::Shutdown,
                unreturned,
            });
        }
    }

    /// Stops at once, without a further commit.
    pub(super) fn stop(&mut self, reason: StopReason) {
        let lease_lost = reason == StopReason::LeaseLost;
        self.journal.publish(&mut self.graph, &mut self.out);
        self.journal.release_answers(&mut self.out);
        self.cancel_everything();
        refuse_all(&mut self.journal, &mut self.waiters, lease_lost, &mut self.out);
        self.service = Service::Stopped;
        let unreturned = self.graph.unreturned();
        self.out.push(Effect::Stopped { reason, unreturned });
    }
}
