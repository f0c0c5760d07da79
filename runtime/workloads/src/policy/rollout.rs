//! Rollouts and scaling: the replicas to start and stop (rules W11 and W12).
//!
//! One function, [`converge`], leads from whatever is there to `replicas` copies of one release, the target: in a
//! rollout the target is the candidate, at rest, after a failed rollout and while scaling it is the active release. So a
//! rollback keeps the service up in the same way as a rollout does.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use watershed_core::Timestamp;

/// The consequence of a rollout without progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDeadline {
    /// Roll back: remove the candidate, and complete the previous release again.
    #[default]
    Fail,
    /// Roll forward: drain the previous release.
    Force,
}

/// The limits of a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Number of wanted replicas.
    pub replicas: u32,
    /// The most replicas above the wanted number during a rollout.
    pub surge: u32,
    /// Number of wanted replicas that need not be ready.
    pub unavailable: u32,
}

impl Bounds {
    /// Returns the number of replicas that must stay ready.
    pub fn needed(&self) -> u32 {
        self.replicas.saturating_sub(self.unavailable)
    }

    /// Returns the most replicas that may exist at once. If neither surge nor unavailability is allowed, one more is,
    /// since no rollout could proceed otherwise.
    pub fn most(&self) -> u32 {
        let surge = match (self.surge, self.unavailable) {
            (0, 0) => 1,
            (surge, _) => surge,
        };
        self.replicas.saturating_add(surge)
    }
}

/// The way in which a release replaces another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Manner {
    /// Replica by replica.
    Rolling,
    /// All at once, recorded as a transition `force_replace` with this reason.
    Replace(Forced),
}

/// The reason for replacing a release all at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Forced {
    /// A person requested it: `strategy: replace` or `restart --now`.
    Force,
    /// The service has no checks by which a new replica could be judged.
    NoHealthChecks,
    /// The port is fixed, and two replicas can't share it.
    FixedPort,
}

impl Forced {
    /// Returns the reason as a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Force => "force",
            Self::NoHealthChecks => "no_health_checks",
            Self::FixedPort => "fixed_port",
        }
    }
}

/// Chooses the manner of a rollout (W11); the first reason that applies counts.
pub fn manner(force: bool, has_checks: bool, has_fixed_port: bool) -> Manner {
    match (force, has_checks, has_fixed_port) {
        (true, _, _) => Manner::Replace(Forced::Force),
        (_, false, _) => Manner::Replace(Forced::NoHealthChecks),
        (_, _, true) => Manner::Replace(Forced::FixedPort),
        (false, true, false) => Manner::Rolling,
    }
}

/// An existing replica, as rollouts see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Replica {
    /// Number of the replica; a newer replica of the service has a higher one.
    pub number: u64,
    /// Number of the release that the replica runs.
    pub release: u64,
    /// Availability of the replica.
    pub availability: Availability,
}

/// The availability of a replica for a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Availability {
    /// The replica serves.
    Ready,
    /// The replica does not serve: it is starting, backing off, failing its checks, or has failed.
    Unready,
    /// The replica's program has ended successfully; counts like a ready one, since no further progress is expected.
    Completed,
    /// The replica is being stopped.
    Stopping,
}

impl Availability {
    /// Returns true if no further progress is expected of the replica: ready or completed.
    pub fn is_done(self) -> bool {
        matches!(self, Self::Ready | Self::Completed)
    }
}

/// One step of a rollout: replicas to start and to stop, both at once (W12).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Number of replicas of the target to start.
    pub start: u32,
    /// Numbers of the replicas to stop.
    pub stop: Vec<u64>,
    /// True if only the stops in progress remain: the target has all its replicas, ready or completed, and no others
    /// exist.
    pub complete: bool,
}

/// Plans one step towards `replicas` replicas of the release `target` (W11, W12).
///
/// It stops nothing that would leave fewer ready than [`Bounds::needed`], and starts nothing that would make more than
/// [`Bounds::most`]; what is being stopped is still there. Of other releases, copies that are of no use go at once: those
/// that are completed, and unready ones that are neither of `target` nor of `serving` (a candidate that was discarded or
/// has failed). Then go unready copies, then those of a release that is neither, then the newest. Surplus copies of the
/// target go newest first.
pub fn converge(bounds: Bounds, target: u64, serving: u64, replicas: &[Replica]) -> Plan {
    let there = Counts::of(target, replicas);
    let surplus = there.target.saturating_sub(bounds.replicas);
    let mut stop = surplus_of_target(target, replicas, surplus);
    let done_of_target = stop.iter().fold(there.done_of_target, |done, gone| {
        done - u32::from(gone.availability.is_done())
    });
    stop.extend(others_to_stop(bounds, target, serving, replicas, done_of_target));

    let missing = bounds.replicas.saturating_sub(there.target);
    let room = match there.others + there.stopping {
        // Where there is but one release and nothing leaves, the count itself is the bound.
        0 => missing,
        _ => bounds.most().saturating_sub(there.all()),
    };
    Plan {
        start: missing.min(room),
        complete: there.others == 0
            && there.target == bounds.replicas
            && there.done_of_target == bounds.replicas,
        stop: stop.iter().map(|replica| replica.number).collect(),
    }
}

