//! Convergence of a service: its releases, and the replicas to start and stop, as a pure function (rules W9, W11, W12).

use std::collections::BTreeMap;
use std::time::Duration;

use watershed_core::{InvocationId, Timestamp};
use watershed_proto::ServiceSpec;

use super::record::{Candidate, Halt, ServiceRecord};
use crate::policy::readiness::{FirstReady, first_ready, is_service_ready, needed};
use crate::policy::rollout::{
    Availability, Deadline, Forced, Manner, Plan, Progress, Replica, converge, manner, replace,
};
use crate::program::{Ports, Program};
use crate::replica::AT_ONCE;
use crate::settings::{self, Manners, RolloutSettings};
use crate::transition::{Transition, push};

/// Time between a late discovery of a passed deadline and the verdict.
const LAST_CHANCE: Duration = Duration::from_secs(5);

/// Time after a deadline within which its discovery is not late: more than the delay of a pass.
const IN_TIME: Duration = Duration::from_secs(1);

/// The most new replicas whose first start is not ordered yet, so that other services get their turn. Equal to the
/// number that is reconciled at once.
const NEW_AT_ONCE: usize = AT_ONCE;

/// Pseudo-release under which a restart counts the replicas that it replaces. No real release has this number.
pub(super) const BEFORE_RESTART: u64 = 0;

/// An existing replica, as its service sees it.
#[derive(Debug, Clone)]
pub(super) struct There {
    pub(super) replica: Replica,
    /// Time of the replica's last transition.
    pub(super) at: Timestamp,
    /// Ports of the process, by name.
    pub(super) ports: Ports,
    /// Reason of the replica's stage.
    pub(super) reason: String,
    /// Number of restarts in the replica's spec.
    pub(super) restarts: u64,
    /// True if no start of the replica was ever ordered.
    pub(super) is_new: bool,
    /// True if the replica may be running soon.
    pub(super) is_starting: bool,
    /// Rank and message of the replica's trouble; none without trouble.
    pub(super) trouble: Option<(u8, String)>,
}

/// The inputs of a decision about a service.
pub(super) struct Facts<'a> {
    pub(super) spec: &'a ServiceSpec,
    pub(super) program: Program,
    /// Settings in the file that apply without a new release.
    pub(super) manners: Manners,
    pub(super) settings: RolloutSettings,
    pub(super) there: &'a [There],
    pub(super) refreshes: u64,
    pub(super) now: Timestamp,
    /// Time of the previous pass; none if this process has made none.
    pub(super) looked: Option<Timestamp>,
    pub(super) invocation: InvocationId,
    pub(super) epoch: u64,
}

/// The result of a decision about a service.
pub(super) struct Decided {
    pub(super) record: ServiceRecord,
    /// Replicas to start and stop.
    pub(super) plan: Plan,
    /// Time of the next pass; none to wait for a change.
    pub(super) wake: Option<Timestamp>,
}

/// Returns the next record, and the replicas to start and stop.
pub(super) fn decide(record: &ServiceRecord, facts: &Facts<'_>) -> Decided {
    let mut pass = Pass {
        record: record.clone(),
        facts,
        wake: None,
        is_first: record.active == 0,
        is_retried: false,
    };
    pass.follow_clock();
    pass.answer_requests();
    pass.choose_release();
    pass.tell_restart();
    pass.follow_checks();
    pass.watch_rollout();
    pass.watch_restart();
    let plan = pass.plan();
    pass.tell_step(&plan);
    pass.finish_rollout(&plan);
    pass.finish_restart(&plan);
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

/// Returns the time at which a deadline at `until` counts as missed: at once if discovered in time, else a little after
/// the discovery, since replicas may be about to run after a sleep of the machine or a delayed pass.
pub(super) fn last_chance(overdue: &mut Option<Timestamp>, until: Timestamp, facts: &Facts<'_>) -> Timestamp {
    // Some may not even be there.
    let missing = u32::try_from(facts.there.len()).unwrap_or(u32::MAX) < facts.settings.bounds.replicas;
    let is_starting = missing || facts.there.iter().any(|one| one.is_starting);
    // Where nothing has looked since they run, their checks may not have been asked either.
    let is_known = facts
        .looked
        .is_some_and(|looked| facts.there.iter().all(|one| one.at <= looked));
    if overdue.is_none() && is_known && !is_starting && facts.now <= until.after(IN_TIME) {
        return facts.now;
    }
    let chance = LAST_CHANCE.min(facts.settings.deadline);
    overdue.get_or_insert(facts.now).after(chance)
}

pub(super) struct Pass<'a> {
    pub(super) record: ServiceRecord,
    pub(super) facts: &'a Facts<'a>,
    wake: Option<Timestamp>,
    /// True if nothing of the service has run yet.
    pub(super) is_first: bool,
    /// True if a person requested a retry that this pass handles.
    is_retried: bool,
}

