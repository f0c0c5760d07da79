//! Lifecycle of a replica: the next record and action from the stored record and the observation, as a pure function.
//!
//! [`advance`] is called again after each action, until nothing is left to do. It never looks at why it was called, so a
//! lost event does no harm.

use std::time::Duration;

use watershed_core::{Attempts, InvocationId, Timestamp};

use super::record::{FailedStart, LastExit, Purpose, ReplicaRecord, ReplicaSpec, Stage};
use crate::backend::{End, Observation, Phase, StartId};
use crate::policy::exit::{AfterStart, Exit, NO_ROOM, StartFailure, after_failed_start};
use crate::policy::health::Action as CheckAction;
use crate::policy::readiness::{Checked, Readiness, replica_readiness};
use crate::policy::restart::{self, Decision, Ended, Ending, with_jitter};
use crate::transition::{Transition, push};

/// The inputs of a decision about a replica.
pub(crate) struct Facts<'a> {
    pub(crate) spec: &'a ReplicaSpec,
    /// Observation of the replica's newest start; none if its backend has none.
    pub(crate) observed: Option<&'a Observation>,
    /// States of the readiness checks.
    pub(crate) checks: &'a [Checked],
    /// Due action of a check, with the check's name; none if no action is due.
    pub(crate) due: Option<(&'a str, CheckAction)>,
    /// Reason why no process can be started now; none if one can.
    pub(crate) lack_of_room: Option<&'a str>,
    /// Number of requested refreshes.
    pub(crate) refreshes: u64,
    pub(crate) now: Timestamp,
    /// Random number for the jitter of delays.
    pub(crate) draw: u32,
    pub(crate) invocation: InvocationId,
    pub(crate) epoch: u64,
}

/// The action to perform once the record is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Order the start with the record's counter.
    Start,
    /// Order the stop of the record's start.
    Stop,
    /// Order the stop of another start of the replica, to be forgotten at its end.
    StopOther(u64),
    /// Let the backend forget the record's start, whose end is counted.
    Forget,
    /// No action until this time; none to wait for a change.
    Wait(Option<Timestamp>),
}

/// Returns the record after an unanswered order to start. The next observation shows whether the process exists; if
/// not, the same start is ordered again.
pub(crate) fn unanswered(record: &ReplicaRecord, message: &str, facts: &Facts<'_>) -> ReplicaRecord {
    let mut pass = Pass {
        record: record.clone(),
        facts,
    };
    let failure = StartFailure::EngineUnreachable;
    pass.note_failed_start(failure, message);
    pass.record
}

/// Returns the next record and the action to perform once it is stored.
pub(crate) fn advance(record: &ReplicaRecord, facts: &Facts<'_>) -> (ReplicaRecord, Action) {
    let mut pass = Pass {
        record: record.clone(),
        facts,
    };
    pass.follow_clock();
    pass.answer_requests();
    let action = pass.act();
    (pass.record, action)
}

struct Pass<'a> {
    record: ReplicaRecord,
    facts: &'a Facts<'a>,
}

