//! Stopping: in order at a shutdown, at once when the store fails or the lease is lost.

use std::time::Duration;

use super::Core;
use crate::calls::refusals::refuse_all;
use crate::graph::resource::Cancelled;
use crate::timers::Timer;
use crate::{Answer, Effect, Refusal, RunOutcome, Settlement, StopReason};

/// The time that the last commit may take once a shutdown was requested twice, which means that it is urgent.
const HASTY_PATIENCE: Duration = Duration::from_secs(1);

/// Tells whether the core takes work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Service {
    Serving,
    /// Shut down: invocations may return until the grace is over.
    Returning,
    /// Invocations that did not return are given up; changes are still committed.
    Committing,
    Stopped,
}

impl Core {
    /// Returns true if the core takes calls and starts work.
    pub fn is_serving(&self) -> bool {
        self.service == Service::Serving
    }

    /// Returns true if the core has emitted [`Effect::Stopped`]; it takes and emits nothing more.
    pub fn is_stopped(&self) -> bool {
        self.service == Service::Stopped
    }

    /// Stops in order. A second one ends the grace, and waits no longer for the store than a blink.
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

    /// Nothing is waited for any more but the store, and that not for ever: a commit may hang.
    fn finish_committing(&mut self, patience: Duration) {
        self.service = Service::Committing;
        self.timers.set(Timer::LastCommit, self.now.mono.after(patience));
    }

    /// A store that neither commits nor fails ends a shutdown as one that fails does.
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

    /// After a shutdown: ends once everything has returned, or the grace is over, and all is durable.
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

    /// Stops at once: nothing more can be committed.
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
