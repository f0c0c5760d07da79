//! Rollouts and scaling: which replicas to start and stop (rules W11 and W12).
//!
//! One function, [`converge`], leads from whatever is there to `replicas` copies of one release, the target: in a
//! rollout the target is the candidate, at rest, after a failed rollout and while scaling it is the active release. So a
//! rollback keeps the service up in the same way as a rollout does.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use watershed_core::Timestamp;

/// The end of a rollout that makes no progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDeadline {
    /// The candidate is removed, the release before it completed again.
    #[default]
    Fail,
    /// The release before it is drained.
    Force,
}

/// The bounds of a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// The replicas that are wanted.
    pub replicas: u32,
    /// Copies above that number, at most, while one release replaces another.
    pub surge: u32,
    /// Copies below that number, at most, that need not be ready.
    pub unavailable: u32,
}

impl Bounds {
    /// The copies that have to stay ready.
    pub fn needed(&self) -> u32 {
        self.replicas.saturating_sub(self.unavailable)
    }

    /// The copies that may be there at once. With neither surge nor unavailable nothing could ever move, so one more
    /// copy is allowed: that never drops below the count.
    pub fn most(&self) -> u32 {
        let surge = match (self.surge, self.unavailable) {
            (0, 0) => 1,
            (surge, _) => surge,
        };
        self.replicas.saturating_add(surge)
    }
}

/// The manner in which a release replaces another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Manner {
    /// Copy by copy.
    Rolling,
    /// At once, which is a transition `force_replace` with this reason.
    Replace(Forced),
}

/// The reason for which a release replaces another at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Forced {
    /// Somebody wants it: `strategy: replace`, `restart --now`.
    Force,
    /// Without checks nobody could tell whether a new copy is good.
    NoHealthChecks,
    /// Two copies can't have one port.
    FixedPort,
}

impl Forced {
    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Force => "force",
            Self::NoHealthChecks => "no_health_checks",
            Self::FixedPort => "fixed_port",
        }
    }
}

/// Chooses the manner (W11): the first reason that applies.
pub fn manner(force: bool, has_checks: bool, has_fixed_port: bool) -> Manner {
    match (force, has_checks, has_fixed_port) {
        (true, _, _) => Manner::Replace(Forced::Force),
        (_, false, _) => Manner::Replace(Forced::NoHealthChecks),
        (_, _, true) => Manner::Replace(Forced::FixedPort),
        (false, true, false) => Manner::Rolling,
    }
}

/// One replica that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Replica {
    /// Rises with each replica that a service makes: the newest has the highest.
    pub number: u64,
    /// Its release.
    pub release: u64,
    /// The availability.
    pub availability: Availability,
}

/// The availability of a replica, as far as a rollout needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Availability {
    /// It serves.
    Ready,
    /// It does not: it starts, waits for its next start, fails its checks, or has failed.
    Unready,
    /// It has done all that it was to do, and serves no more: it has come as far as one that is ready, and nobody waits
    /// for it.
    Completed,
    /// It is being stopped.
    Stopping,
}

impl Availability {
    /// True for what has come as far as it is to come.
    pub fn is_done(self) -> bool {
        matches!(self, Self::Ready | Self::Completed)
    }
}

/// The replicas to start and stop now. Both are done in one go (W12).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The number of copies of the target to start.
    pub start: u32,
    /// The numbers of the replicas to stop.
    pub stop: Vec<u64>,
    /// True if nothing is left to do but to wait for what is being stopped: the target has all replicas, ready or
    /// completed, and there are no others.
    pub complete: bool,
}

/// Plans one step to `replicas` copies of the release `target` (W11, W12).
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

/// Plans one step of a replacement at once: all others are stopped, and the target starts when they are gone, as two
/// can't share a port, a file or a lock.
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

/// Numbers of replicas by what they are.
struct Counts {
    /// Of the target, not being stopped.
    target: u32,
    /// Of these, ready and completed ones.
    done_of_target: u32,
    /// Of other releases, not being stopped.
    others: u32,
    /// Of any release.
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

/// Copies of the target above the number that is wanted, newest first (W12).
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

/// Copies of other releases that may go now. Those that stay, ready or not, and those of the target that are done are
/// together no fewer than needed: an unready copy may be back in a moment, a new one may never be ready. What is of no use
/// goes whatever else is there.
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

/// The furthest that a rollout has come, and when. Only what goes beyond it is progress, so a candidate that becomes
/// ready and crashes, again and again, runs into its deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The most copies of the candidate that were ready at once, completed ones among them.
    pub ready: u32,
    /// The fewest copies of other releases that were left.
    pub others: u32,
    /// The time of the last progress.
    pub at: Timestamp,
}

impl Progress {
    /// Begins a rollout.
    pub fn begin(target: u64, replicas: &[Replica], at: Timestamp) -> Self {
        let there = Counts::of(target, replicas);
        Self {
            ready: there.done_of_target,
            others: there.others,
            at,
        }
    }

    /// Returns the progress with what is there now. `at` is the time of the last transition of these replicas, as a
    /// reconciler may have waited before it looks (W11).
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

    /// Judges the time since the last progress (W11).
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

/// The judgement of a rollout's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadline {
    /// It may go on without progress until this time.
    Until(Timestamp),
    /// It has failed, `rollout-failed`: [`converge`] to the release that is active.
    RollBack,
    /// [`replace`] the others at once.
    Drain,
}

#[cfg(test)]
mod tests;