/// Plans one step of a replacement all at once: stops all others, and starts the target once they are gone, since they
/// may share a port, file or lock.
pub fn replace(replicas: u32, target: u64, there: &[Replica]) -> Plan {
    let counts = Counts::of(target, there);
    let mut stop = surplus_of_target(target, there, counts.target.saturating_sub(replicas));
    stop.extend(
        there
            .iter()
            .filter(|one| one.release != target && one.availability != Availability::Stopping),
    );
    Plan {
        start: match counts.others + counts.stopping {
            0 => replicas.saturating_sub(counts.target),
            _ => 0,
        },
        complete: counts.others == 0 && counts.target == replicas && counts.done_of_target == replicas,
        stop: stop.iter().map(|replica| replica.number).collect(),
    }
}

/// Counts of replicas by release and state.
struct Counts {
    /// Replicas of the target that are not being stopped.
    target: u32,
    /// Replicas of the target that are ready or completed.
    done_of_target: u32,
    /// Replicas of other releases that are not being stopped.
    others: u32,
    /// Replicas of any release that are being stopped.
    stopping: u32,
}

impl Counts {
    fn of(target: u64, replicas: &[Replica]) -> Self {
        let count = |is: &dyn Fn(&Replica) -> bool| {
            let found = replicas.iter().filter(|replica| is(replica)).count();
            u32::try_from(found).unwrap_or(u32::MAX)
        };
        let stays = |replica: &Replica| replica.availability != Availability::Stopping;
        Self {
            target: count(&|one| one.release == target && stays(one)),
            done_of_target: count(&|one| one.release == target && one.availability.is_done()),
            others: count(&|one| one.release != target && stays(one)),
            stopping: count(&|one| !stays(one)),
        }
    }

    fn all(&self) -> u32 {
        self.target
            .saturating_add(self.others)
            .saturating_add(self.stopping)
    }
}

/// Returns the surplus replicas of the target, newest first (W12).
fn surplus_of_target(target: u64, replicas: &[Replica], surplus: u32) -> Vec<Replica> {
    let mut found: Vec<Replica> = replicas
        .iter()
        .filter(|one| one.release == target && one.availability != Availability::Stopping)
        .copied()
        .collect();
    found.sort_unstable_by_key(|one| std::cmp::Reverse(one.number));
    found.truncate(usize::try_from(surplus).unwrap_or(usize::MAX));
    found
}

/// Returns the replicas of other releases that may be stopped now.
///
/// The remaining ones, ready or not, and the done ones of the target stay at least as many as needed, since an unready
/// replica may recover and a new one may never be ready. Completed ones, and unready ones that don't belong to the
/// serving release, are always stopped.
fn others_to_stop(
    bounds: Bounds,
    target: u64,
    serving: u64,
    replicas: &[Replica],
    done_of_target: u32,
) -> Vec<Replica> {
    let is_of_no_use = |one: &Replica| match one.availability {
        Availability::Completed => true,
        Availability::Unready => one.release != serving,
        Availability::Ready | Availability::Stopping => false,
    };
    let others = replicas
        .iter()
        .filter(|one| one.release != target && one.availability != Availability::Stopping)
        .copied();
    let (useless, mut others): (Vec<Replica>, Vec<Replica>) = others.partition(is_of_no_use);
    others.sort_unstable_by_key(|one| {
        let is_ready = one.availability == Availability::Ready;
        (is_ready, one.release == serving, std::cmp::Reverse(one.number))
    });
    let count = u32::try_from(others.len()).unwrap_or(u32::MAX);
    let budget = count
        .saturating_add(done_of_target)
        .saturating_sub(bounds.needed());
    others.truncate(usize::try_from(budget).unwrap_or(usize::MAX));
    useless.into_iter().chain(others).collect()
}

/// The best state that a rollout has reached, and its time. Only a better one counts as progress, so a candidate that
/// repeatedly becomes ready and crashes reaches its deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The most replicas of the candidate that were done at once.
    pub ready: u32,
    /// The fewest remaining replicas of other releases.
    pub others: u32,
    /// Time of the last progress.
    pub at: Timestamp,
}

impl Progress {
    /// Returns the progress at the beginning of a rollout.
    pub fn begin(target: u64, replicas: &[Replica], at: Timestamp) -> Self {
        let there = Counts::of(target, replicas);
        Self {
            ready: there.done_of_target,
            others: there.others,
            at,
        }
    }

    /// Returns the progress with the current replicas. `at` is the time of their last transition, since the reconciler
    /// may look later (W11).
    #[must_use]
    pub fn with(self, target: u64, replicas: &[Replica], at: Timestamp) -> Self {
        let there = Counts::of(target, replicas);
        let further = there.done_of_target > self.ready || there.others < self.others;
        Self {
            ready: self.ready.max(there.done_of_target),
            others: self.others.min(there.others),
            at: if further { at.max(self.at) } else { self.at },
        }
    }

    /// Judges the time since the last progress against the deadline (W11).
    pub fn deadline(
        &self,
        start_period: Duration,
        deadline: Duration,
        action: OnDeadline,
        now: Timestamp,
    ) -> Deadline {
        let until = self.at.after(start_period.saturating_add(deadline));
        match action {
            _ if now < until => Deadline::Until(until),
            OnDeadline::Fail => Deadline::RollBack,
            OnDeadline::Force => Deadline::Drain,
        }
    }
}

/// The verdict about a rollout's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadline {
    /// The rollout may continue without progress until this time.
    Until(Timestamp),
    /// The rollout has failed (`rollout-failed`): [`converge`] to the active release.
    RollBack,
    /// Force the rollout: [`replace`] the others all at once.
    Drain,
}

#[cfg(test)]
mod tests;
