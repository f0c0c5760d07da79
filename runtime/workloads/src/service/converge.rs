//! The decision about a service: its releases and the replicas that it needs, as a pure function (rules W9, W11, W12).

use std::collections::BTreeMap;
use std::time::Duration;

use watershed_core::{InvocationId, Timestamp};
use watershed_proto::ServiceSpec;

use super::record::{Candidate, Halt, ServiceRecord};
use crate::policy::readiness::{FirstReady, first_ready, is_service_ready};
use crate::policy::rollout::{
    Availability, Deadline, Forced, Manner, Plan, Progress, Replica, converge, manner, replace,
};
use crate::program::{Ports, Program};
use crate::settings::{CheckSpec, RolloutSettings};
use crate::transition::{Transition, push};

/// The time between the first look that finds a deadline over, and the verdict.
const LAST_CHANCE: Duration = Duration::from_secs(5);

/// One replica that is there, as its service needs it.
#[derive(Debug, Clone)]
pub(super) struct There {
    pub(super) replica: Replica,
    /// The time of its last transition.
    pub(super) at: Timestamp,
    /// The ports of its process.
    pub(super) ports: Ports,
    /// The reason of its stage.
    pub(super) reason: String,
}

/// The facts that a pass decides by.
pub(super) struct Facts<'a> {
    pub(super) spec: &'a ServiceSpec,
    pub(super) program: Program,
    pub(super) checks: &'a [CheckSpec],
    pub(super) settings: RolloutSettings,
    pub(super) there: &'a [There],
    pub(super) refreshes: u64,
    pub(super) now: Timestamp,
    pub(super) invocation: InvocationId,
    pub(super) epoch: u64,
}

/// The decision of a pass.
pub(super) struct Decided {
    pub(super) record: ServiceRecord,
    /// The replicas to start and stop.
    pub(super) plan: Plan,
    /// The time at which it has to look again.
    pub(super) wake: Option<Timestamp>,
}

/// Decides what follows from a record and what is there.
pub(super) fn decide(record: &ServiceRecord, facts: &Facts<'_>) -> Decided {
    let mut pass = Pass {
        record: record.clone(),
        facts,
        wake: None,
        is_first: record.active == 0,
    };
    pass.answer_requests();
    pass.choose_release();
    pass.tell_restart();
    pass.follow_checks();
    pass.watch_rollout();
    let plan = pass.plan();
    pass.tell_step(&plan);
    pass.finish_rollout(&plan);
    pass.count();
    pass.watch_first_start();
    let plan = match &pass.record.halted {
        None => plan,
        Some(_) => pass.stop_all(),
    };
    Decided {
        record: pass.record,
        plan,
        wake: pass.wake,
    }
}

/// Returns the time at which something that is overdue has failed: a little after that was first seen. Where the machine
/// slept, or this pass waited, replicas may be about to run.
fn last_chance(overdue: &mut Option<Timestamp>, deadline: Duration, now: Timestamp) -> Timestamp {
    overdue.get_or_insert(now).after(LAST_CHANCE.min(deadline))
}

struct Pass<'a> {
    record: ServiceRecord,
    facts: &'a Facts<'a>,
    wake: Option<Timestamp>,
    /// True if nothing of the service has run yet.
    is_first: bool,
}

