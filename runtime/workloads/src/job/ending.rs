//! The end of a job's process, and its consequences.

use std::sync::Arc;
use std::time::Duration;

use watershed_controller::{Error, Outcome, Timestamp};
use watershed_core::{Attempts, ErrorKind, SourcePosition};

use super::pass::Pass;
use super::record::{JobStage, JobStop};
use crate::backend::{End, Phase};
use crate::crash::{self, crash_point};
use crate::policy::exit::{AfterJob, AfterStart, Exit, NO_ROOM, StartFailure, after_failed_start, after_job};
use crate::replica::{FailedStart, LastExit, backend_error, exit_code, seconds, start_code, told};

impl Pass<'_> {
    /// Counts the end of the record's start once, then lets the backend forget it.
    pub(super) async fn count_end(&mut self) -> Result<(), Error> {
        let observed = self.shared.observations.see(&self.uid);
        let current = observed.filter(|one| one.id.counter() == self.record.counter);
        let now = self.context.now();
        self.record.is_open = false;
        match current.map(|one| (one.phase, one.stopping)) {
            Some((Phase::NotStarted { failure, message }, _)) => self.not_started(failure, message),
            Some((Phase::Ended { end, at }, was_stopped)) => self.ended(end, at, was_stopped),
            _ => self.ended(End::Exit(Exit::Unknown), now, false),
        }
        self.record.stop = None;
        self.shared.ports.give_back(&self.record.ports);
        self.store().await?;
        let id = self.start_id()?;
        crash_point(crash::FORGET_BEFORE);
        let forgotten = self.backend.forget(id, false).await;
        crash_point(crash::FORGET_AFTER);
        forgotten.map_err(|error| backend_error(&error))?;
        self.shared.observations.forget(&self.uid);
        Ok(())
    }

    pub(super) fn not_started(&mut self, failure: StartFailure, message: String) {
        let now = self.context.now();
        self.record.failed_start = Some(FailedStart {
            failure,
            message: message.clone(),
        });
        match after_failed_start(failure, self.record.starts, now) {
            AfterStart::Fail => self.fail(failure.as_str(), &message),
            AfterStart::Retry(attempts) => {
                self.record.starts = attempts;
                self.enter(JobStage::Pending, failure.as_str(), &message);
            }
            AfterStart::Wait => {
                (self.record.starts.last, self.record.starts.next) = (Some(now), Some(now.after(NO_ROOM)));
                self.enter(JobStage::Pending, failure.as_str(), &message);
            }
        }
    }

    fn ended(&mut self, end: End, at: Timestamp, was_stopped: bool) {
        // By a clock that was set back since, it ends now.
        let at = at.min(self.context.now());
        (self.record.starts, self.record.failed_start) = (Attempts::default(), None);
        let exit = match (self.record.stop, end) {
            (Some(JobStop::Timeout), _) => Exit::Timeout,
            (_, End::Exit(exit)) => exit,
            (_, End::Reboot) => Exit::Unknown,
        };
        // Stopped on purpose, or with the program or the machine that ran it: the run is still to be made.
        let is_intended = self.record.stop == Some(JobStop::Replace)
            || (self.record.stop.is_none() && was_stopped)
            || end == End::Reboot;
        self.record.last_exit = Some(LastExit {
            exit: (end != End::Reboot).then_some(exit),
            at,
            after_ms: u64::try_from(at.0.saturating_sub(self.record.started.0)).unwrap_or(0),
            was_intended: is_intended,
        });
        if self.record.stop == Some(JobStop::Cancel) {
            return self.fail("cancelled", "");
        }
        if is_intended {
            return self.enter(JobStage::Pending, "stopped", "");
        }
        match after_job(
            &self.settings.success,
            self.settings.retries,
            self.record.exits,
            exit,
            at,
        ) {
            AfterJob::Complete => {
                self.record.exits = Attempts::default();
                (self.record.has_succeeded, self.record.finished_well) = (true, true);
                self.record.finish();
                self.enter(JobStage::Completed, "completed", "");
            }
            AfterJob::Retry(attempts) => {
                self.record.exits = attempts;
                self.enter(JobStage::BackingOff, "exited", &told(Some(exit)));
            }
            AfterJob::Fail => {
                self.record.exits.count = self.record.exits.count.saturating_add(1);
                self.fail("exited", &told(Some(exit)));
            }
        }
    }

    fn fail(&mut self, reason: &str, detail: &str) {
        self.record.exits.next = None;
        self.record.starts.next = None;
        self.record.finish();
        self.record.finished_well = false;
        self.enter(JobStage::Failed, reason, detail);
    }

    /// Returns the outcome of the invocation from the last run.
    pub(super) async fn finish(&mut self, wake: Option<Timestamp>) -> Result<Outcome, Error> {
        let is_open = matches!(self.record.stage, JobStage::Pending | JobStage::BackingOff);
        if is_open && self.record.finished.is_some() {
            // Another run was begun, or was to be tried again, and is not wanted any more: what counts is the one that had
            // finished.
            (self.record.exits.next, self.record.starts.next) = (None, None);
            let stage = match self.record.finished_well {
                true => JobStage::Completed,
                false => JobStage::Failed,
            };
            self.enter(stage, "finished_before", "");
        }
        if self.context.state() != Some(&self.record) {
            self.store().await?;
        }
        if self.record.stage == JobStage::Failed {
            let mut error = self.error();
            error.retrigger = wake;
            return Err(error);
        }
        let outcome = match self.is_changed {
            true => Outcome::changed(),
            false => Outcome::unchanged(),
        };
        let outcome = Outcome {
            retrigger: wake,
            ..outcome
        };
        match self.record.has_succeeded {
            true => Ok(outcome),
            false => Ok(outcome.unready("it has not run yet")),
        }
    }

    pub(super) fn retry_later(&self, at: Timestamp) -> Result<Outcome, Error> {
        let mut error = self.error();
        error.kind = ErrorKind::Transient;
        let wait = at.0.saturating_sub(self.context.now().0);
        error.retry_after = Some(Duration::from_millis(u64::try_from(wait).unwrap_or(0)));
        Err(error)
    }

    /// Returns the error of the last run.
    fn error(&self) -> Error {
        let name = self.context.name();
        let (code, message) = match (&self.record.failed_start, &self.record.last_exit) {
            (Some(failed), _) => (
                start_code(failed.failure),
                format!("job/{name} could not be started: {}", failed.message),
            ),
            _ if self.record.reason == "cancelled" => ("cancelled", format!("job/{name} was cancelled")),
            (None, Some(exit)) => {
                let (end, after) = (told(exit.exit), seconds(exit.after_ms));
                let message = match self.record.exits.count {
                    0 | 1 => format!("job/{name} exited with {end} after {after}"),
                    count => format!("job/{name} failed {count} times, last with {end} after {after}"),
                };
                (exit_code(exit.exit), message)
            }
            (None, None) => ("exited", format!("job/{name} has failed")),
        };
        let mut error = Error::permanent(code, message);
        error.hint =
            Some(format!("see `watershed logs {name}`; `watershed retry {name}` runs it again").into());
        error.place = self.context.row().paths.first().map(|path| SourcePosition {
            path: Arc::clone(path),
            line: 1,
            column: 1,
        });
        error
    }
}
