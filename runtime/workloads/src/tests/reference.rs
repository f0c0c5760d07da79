//! Reference model of replicas: it reads the machine's events and decides independently of the policies what is
//! permitted.
//!
//! Whoever restarts a program cannot know how far the one before had come, so it keeps bounds of what may be counted:
//! the least and the most failures in a row.

use std::collections::{BTreeMap, BTreeSet};

use watershed_controller::{Timestamp, Uid};

use super::stand::Stand;
use crate::backend::End;
use crate::backend::simulated::{Event, Happening};
use crate::policy::exit::{Exit, StartFailure};
use crate::replica::{ReplicaRecord, Stage};
use crate::service::ServiceRecord;

/// Restart settings of all services in a world: the defaults of the rules, in milliseconds.
const BASE_MS: i64 = 10_000;
const CAP_MS: i64 = 300_000;
const ATTEMPTS: u32 = 5;
const STABLE_MS: i64 = 600_000;
const ROOM_MS: i64 = 10_000;

/// Name of the service whose replicas complete with exit code 0 (`on_failure`).
pub(super) const ENDS_WELL: &str = "c";

/// Time within which a program notices that the clock was set back, in milliseconds: a scan, and the nudges that
/// follow.
const NOTICED_MS: i64 = 12_000;

/// The expected time of the next start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Next {
    #[default]
    Now,
    NotBefore(i64),
    /// No start before a person acts.
    Never,
}

/// The history of one replica or job.
#[derive(Debug, Default)]
struct Life {
    is_replica: bool,
    owner: Option<Uid>,
    /// True if the checks never pass.
    is_bad: bool,
    /// True if an exit with code 0 completes the replica.
    ends_well: bool,
    newest: u64,
    living: Option<u64>,
    begun: BTreeSet<u64>,
    begun_at: i64,
    ended_at: i64,
    least: u32,
    most: u32,
    failed_starts: u32,
    next: Next,
    /// Number of requests by people.
    asked: u64,
    is_asking: bool,
    /// True while a request to the service is pending.
    is_asked_for: bool,
    ends_since: u32,
}

/// A rollout as of the last check.
struct Rollout {
    release: u64,
    replicas: u32,
    ready: usize,
    disturbances: u64,
}

/// The ready replicas of a service, as the program may believe and as they really are.
pub(super) struct Ready {
    pub(super) believed: usize,
    pub(super) there: usize,
}

/// The reference model of a world.
#[derive(Default)]
pub(super) struct Reference {
    read: usize,
    lives: BTreeMap<String, Life>,
    /// Services with a request whose answer was not observed yet.
    asked_services: BTreeSet<Uid>,
    rollouts: BTreeMap<Uid, Rollout>,
    /// Number of unordered ends and failing checks.
    disturbances: u64,
}

fn doubled(base: i64, cap: i64, count: u32) -> i64 {
    let mut wait = base;
    for _ in 1..count {
        wait = (wait * 2).min(cap);
    }
    wait.min(cap)
}

impl Reference {
    /// Records a person's request for a retry.
    pub(super) fn asked(&mut self, uid: Uid) {
        let life = self.lives.entry(uid.to_string()).or_default();
        life.asked += 1;
        life.is_asking = true;
        life.forgive();
    }

    /// Records a person's request for a retry of a service, which covers all its replicas, including new ones.
    pub(super) fn asked_service(&mut self, uid: Uid) {
        self.asked_services.insert(uid);
        self.lives
            .values_mut()
            .filter(|life| life.owner == Some(uid))
            .for_each(Life::ask);
    }

    /// Records an event that may disturb a rollout.
    pub(super) fn disturbed(&mut self) {
        self.disturbances += 1;
    }

    /// Returns true if a start of a replica has ended, even if no program has noticed.
    pub(super) fn has_ended(&self, uid: Uid, counter: u64) -> bool {
        let life = self.lives.get(&uid.to_string());
        life.is_some_and(|life| life.newest == counter && life.living.is_none())
    }

