//! Restarts by people: new replicas of the same release replace the old ones, as in a rollout (rule W16).

use super::converge::{BEFORE_RESTART, Pass, There, last_chance};
use super::record::Restarting;
use crate::policy::rollout::{Availability, Deadline, Forced, OnDeadline, Plan, Progress, Replica};

impl Pass<'_> {
    /// Begins a restart that a person requested, and records it as a transition.
    pub(super) fn tell_restart(&mut self) {
        let operator = self.facts.spec.operator.as_ref();
        let (restarts, is_now) = operator.map_or((0, false), |operator| (operator.restarts, operator.is_now));
        let before = std::mem::replace(&mut self.record.restarts, restarts);
        if self.is_first || restarts <= before {
            return;
        }
        let is_fixed = self.has_fixed_port(self.record.active);
        let how = match (is_now, is_fixed) {
            (true, _) => "all at once",
            (false, true) => "in place",
            (false, false) => "new copies first",
        };
        self.tell("restarted", how.to_owned());
        (self.record.restarting, self.record.restart_failed) = (None, None);
        if is_now {
            self.tell("force_replace", Forced::Force.as_str().to_owned());
        } else if !is_fixed {
            let progress = Progress::begin(self.record.active, &self.generations(restarts), self.facts.now);
            self.record.restarting = Some(Restarting {
                restart: restarts,
                progress,
                overdue: None,
            });
        }
    }

    /// Returns the replicas, with the ready ones that a restart replaces under a pseudo-release. Others are restarted
    /// in place.
    pub(super) fn generations(&self, restart: u64) -> Vec<Replica> {
        let active = self.record.active;
        let of = |one: &There| {
            let replica = one.replica;
            let is_before = replica.release == active && one.restarts < restart;
            match is_before && replica.availability == Availability::Ready {
                true => Replica {
                    release: BEFORE_RESTART,
                    ..replica
                },
                false => replica,
            }
        };
        self.facts.there.iter().map(of).collect()
    }

    /// Judges the time of a restart like that of a rollout. Gives up a restart without progress, and keeps the
    /// remaining old replicas.
    pub(super) fn watch_restart(&mut self) {
        let (settings, now) = (self.facts.settings, self.facts.now);
        let Some(mut restarting) = self.record.restarting.take() else {
            return;
        };
        if self.record.candidate.is_some() || self.record.halted.is_some() {
            restarting.progress.at = now;
            self.record.restarting = Some(restarting);
            return;
        }
        let generations = self.generations(restarting.restart);
        let (active, last) = (self.record.active, self.last_transition());
        restarting.progress = restarting.progress.with(active, &generations, last);
        let start_period = self.start_period(active);
        let progress = restarting.progress;
        match progress.deadline(start_period, settings.deadline, OnDeadline::Fail, now) {
            Deadline::Until(until) => {
                restarting.overdue = None;
                self.wake_at(until);
                self.record.restarting = Some(restarting);
            }
            Deadline::RollBack | Deadline::Drain => {
                let until = progress.at.after(start_period.saturating_add(settings.deadline));
                let chance = last_chance(&mut restarting.overdue, until, self.facts);
                if now < chance {
                    self.wake_at(chance);
                    self.record.restarting = Some(restarting);
                    return;
                }
                let message = "a new copy was not ready in time".to_owned();
                self.record.restart_failed = Some(message.clone());
                self.tell("restart_failed", message);
            }
        }
    }

    /// Ends a restart whose new replicas all exist.
    pub(super) fn finish_restart(&mut self, plan: &Plan) {
        if self.record.candidate.is_some() {
            return;
        }
        if plan.complete || self.record.halted.is_some() {
            self.record.restarting = None;
        }
        let restart = self.record.restarts;
        let has_it = |one: &There| one.restarts >= restart && one.replica.availability.is_done();
        let is_over = self.record.restart_failed.is_some() || self.facts.there.iter().all(has_it);
        if self.record.restarting.is_none() && is_over {
            self.record.restarted = restart;
        }
    }
}