impl Pass<'_> {
    /// Shortens deadlines that a clock that was set back has made longer than permitted.
    fn follow_clock(&mut self) {
        let now = self.facts.now;
        let record = &mut self.record;
        let candidate = record.candidate.as_mut();
        let (of_candidate, its_overdue) = candidate
            .map(|candidate| (&mut candidate.progress, &mut candidate.overdue))
            .unzip();
        let restarting = record.restarting.as_mut();
        let (of_restart, late_restart) = restarting
            .map(|restarting| (&mut restarting.progress, &mut restarting.overdue))
            .unzip();
        let progress = [of_candidate, of_restart].into_iter().flatten();
        let begun = progress.map(|progress| &mut progress.at);
        let overdue = [Some(&mut record.overdue), its_overdue, late_restart];
        let overdue = overdue.into_iter().flatten().filter_map(Option::as_mut);
        let all = record.first_start.iter_mut().chain(begun).chain(overdue);
        all.for_each(|at| *at = (*at).min(now));
    }

    /// Handles a person's request for a retry.
    fn answer_requests(&mut self) {
        if self.facts.refreshes == self.record.refreshes {
            return;
        }
        self.record.refreshes = self.facts.refreshes;
        // Those of its replicas that have failed start again, and all forget their failures.
        self.record.retries += 1;
        self.is_retried = true;
        let was_halted = self.record.halted.take().is_some();
        if was_halted || self.record.is_over || self.record.first_start.is_some() {
            (self.record.first_start, self.record.overdue) = (Some(self.facts.now), None);
        }
        if was_halted {
            self.tell("requested", String::new());
        }
        for release in &mut self.record.releases {
            release.failed = None;
        }
    }

    /// Chooses the wanted release: the one in the file, or the one to which a person rolled back.
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
                self.record.declare(program, digest.clone(), self.facts.now)
            }
        };
        self.record.wanted = wanted;
        self.note_manners(&digest);
        if wanted == self.record.target() || (self.is_failed(wanted) && self.record.active > 0) {
            if self.record.candidate.is_some() && wanted == self.record.active {
                self.discard_candidate("discarded");
            }
            return;
        }
        if rolled_back.is_some() {
            self.tell("rolled_back", format!("release {wanted}"));
        }
        self.aim_at(wanted);
    }

    fn rolled_back(&self, digest: &str) -> Option<u64> {
        let number = super::rolled_back(self.facts.spec, digest)?;
        self.record.release(number).map(|release| release.number)
    }

    /// Stores the settings beside the program with its newest release, where they apply in place.
    fn note_manners(&mut self, digest: &str) {
        let mut newest = self.record.releases.iter_mut().rev();
        if let Some(release) = newest.find(|release| release.digest == digest)
            && release.manners.as_ref() != Some(&self.facts.manners)
        {
            release.manners = Some(self.facts.manners.clone());
        }
    }

    pub(super) fn start_period(&self, release: u64) -> Duration {
        settings::start_period(&self.record.manners_of(release, &self.facts.manners).checks)
    }

    fn is_failed(&self, number: u64) -> bool {
        self.record
            .release(number)
            .is_some_and(|release| release.failed.is_some())
    }

    /// Makes a release the target.
    fn aim_at(&mut self, wanted: u64) {
        let facts = self.facts;
        self.record.halted = None;
        self.record.candidate = None;
        self.record.is_replacing = false;
        (self.record.restarting, self.record.restart_failed) = (None, None);
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
        let has_checks = !self.record.manners_of(wanted, &facts.manners).checks.is_empty();
        match manner(facts.settings.is_replace, has_checks, has_fixed) {
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

    pub(super) fn has_fixed_port(&self, number: u64) -> bool {
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

    /// Stops the whole service if a replica's check requests that.
    fn follow_checks(&mut self) {
        let by = self
            .facts
            .there
            .iter()
            .find(|one| one.reason == "stopped_by_check");
        if let Some(replica) = by.filter(|_| self.record.halted.is_none() && !self.is_retried) {
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

    /// Returns the time of the last transition of any replica, at most now.
    pub(super) fn last_transition(&self) -> Timestamp {
        let now = self.facts.now;
        let last = self.facts.there.iter().map(|one| one.at).max();
        last.unwrap_or(now).min(now)
    }

    /// Records a step of a rollout as a transition.
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
        let (last, start_period) = (self.last_transition(), self.start_period(self.record.target()));
        let cause = self.cause(self.record.target());
        let Some(candidate) = self.record.candidate.as_mut() else {
            return;
        };
        candidate.progress = candidate.progress.with(candidate.release, &replicas, last);
        let progress = candidate.progress;
        let deadline = progress.deadline(start_period, settings.deadline, settings.on_deadline, now);
        let until = progress.at.after(start_period.saturating_add(settings.deadline));
        let release = candidate.release;
        let chance = match deadline {
            Deadline::Until(_) => {
                candidate.overdue = None;
                now
            }
            _ => last_chance(&mut candidate.overdue, until, self.facts),
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
                let message = format!("release {release} made no progress in time{cause}");
                if let Some(found) = self.record.releases.iter_mut().find(|one| one.number == release) {
                    found.failed = Some(message.clone());
                }
                self.record.candidate = None;
                self.tell("rollout_failed", message);
            }
        }
    }

    /// Plans one step towards the wanted replicas.
    fn plan(&self) -> Plan {
        let bounds = self.facts.settings.bounds;
        let active = self.record.active;
        let replicas: Vec<Replica> = self.facts.there.iter().map(|one| one.replica).collect();
        let plan = match (&self.record.candidate, &self.record.restarting) {
            (Some(candidate), _) if candidate.is_draining => {
                replace(bounds.replicas, candidate.release, &replicas)
            }
            (Some(candidate), _) => converge(bounds, candidate.release, active, &replicas),
            (None, _) if self.record.is_replacing => replace(bounds.replicas, active, &replicas),
            (None, Some(restarting)) => {
                let generations = self.generations(restarting.restart);
                converge(bounds, active, BEFORE_RESTART, &generations)
            }
            (None, None) => converge(bounds, active, active, &replicas),
        };
        let new = self.facts.there.iter().filter(|one| one.is_new).count();
        let room = u32::try_from(NEW_AT_ONCE.saturating_sub(new)).unwrap_or(u32::MAX);
        Plan {
            start: plan.start.min(room),
            ..plan
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
            self.note_served();
            self.tell("rollout_complete", format!("release {}", candidate.release));
        }
    }

    /// Records that the active release has come up, which makes it a target of rollbacks.
    fn note_served(&mut self) {
        let active = self.record.active;
        let mut releases = self.record.releases.iter_mut();
        if let Some(release) = releases.find(|release| release.number == active) {
            release.has_served = Some(true);
        }
    }

    /// Counts the ready and completed replicas.
    fn count(&mut self) {
        let record = &mut self.record;
        let bounds = self.facts.settings.bounds;
        let number = |release: Option<u64>, availability: Availability| {
            let of = self.facts.there.iter().map(|one| one.replica);
            let found = of.filter(|one| (Some(one.release), one.availability) == (release, availability));
            u32::try_from(found.count()).unwrap_or(u32::MAX)
        };
        let was = record.ready;
        let active = Some(record.active);
        // While one release takes the place of another, copies of both serve.
        let next = record.candidate.as_ref().map(|candidate| candidate.release);
        let serving = [active, next].map(|release| number(release, Availability::Ready));
        let ready = serving.into_iter().sum();
        let completed = number(active, Availability::Completed);
        (record.ready, record.completed) = (ready, completed);
        let may_be_ready = bounds.replicas.saturating_sub(completed);
        record.is_over = completed > 0
            && record.candidate.is_none()
            && may_be_ready < needed(bounds.replicas, bounds.unavailable);
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
        // What is at its end was ready as much as it had to be.
        if is_ready(self.record.ready) || self.record.is_over {
            (self.record.was_ready, self.record.first_start) = (true, None);
            if self.record.candidate.is_none() {
                self.note_served();
            }
        }
        let is_up = bounds.replicas == 0 || self.record.is_over || is_ready(self.record.ready);
        if is_up && self.record.candidate.is_none() && self.record.halted.is_none() {
            let record = &mut self.record;
            record.come_up = Some((record.active, bounds.replicas, record.restarted));
        }
        // The time to become ready begins with the first replica that is wanted.
        if before == 0 && bounds.replicas > 0 && self.record.first_start.is_some() {
            self.record.first_start = Some(self.facts.now);
        }
    }

    /// Judges the time until a service is first ready (W9).
    fn watch_first_start(&mut self) {
        let settings = self.facts.settings;
        let Some(first) = self.record.first_start else {
            return;
        };
        if self.record.halted.is_some() || settings.bounds.replicas == 0 || self.record.candidate.is_some() {
            return;
        }
        let (start_period, now) = (self.start_period(self.record.active), self.facts.now);
        match first_ready(first, start_period, settings.deadline, now) {
            FirstReady::Until(until) => {
                self.record.overdue = None;
                self.wake_at(until);
            }
            FirstReady::TooLate => {
                let until = first.after(start_period.saturating_add(settings.deadline));
                let until = last_chance(&mut self.record.overdue, until, self.facts);
                if now < until {
                    return self.wake_at(until);
                }
                let cause = self.cause(self.record.active);
                let message = format!("it was not ready in time after its first start{cause}");
                self.halt("never-ready", message);
            }
        }
    }

    /// Returns the trouble of the worst-off replica of a release, to be said after what came of it; empty without any.
    fn cause(&self, release: u64) -> String {
        let of_release = self
            .facts
            .there
            .iter()
            .filter(|one| one.replica.release == release);
        let worst = of_release.filter_map(|one| one.trouble.as_ref()).min();
        worst.map_or_else(String::new, |(_, message)| format!(": {message}"))
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

    pub(super) fn wake_at(&mut self, until: Timestamp) {
        self.wake = Some(self.wake.map_or(until, |wake| wake.min(until)));
    }

    pub(super) fn tell(&mut self, reason: &str, detail: String) {
        let stage = self.record.stage_of(self.facts.settings.bounds.replicas);
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