impl Pass<'_> {
    /// Shortens waits that a clock that was set back has made longer than permitted.
    fn follow_clock(&mut self) {
        let now = self.facts.now;
        self.record.exits = self.record.exits.by_clock(now);
        self.record.starts = self.record.starts.by_clock(now);
        self.record.started = self.record.started.min(now);
        self.record.ready_since = self.record.ready_since.map(|since| since.min(now));
    }

    /// Handles people's requests for restarts and retries.
    fn answer_requests(&mut self) {
        let facts = self.facts;
        let restarts = facts.spec.restarts != self.record.restarts;
        let retries = facts.refreshes != self.record.refreshes || facts.spec.retries != self.record.retries;
        if !restarts && !retries {
            return;
        }
        // A new one has nothing to forget.
        let is_new = self.record.is_new();
        (self.record.restarts, self.record.retries) = (facts.spec.restarts, facts.spec.retries);
        self.record.refreshes = facts.refreshes;
        if is_new {
            return;
        }
        (self.record.exits, self.record.starts) = (Attempts::default(), Attempts::default());
        match self.record.stage {
            Stage::Completed | Stage::Failed | Stage::BackingOff | Stage::Pending => {
                self.record.failed_start = None;
                self.enter(Stage::Pending, "requested", "");
            }
            Stage::Starting | Stage::Running if restarts => {
                self.stop_for(Purpose::Restart, "restarted", "");
            }
            _ => {}
        }
    }

    fn act(&mut self) -> Action {
        if let Some(other) = self.other_start() {
            return other;
        }
        if self.record.is_open {
            return self.act_on_open();
        }
        if self.is_left_over() {
            return Action::Forget;
        }
        if !self.facts.spec.is_wanted {
            if self.record.stage != Stage::Gone {
                self.enter(Stage::Gone, "not_wanted", "");
            }
            return Action::Wait(None);
        }
        match self.record.stage {
            Stage::Pending => match self.record.starts.next {
                Some(next) if next > self.facts.now => Action::Wait(Some(next)),
                _ => self.begin(),
            },
            Stage::BackingOff => match self.record.exits.next {
                Some(next) if next > self.facts.now => Action::Wait(Some(next)),
                _ => self.begin(),
            },
            // It is wanted again, before anybody has removed it: what it waited for goes on.
            Stage::Gone if self.record.exits.next.is_some_and(|next| next > self.facts.now) => {
                self.enter(Stage::BackingOff, "wanted_again", "");
                Action::Wait(self.record.exits.next)
            }
            Stage::Gone | Stage::Stopping | Stage::Starting | Stage::Running => self.begin(),
            Stage::Completed | Stage::Failed => Action::Wait(None),
        }
    }

    /// Decides about a living start that the record does not know, from an older catalog or from an abandoned request
    /// that was carried out after all.
    fn other_start(&mut self) -> Option<Action> {
        let observed = self.facts.observed?;
        let counter = observed.id.counter();
        if counter > self.record.counter {
            // Numbers go on from there, so that no start is refused as an old one.
            self.record.counter = counter;
            (self.record.is_open, self.record.purpose) = (false, None);
            self.record.ready_since = None;
            self.enter(Stage::Pending, "other_start", "");
        }
        let is_ours = self.record.is_open && counter == self.record.counter;
        if is_ours || !observed.phase.is_alive() {
            return None;
        }
        Some(match observed.stopping {
            true => Action::Wait(None),
            false => Action::StopOther(counter),
        })
    }

    /// Returns true if the backend still has a start whose end is counted.
    fn is_left_over(&self) -> bool {
        let observed = self.facts.observed;
        observed.is_some_and(|one| one.id.counter() <= self.record.counter && !one.phase.is_alive())
    }

    /// Begins a new start: the record gets a new counter before the order.
    fn begin(&mut self) -> Action {
        if let Some(message) = self.facts.lack_of_room {
            return self.wait_for_room(message);
        }
        self.record.counter += 1;
        self.record.is_open = true;
        self.record.release = self.facts.spec.release;
        self.record.started = self.facts.now;
        self.record.backend_id = None;
        self.record.ready_since = None;
        // Where a process could not serve on them others are tried.
        self.record.keeps_ports = self.record.was_ready;
        self.record.was_ready = false;
        self.record.purpose = None;
        self.enter(Stage::Starting, "start", "");
        Action::Start
    }

    /// Waits until memory is available. No counter is stored, since nothing is ordered.
    fn wait_for_room(&mut self, message: &str) -> Action {
        let failure = StartFailure::InsufficientResources;
        if self.record.stage != Stage::Pending || self.record.reason != failure.as_str() {
            self.note_failed_start(failure, message);
        }
        Action::Wait(Some(self.facts.now.after(NO_ROOM)))
    }

    fn act_on_open(&mut self) -> Action {
        let counter = self.record.counter;
        let current = self.facts.observed.filter(|one| one.id.counter() == counter);
        let Some(observation) = current else {
            return self.act_on_absent();
        };
        self.record.backend_id.clone_from(&observation.backend_id);
        // By a clock that was set back since, it was started when that was first seen.
        if observation.started <= self.facts.now {
            self.record.started = observation.started;
        }
        match &observation.phase {
            Phase::Starting | Phase::Running => self.act_on_living(observation),
            Phase::NotStarted { failure, message } => self.not_started(*failure, message),
            Phase::Ended { end, at } => self.ended(*end, *at, observation.stopping),
        }
    }

    /// Handles a start that the backend does not know: never made if never observed, else lost with its record.
    fn act_on_absent(&mut self) -> Action {
        let is_unseen = matches!(
            self.record.stage,
            Stage::Starting | Stage::Pending | Stage::Failed
        );
        let was_observed = self.record.backend_id.is_some() || !is_unseen;
        if was_observed || !self.facts.spec.is_wanted {
            return self.ended(End::Exit(Exit::Unknown), self.facts.now, !was_observed);
        }
        match (self.record.stage, self.record.starts.next) {
            (Stage::Failed, _) => Action::Wait(None),
            (Stage::Pending, Some(next)) if next > self.facts.now => Action::Wait(Some(next)),
            (Stage::Pending, _) => {
                self.enter(Stage::Starting, "start", "");
                Action::Start
            }
            _ => Action::Start,
        }
    }

    fn act_on_living(&mut self, observation: &Observation) -> Action {
        if self.record.purpose.is_none() {
            if !self.facts.spec.is_wanted {
                self.stop_for(Purpose::Remove, "not_wanted", "");
            } else if let Some((name, action)) = self.facts.due {
                self.follow_check(name, action);
            }
        }
        if self.record.purpose.is_some() {
            return match observation.stopping {
                true => Action::Wait(None),
                false => Action::Stop,
            };
        }
        if observation.phase == Phase::Starting {
            if self.record.stage != Stage::Starting {
                // The order without an answer was carried out.
                self.enter(Stage::Starting, "start", "");
            }
            return Action::Wait(None);
        }
        // A process is there, so the reasons for which earlier ones were not are gone.
        self.record.starts = Attempts::default();
        self.record.failed_start = None;
        self.judge(self.record.started)
    }

    fn follow_check(&mut self, name: &str, action: CheckAction) {
        let detail = format!("{name}: {}", action.as_str());
        match action {
            CheckAction::Restart => self.stop_for(Purpose::Check, "check", &detail),
            CheckAction::Stop => self.stop_for(Purpose::StopService, "stopped_by_check", &detail),
            CheckAction::Alert => self.enter(self.record.stage, "check", &detail),
        }
    }

    /// Determines the readiness of a living process (W9).
    fn judge(&mut self, started: Timestamp) -> Action {
        let readiness = replica_readiness(
            started,
            self.facts.checks,
            self.record.ready_since,
            self.facts.now,
        );
        match readiness {
            Readiness::Starting { until } => Action::Wait(Some(until)),
            Readiness::Unready { until } => {
                if self.record.stage != Stage::Running || self.record.ready_since.is_some() {
                    self.record.ready_since = None;
                    self.enter(Stage::Running, "unready", "");
                }
                Action::Wait(until)
            }
            Readiness::Ready { since } => {
                if self.record.stage != Stage::Running || self.record.ready_since.is_none() {
                    self.record.ready_since = Some(since);
                    self.record.was_ready = true;
                    self.enter(Stage::Running, "ready", "");
                }
                Action::Wait(None)
            }
        }
    }

    /// Handles a failed start (W7).
    fn not_started(&mut self, failure: StartFailure, message: &str) -> Action {
        self.record.is_open = false;
        if self.facts.spec.is_wanted {
            self.note_failed_start(failure, message);
        } else {
            self.enter(Stage::Gone, "not_wanted", "");
        }
        Action::Forget
    }

    fn note_failed_start(&mut self, failure: StartFailure, message: &str) {
        self.record.failed_start = Some(FailedStart {
            failure,
            message: message.to_owned(),
        });
        let reason = failure.as_str();
        match after_failed_start(failure, self.record.starts, self.facts.now) {
            AfterStart::Fail => self.enter(Stage::Failed, reason, message),
            AfterStart::Retry(attempts) => {
                self.record.starts = attempts;
                self.enter(Stage::Pending, reason, message);
            }
            AfterStart::Wait => {
                let now = self.facts.now;
                (self.record.starts.last, self.record.starts.next) = (Some(now), Some(now.after(NO_ROOM)));
                self.enter(Stage::Pending, reason, message);
            }
        }
    }

    /// Handles the end of a process (W5), which is counted only here.
    fn ended(&mut self, end: End, at: Timestamp, was_stopped: bool) -> Action {
        // By a clock that was set back since, it ends now: no run was longer for that.
        let at = at.min(self.facts.now);
        let exit = match end {
            End::Exit(exit) => Some(exit),
            End::Reboot => None,
        };
        let ending = match (self.record.purpose, exit) {
            (_, None) => Ending::Reboot,
            (Some(Purpose::Check), _) => Ending::Check,
            (Some(_), _) => Ending::Intended,
            // Stopped with the program that ran it, which no reconciler had asked for.
            (None, _) if was_stopped => Ending::Reboot,
            (None, Some(exit)) => Ending::Unexpected(exit),
        };
        self.record.last_exit = Some(LastExit {
            exit,
            at,
            after_ms: millis(self.record.started, at),
            was_intended: !matches!(ending, Ending::Unexpected(_)),
        });
        let ready_for = self
            .record
            .ready_since
            .map(|since| Duration::from_millis(millis(since, at)));
        let decision = restart::decide(
            &self.facts.spec.restart,
            self.record.exits,
            Ended {
                ending,
                ready_for,
                at,
            },
        );
        let purpose = self.record.purpose.take();
        self.record.is_open = false;
        self.record.ready_since = None;
        match decision {
            _ if !self.facts.spec.is_wanted => self.enter(Stage::Gone, "not_wanted", ""),
            Decision::Stay if purpose == Some(Purpose::StopService) => {
                self.enter(Stage::Failed, "stopped_by_check", "");
            }
            Decision::Stay | Decision::Start => self.enter(Stage::Pending, "ended", ""),
            Decision::BackOff(attempts) => {
                self.record.exits = with_jitter(attempts, self.facts.draw);
                self.enter(Stage::BackingOff, "exited", &told(exit));
            }
            Decision::Complete => {
                self.record.exits = Attempts::default();
                self.enter(Stage::Completed, "completed", "");
            }
            Decision::Fail(reason, attempts) => {
                self.record.exits = attempts;
                self.enter(Stage::Failed, reason.as_str(), &told(exit));
            }
        }
        Action::Forget
    }

    fn stop_for(&mut self, purpose: Purpose, reason: &str, detail: &str) {
        self.record.purpose = Some(purpose);
        self.enter(Stage::Stopping, reason, detail);
    }

    /// Changes the stage and adds the transition, in one write.
    fn enter(&mut self, stage: Stage, reason: &str, detail: &str) {
        let transition = Transition {
            from: self.record.stage.as_str().to_owned(),
            to: stage.as_str().to_owned(),
            at: self.facts.now,
            reason: reason.to_owned(),
            detail: detail.to_owned(),
            invocation: self.facts.invocation,
            epoch: self.facts.epoch,
        };
        push(&mut self.record.transitions, transition);
        if self.record.stage != stage || self.record.since == Timestamp::default() {
            self.record.since = self.facts.now;
        }
        self.record.stage = stage;
        reason.clone_into(&mut self.record.reason);
    }
}

fn millis(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.0.saturating_sub(from.0)).unwrap_or(0)
}

/// Formats an exit for people: `code 3`.
pub fn told(exit: Option<Exit>) -> String {
    match exit {
        Some(Exit::Code(code)) => format!("code {code}"),
        Some(Exit::Signal(signal)) => format!("signal {signal}"),
        Some(Exit::OutOfMemory) => "out of memory".to_owned(),
        Some(Exit::Timeout) => "timeout".to_owned(),
        Some(Exit::Unknown) => "an unknown end".to_owned(),
        None => "the end of the machine".to_owned(),
    }
}

/// Returns the id of the record's last start.
///
/// # Errors
/// Never for a uid of the controller, which is short and has no odd characters.
pub(crate) fn start_id(uid: &str, record: &ReplicaRecord) -> Result<StartId, watershed_shim::BadStartId> {
    StartId::new(uid, record.counter)
}

#[cfg(test)]
mod tests;
