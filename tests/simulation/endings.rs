//! The ways in which a controller ends: killed, shut down, its lease lost, its store failing for good.

use std::time::Duration;

use rand::Rng;
use watershed_core::{CommitError, Input, InvocationId, Outcome, Returned, StopReason};

use crate::world::{Check, Simulation, ensure};

/// More than enough inputs for a shutdown of a world of this size, or for a failing store to be given up on.
const INPUTS_MAX: usize = 500;

impl Simulation {
    /// It ends somehow, and another one takes up what is durable.
    pub(crate) fn end(&mut self) -> Check {
        match self.rng.random_range(0..8) {
            0 => self.lose_lease()?,
            1 => self.shut_down()?,
            2 if self.store.in_flight.is_some() => self.fail_for_good()?,
            3 => return self.take_over(),
            4..6 => return Ok(()),
            // It is killed; what it had handed to the store may have arrived.
            _ if self.store.in_flight.is_some() && self.rng.random_bool(0.5) => self.store.write(),
            _ => {}
        }
        self.stopped = None;
        self.stopping = false;
        self.restart()
    }

    fn lose_lease(&mut self) -> Check {
        self.stopping = true;
        let input = match self.store.in_flight.take() {
            Some(commit) if self.rng.random_bool(0.7) => Input::CommitFailed {
                commit: commit.id,
                error: CommitError::LeaseLost,
            },
            _ => Input::LeaseLost,
        };
        self.input(input)?;
        self.check_stopped(&StopReason::LeaseLost)
    }

    fn fail_for_good(&mut self) -> Check {
        self.stopping = true;
        let since = self.now.mono;
        for _ in 0..INPUTS_MAX {
            let Some(commit) = self.store.in_flight.take() else {
                // Other times fall due meanwhile.
                let timer = self.timer.ok_or("the commit is not tried again")?;
                self.pass(timer.since(self.now.mono).max(Duration::from_millis(1)))?;
                continue;
            };
            self.store.failures += 1;
            let error = CommitError::Failed("disk".into());
            self.input(Input::CommitFailed {
                commit: commit.id,
                error,
            })?;
            if self.stopped.is_some() {
                break;
            }
        }
        let tried = self.now.mono.since(since);
        ensure(tried >= self.limits.commit_patience, "durability", || {
            format!("it gave up after {tried:?}")
        })?;
        self.check_stopped(&StopReason::StoreFailed("disk".into()))
    }

    fn shut_down(&mut self) -> Check {
        self.stopping = true;
        for run in self.running.values_mut() {
            run.overdue = false;
        }
        let grace = Duration::from_secs(5);
        self.input(Input::Shutdown { grace })?;
        for _ in 0..INPUTS_MAX {
            if self.stopped.is_some() {
                break;
            }
            if let Some(commit) = self.store.in_flight.as_ref().map(|commit| commit.id)
                && self.rng.random_bool(0.7)
            {
                self.commit(commit)?;
            } else if let Some(invocation) = self.a_returning_run() {
                self.returns(invocation, Returned::Done(Outcome::default()))?;
            } else {
                self.pass(Duration::from_millis(700))?;
            }
        }
        ensure(self.is_durable(), "shutdown", || {
            "what was changed is not durable".into()
        })?;
        self.check_stopped(&StopReason::Shutdown)
    }

    /// Some come back in time, some don't.
    fn a_returning_run(&mut self) -> Option<InvocationId> {
        let first = self.running.keys().next().copied();
        first.filter(|_| self.rng.random_bool(0.4))
    }

    /// Nobody is left waiting.
    fn check_stopped(&mut self, reason: &StopReason) -> Check {
        ensure(self.stopped.as_ref() == Some(reason), "stopping", || {
            format!("it should have stopped by {reason:?}, not {:?}", self.stopped)
        })?;
        if let Some((call, expected)) = self.calls.iter().next() {
            return Err(format!("stopping: {call:?} was not answered, nor {expected:?}"));
        }
        for (call, handle) in self.handles.iter().filter(|(_, handle)| !handle.forgotten) {
            ensure(handle.outcome && handle.settled, "stopping", || {
                format!("{call:?} was not told")
            })?;
        }
        self.check_ends_when_stopped()
    }
}