    /// Reads the machine's new events, and returns an error if any was not permitted.
    pub(super) fn read(&mut self, stand: &Stand) -> Result<(), String> {
        self.asked_services.retain(|uid| !stand.has_seen(*uid));
        let records = stand.replica_records();
        for (uid, (spec, _)) in &records {
            let life = self.lives.entry(uid.to_string()).or_default();
            if !life.is_replica {
                life.owner = stand.owner(*uid);
                if life
                    .owner
                    .is_some_and(|owner| self.asked_services.contains(&owner))
                {
                    life.ask();
                }
            }
            life.is_replica = true;
            life.ends_well = spec.service == ENDS_WELL;
            life.is_bad = spec.program.environment.contains_key("HEALTH");
        }
        let news = stand.machine.world.story(self.read);
        self.read += news.len();
        for happening in news {
            let is_failing = stand.answers.is_failing(&happening.id);
            let is_quiet = matches!(
                happening.event,
                Event::Ordered
                    | Event::Begun
                    | Event::StopOrdered
                    | Event::Ended {
                        was_ordered: true,
                        ..
                    }
            );
            self.disturbances += u64::from(!is_quiet || is_failing);
            let life = self.lives.entry(happening.id.uid().to_owned()).or_default();
            let is_failing = is_failing || life.is_bad;
            life.read(&happening, is_failing).map_err(|error| {
                let is_it = |uid: &Uid| uid.to_string() == happening.id.uid();
                let record = records
                    .iter()
                    .find(|(uid, _)| is_it(uid))
                    .map(|(_, (_, record))| record);
                format!(
                    "{} at {}: {error}\n{life:?}\n{record:?}",
                    happening.id, happening.at.0
                )
            })?;
        }
        Ok(())
    }

    /// Compares the records of replicas with their histories.
    pub(super) fn compare(&mut self, stand: &Stand, is_at_rest: bool) -> Result<(), String> {
        for (uid, (_, record)) in stand.replica_records() {
            let life = self.lives.entry(uid.to_string()).or_default();
            life.is_asked_for &= !stand.has_reached(uid);
            let now = Some(stand.now()).filter(|_| stand.since_set_back() > NOTICED_MS);
            life.compare(&record, is_at_rest)
                .and_then(|()| compare_wait(&record, now))
                .map_err(|error| format!("{uid}: {error}\n{life:?}\n{record:?}"))?;
        }
        Ok(())
    }

    /// Checks that a rollout stops no replica that is needed.
    pub(super) fn watch_rollout(
        &mut self,
        uid: Uid,
        record: &ServiceRecord,
        needed: usize,
        ready: Ready,
    ) -> Result<(), String> {
        let candidate = record
            .candidate
            .as_ref()
            .filter(|candidate| !candidate.is_draining);
        let Some(candidate) = candidate else {
            self.rollouts.remove(&uid);
            return Ok(());
        };
        let now = Rollout {
            release: candidate.release,
            replicas: record.replicas,
            ready: ready.there,
            disturbances: self.disturbances,
        };
        let before = self.rollouts.remove(&uid);
        // A decision may rest on one whose end, or failing check, nobody has learned of yet.
        if ready.there == ready.believed {
            self.rollouts.insert(uid, now);
        }
        let same = before.filter(|before| {
            (before.release, before.replicas, before.disturbances)
                == (candidate.release, record.replicas, self.disturbances)
        });
        match same {
            Some(before) if ready.there < needed.min(before.ready) => Err(format!(
                "a rollout has left {} of {} ready, and {needed} are needed",
                ready.there, before.ready
            )),
            _ => Ok(()),
        }
    }
}

/// Checks that no wait is longer than permitted, whatever happened to the clock.
fn compare_wait(record: &ReplicaRecord, now: Option<i64>) -> Result<(), String> {
    let next = record.exits.next.filter(|_| record.stage == Stage::BackingOff);
    let wait = doubled(BASE_MS, CAP_MS, record.exits.count);
    match next.zip(now) {
        Some((next, now)) if next.0 > now + wait => Err(format!("it starts in {} ms", next.0 - now)),
        _ => Ok(()),
    }
}

impl Life {
    fn ask(&mut self) {
        self.is_asked_for = true;
        self.forgive();
    }

    fn forgive(&mut self) {
        // The program may not have learned of the last end yet, and counts it after its answer.
        self.ends_since = 1;
        (self.least, self.failed_starts, self.next) = (0, 0, Next::Now);
    }