impl Pass<'_> {
    /// A person wants another try.
    fn answer_requests(&mut self) {
        if self.facts.refreshes == self.record.refreshes {
            return;
        }
        self.record.refreshes = self.facts.refreshes;
        if self.record.halted.take().is_some() {
            self.record.first_start = Some(self.facts.now);
            self.tell("requested", String::new());
        }
        for release in &mut self.record.releases {
            release.failed = None;
        }
    }

    /// Chooses the release that is wanted: that of the file, or the one that a person rolled back to.
    fn choose_release(&mut self) {
        let digest = self.facts.program.digest();
        let rolled_back = self.rolled_back(&digest);
        let newest = self.record.releases.iter().rev();
        let known = newest
            .filter(|release| release.digest == digest)
            .map(|release| release.number)
            .next();
        let wanted = match (rolled_back, known) {
            (Some(number), _) => number,
            // One that failed is tried again if it was edited away meanwhile.
            (None, Some(number)) if number == self.record.target() || number == self.record.wanted => number,
            // A program that was there before comes back as a release of its own.
            (None, _) => {
                let program = self.facts.program.clone();
                self.record.declare(program, digest, self.facts.now)
            }
        };
        self.record.wanted = wanted;
        if wanted == self.record.target() || (self.is_failed(wanted) && self.record.active > 0) {
            if self.record.candidate.is_some() && wanted == self.record.active {
                self.discard_candidate("discarded");
            }
            return;
        }
        self.aim_at(wanted);
    }

    fn rolled_back(&self, digest: &str) -> Option<u64> {
        let operator = self.facts.spec.operator.as_ref()?;
        let is_meant = operator.release > 0 && operator.file_release == *digest;
        self.record
            .release(operator.release)
            .filter(|_| is_meant)
            .map(|release| release.number)
    }

    fn is_failed(&self, number: u64) -> bool {
        self.record
            .release(number)
            .is_some_and(|release| release.failed.is_some())
    }

    /// Leads the service to a release.
    fn aim_at(&mut self, wanted: u64) {
        let facts = self.facts;
        self.record.halted = None;
        self.record.candidate = None;
        self.record.is_replacing = false;
        if wanted == self.record.active {
            return;
        }
        let has_others =
            self.record.active > 0 && !facts.there.is_empty() && facts.settings.bounds.replicas > 0;
        if !has_others {
            self.activate(wanted);
            return;
        }
        let has_fixed = self.has_fixed_port(wanted) || self.has_fixed_port(self.record.active);
        match manner(facts.settings.is_replace, !facts.checks.is_empty(), has_fixed) {
            Manner::Replace(forced) => {
                self.tell("force_replace", forced.as_str().to_owned());
                self.activate(wanted);
                self.record.is_replacing = true;
            }
            Manner::Rolling => {
                let replicas: Vec<Replica> = facts.there.iter().map(|one| one.replica).collect();
                self.record.candidate = Some(Candidate {
                    release: wanted,
                    progress: Progress::begin(wanted, &replicas, facts.now),
                    is_draining: false,
                    overdue: None,
                });
                self.tell("rollout", format!("release {wanted}"));
            }
        }
    }

    fn has_fixed_port(&self, number: u64) -> bool {
        self.record
            .release(number)
            .is_some_and(|release| release.program.has_fixed_port())
    }

    fn activate(&mut self, release: u64) {
        self.record.active = release;
        self.record.first_start = Some(self.facts.now);
        self.record.was_ready = false;
        self.tell("release", format!("release {release}"));
    }

    fn discard_candidate(&mut self, reason: &str) {
        if let Some(candidate) = self.record.candidate.take() {
            self.tell(reason, format!("release {}", candidate.release));
        }
    }

    /// A check of one replica stops the whole service.
    fn follow_checks(&mut self) {
        let by = self
            .facts
            .there
            .iter()
            .find(|one| one.reason == "stopped_by_check");
        if let Some(replica) = by.filter(|_| self.record.halted.is_none()) {
            let message = format!(
                "a check of replica {} stopped the service",
                replica.replica.number
            );
            self.halt("stopped-by-check", message);
        }
    }

    fn halt(&mut self, code: &str, message: String) {
        self.record.halted = Some(Halt {
            code: code.to_owned(),
            message: message.clone(),
        });
        self.tell(&code.replace('-', "_"), message);
    }

    /// Tells that a person has restarted it; its replicas follow.
    fn tell_restart(&mut self) {
        let operator = self.facts.spec.operator.as_ref();
        let (restarts, is_now) = operator.map_or((0, false), |operator| (operator.restarts, operator.is_now));
        let before = std::mem::replace(&mut self.record.restarts, restarts);
        if self.is_first || restarts <= before {
            return;
        }
        let how = if is_now {
            "all at once"
        } else {
            "one after another"
        };
        self.tell("restarted", how.to_owned());
        if is_now {
            self.tell("force_replace", Forced::Force.as_str().to_owned());
        }
    }

    /// Tells a step of a rollout.
    fn tell_step(&mut self, plan: &Plan) {
        let Some(candidate) = &self.record.candidate else {
            return;
        };
        if plan.start == 0 && plan.stop.is_empty() {
            return;
        }
        let release = candidate.release;
        let is_ready =
            |one: &&There| one.replica.release == release && one.replica.availability == Availability::Ready;
        let ready = self.facts.there.iter().filter(is_ready).count();
        let wanted = self.facts.settings.bounds.replicas;
        let detail = format!(
            "release {release}: {ready} of {wanted} ready, starting {}, stopping {}",
            plan.start,
            plan.stop.len()
        );
        self.tell("rollout_step", detail);
    }

    /// Judges the time of a rollout (W11).
    fn watch_rollout(&mut self) {
        let (settings, now) = (self.facts.settings, self.facts.now);
        let replicas: Vec<Replica> = self.facts.there.iter().map(|one| one.replica).collect();
        let last = self.facts.there.iter().map(|one| one.at).max().unwrap_or(now);
        let Some(candidate) = self.record.candidate.as_mut() else {
            return;
        };
        candidate.progress = candidate.progress.with(candidate.release, &replicas, last);
        let deadline = candidate.progress.deadline(
            settings.start_period,
            settings.deadline,
            settings.on_deadline,
            now,
        );
        let release = candidate.release;
        let chance = match deadline {
            Deadline::Until(_) => {
                candidate.overdue = None;
                now
            }
            _ => last_chance(&mut candidate.overdue, settings.deadline, now),
        };
        match deadline {
            Deadline::Until(until) => self.wake_at(until),
            Deadline::Drain if candidate.is_draining => {}
            _ if now < chance => self.wake_at(chance),
            Deadline::Drain => {
                candidate.is_draining = true;
                self.tell("force_replace", Forced::Force.as_str().to_owned());
            }
            Deadline::RollBack => {
                let message = format!("release {release} made no progress in time");
                if let Some(found) = self.record.releases.iter_mut().find(|one| one.number == release) {
                    found.failed = Some(message.clone());
                }
                self.record.candidate = None;
                self.tell("rollout_failed", message);
            }
        }
    }

    /// Plans one step to what is wanted.
    fn plan(&self) -> Plan {
        let bounds = self.facts.settings.bounds;
        let replicas: Vec<Replica> = self.facts.there.iter().map(|one| one.replica).collect();
        match &self.record.candidate {
            Some(candidate) if candidate.is_draining => {
                replace(bounds.replicas, candidate.release, &replicas)
            }
            Some(candidate) => converge(bounds, candidate.release, self.record.active, &replicas),
            None if self.record.is_replacing => replace(bounds.replicas, self.record.active, &replicas),
            None => converge(bounds, self.record.active, self.record.active, &replicas),
        }
    }

    fn finish_rollout(&mut self, plan: &Plan) {
        if !plan.complete {
            return;
        }
        self.record.is_replacing = false;
        if let Some(candidate) = self.record.candidate.take() {
            self.record.active = candidate.release;
            self.record.was_ready = true;
            self.record.first_start = None;
            self.tell("rollout_complete", format!("release {}", candidate.release));
        }
    }

    /// Counts what serves.
    fn count(&mut self) {
        let record = &mut self.record;
        let bounds = self.facts.settings.bounds;
        let ready = |release: u64| {
            let of = self.facts.there.iter();
            of.filter(move |one| {
                one.replica.release == release && one.replica.availability == Availability::Ready
            })
        };
        let was = record.ready;
        record.ready = u32::try_from(ready(record.active).count()).unwrap_or(u32::MAX);
        let scaled = record.replicas != bounds.replicas && !self.is_first;
        let before = std::mem::replace(&mut record.replicas, bounds.replicas);
        // All that serve have the address, whatever their release.
        let mut ports: BTreeMap<String, Vec<u16>> = BTreeMap::new();
        let serving = self
            .facts
            .there
            .iter()
            .filter(|one| one.replica.availability == Availability::Ready);
        for (name, number) in serving.flat_map(|one| &one.ports) {
            ports.entry(name.clone()).or_default().push(*number);
        }
        record.ports = ports;
        let is_ready = |count: u32| is_service_ready(bounds.replicas, bounds.unavailable, count);
        if scaled {
            self.tell("scaled", format!("{before} -> {}", bounds.replicas));
        }
        match (is_ready(was), is_ready(self.record.ready)) {
            (false, true) => self.tell("ready", String::new()),
            (true, false) => self.tell("unready", String::new()),
            _ => {}
        }
        if is_ready(self.record.ready) {
            (self.record.was_ready, self.record.first_start) = (true, None);
        }
        // The time to become ready begins with the first replica that is wanted.
        if before == 0 && bounds.replicas > 0 && self.record.first_start.is_some() {
            self.record.first_start = Some(self.facts.now);
        }
    }

    /// Judges the time that a service has to become ready for the first time (W9).
    fn watch_first_start(&mut self) {
        let settings = self.facts.settings;
        let Some(first) = self.record.first_start else {
            return;
        };
        if self.record.halted.is_some() || settings.bounds.replicas == 0 || self.record.candidate.is_some() {
            return;
        }
        match first_ready(first, settings.start_period, settings.deadline, self.facts.now) {
            FirstReady::Until(until) => {
                self.record.overdue = None;
                self.wake_at(until);
            }
            FirstReady::TooLate => {
                let until = last_chance(&mut self.record.overdue, settings.deadline, self.facts.now);
                if self.facts.now < until {
                    return self.wake_at(until);
                }
                let message = "it was not ready in time after its first start".to_owned();
                self.halt("never-ready", message);
            }
        }
    }

    fn stop_all(&self) -> Plan {
        let living = self.facts.there.iter().map(|one| one.replica);
        Plan {
            stop: living
                .filter(|one| one.availability != Availability::Stopping)
                .map(|one| one.number)
                .collect(),
            ..Plan::default()
        }
    }

    fn wake_at(&mut self, until: Timestamp) {
        self.wake = Some(self.wake.map_or(until, |wake| wake.min(until)));
    }

    fn tell(&mut self, reason: &str, detail: String) {
        let stage = self.record.stage();
        let from = self
            .record
            .transitions
            .last()
            .map_or_else(|| "pending".to_owned(), |last| last.to.clone());
        let transition = Transition {
            from,
            to: stage.to_owned(),
            at: self.facts.now,
            reason: reason.to_owned(),
            detail,
            invocation: self.facts.invocation,
            epoch: self.facts.epoch,
        };
        push(&mut self.record.transitions, transition);
    }
}