    /// Returns true while a request is pending.
    fn is_open(&self) -> bool {
        self.is_asking || self.is_asked_for
    }

    fn read(&mut self, happening: &Happening, is_failing: bool) -> Result<(), String> {
        let (at, counter) = (happening.at.0, happening.id.counter());
        match happening.event {
            Event::Ordered => {
                if let Some(living) = self.living.replace(counter) {
                    return Err(format!("{living} still lives"));
                }
                if counter <= self.newest {
                    return Err(format!("{} was started before", self.newest));
                }
                self.newest = counter;
                let next = std::mem::take(&mut self.next);
                let is_early = match next {
                    Next::Now => false,
                    Next::NotBefore(time) => at < time,
                    Next::Never => true,
                };
                if is_early && self.is_replica {
                    return Err(format!("it may start {next:?}"));
                }
            }
            Event::Begun => {
                if !self.begun.insert(counter) {
                    return Err("it begins twice".to_owned());
                }
                (self.begun_at, self.failed_starts) = (at, 0);
            }
            Event::NotStarted(failure) => {
                self.living = None;
                self.next = self.after_failed_start(failure, at);
            }
            Event::StopOrdered => {}
            Event::Rebooted => self.living = None,
            Event::Ended { end, was_ordered } => {
                self.living = None;
                match (end, was_ordered) {
                    // A failing check may have ordered it, which counts.
                    (_, true) if is_failing => {
                        (self.most, self.ends_since) = (self.most + 1, self.ends_since + 1);
                    }
                    (End::Exit(exit), false) => self.after_exit(exit, at),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn after_failed_start(&mut self, failure: StartFailure, at: i64) -> Next {
        use StartFailure as Failure;
        match failure {
            Failure::InsufficientResources => Next::NotBefore(at + ROOM_MS),
            Failure::PortBusy
            | Failure::ForkFailed
            | Failure::BadOutput
            | Failure::PullInterrupted
            | Failure::EngineUnreachable => {
                self.failed_starts += 1;
                match self.failed_starts {
                    6.. => Next::Never,
                    count => Next::NotBefore(at + doubled(1_000, 60_000, count)),
                }
            }
            _ if self.is_open() => Next::Now,
            _ => Next::Never,
        }
    }

    fn after_exit(&mut self, exit: Exit, at: i64) {
        self.ended_at = at;
        self.ends_since += 1;
        self.most += 1;
        // It may have been ready for long enough: nobody but the program knows since when it was.
        self.least = match at - self.begun_at >= STABLE_MS {
            true => 1,
            false => self.least + 1,
        };
        if self.is_open() {
            self.least = 0;
        }
        if self.ends_well && exit == Exit::Code(0) {
            self.least = 0;
            self.next = if self.is_open() { Next::Now } else { Next::Never };
            return;
        }
        self.next = match (exit, self.least) {
            (_, 0) => Next::Now,
            (Exit::Code(126 | 127), _) | (_, ATTEMPTS..) => Next::Never,
            (_, count) => Next::NotBefore(at + doubled(BASE_MS, CAP_MS, count)),
        };
    }

    fn compare(&mut self, record: &ReplicaRecord, is_at_rest: bool) -> Result<(), String> {
        self.is_asking &= record.refreshes < self.asked;
        if !self.is_open() && self.ends_since < self.most {
            // What ended before the answer was counted before it, or after.
            self.most = self.ends_since;
        }
        let count = record.exits.count;
        if count > self.most {
            return Err(format!("{count} failures are counted of {}", self.most));
        }
        if is_at_rest && count < self.least {
            return Err(format!("{count} failures are counted of {}", self.least));
        }
        if record.stage == Stage::BackingOff {
            let (last, next) = (time(record.exits.last), time(record.exits.next));
            let wait = doubled(BASE_MS, CAP_MS, count);
            if next - last != wait {
                return Err(format!("it waits for {} ms, not {wait}", next - last));
            }
        }
        Ok(())
    }
}

fn time(time: Option<Timestamp>) -> i64 {
    time.map_or(0, |time| time.0)
}
