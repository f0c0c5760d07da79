//! Readiness of a replica and of a service (rule W9).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use watershed_core::Timestamp;

use super::health::Probed;

/// Time that a process must live before it counts as running. A program that can't read its configuration ends sooner.
pub const MIN_LIFE: Duration = Duration::from_millis(750);

/// The latest consecutive results of a readiness check of one replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stretch {
    /// No result yet.
    #[default]
    Unknown,
    /// The last result was a failure.
    Failing,
    /// The last results were successes.
    Healthy {
        /// Time of the first success in the row.
        since: Timestamp,
    },
}

impl Stretch {
    /// Returns the stretch after another result.
    #[must_use]
    pub fn with(self, result: Probed, at: Timestamp) -> Self {
        match (result, self) {
            (Probed::Failure, _) => Self::Failing,
            // A clock that was set back lengthens nothing.
            (Probed::Success, Self::Healthy { since }) => Self::Healthy { since: since.min(at) },
            (Probed::Success, _) => Self::Healthy { since: at },
        }
    }
}

/// The state of one readiness check of a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checked {
    /// Latest consecutive results.
    pub stretch: Stretch,
    /// Time for which the check must succeed.
    pub min_healthy_time: Duration,
}

/// The readiness of a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// The process has not lived long enough to count as running.
    Starting {
        /// Time at which the process counts as running.
        until: Timestamp,
    },
    /// The process runs and is not ready; rechecked at `until`, or at the next result.
    Unready {
        /// Time at which the replica becomes ready if no result changes; none if it depends on results.
        until: Option<Timestamp>,
    },
    /// The replica is ready.
    Ready {
        /// Time since which the replica is ready.
        since: Timestamp,
    },
}

/// Determines the readiness of a replica whose process is alive (W9).
///
/// `stored` is the time since which this process has been ready as far as it is stored. It holds until a result
/// contradicts it, so that a program that starts again does not make what it adopts unready.
pub fn replica_readiness(
    started: Timestamp,
    checks: &[Checked],
    stored: Option<Timestamp>,
    now: Timestamp,
) -> Readiness {
    let running = started.after(MIN_LIFE);
    if now < running {
        return Readiness::Starting { until: running };
    }
    if checks.iter().any(|check| check.stretch == Stretch::Failing) {
        return Readiness::Unready { until: None };
    }
    if let Some(since) = stored {
        return Readiness::Ready { since };
    }
    match all_healthy(checks) {
        None => Readiness::Unready { until: None },
        Some(at) if at.max(running) <= now => Readiness::Ready {
            since: at.max(running),
        },
        Some(at) => Readiness::Unready { until: Some(at) },
    }
}

/// Returns the time at which all checks have succeeded for the longest required time; none if a check has no success.
/// The beginning of time without checks.
fn all_healthy(checks: &[Checked]) -> Option<Timestamp> {
    let longest = checks.iter().map(|check| check.min_healthy_time).max();
    let mut since = Timestamp(i64::MIN);
    for check in checks {
        let Stretch::Healthy { since: first } = check.stretch else {
            return None;
        };
        since = since.max(first);
    }
    Some(since.after(longest.unwrap_or_default()))
}

/// Returns the number of replicas that have to be ready: `replicas - unavailable`, at least one.
pub fn needed(replicas: u32, unavailable: u32) -> u32 {
    replicas.saturating_sub(unavailable).max(1)
}

/// Returns true if enough replicas are ready, of the active release and of the one that takes its place. A service of no
/// replicas never is (W12).
pub fn is_service_ready(replicas: u32, unavailable: u32, ready: u32) -> bool {
    ready >= needed(replicas, unavailable)
}

/// The verdict about the time until a service is first ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstReady {
    /// The service may take until this time.
    Until(Timestamp),
    /// The service exceeded its time: it fails with `never-ready`, and its replicas are stopped.
    TooLate,
}

/// Judges the time of a service that was not ready since its first start (W9).
pub fn first_ready(
    first_start: Timestamp,
    start_period: Duration,
    deadline: Duration,
    now: Timestamp,
) -> FirstReady {
    let until = first_start.after(start_period.saturating_add(deadline));
    if now < until {
        FirstReady::Until(until)
    } else {
        FirstReady::TooLate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNKNOWN: Stretch = Stretch::Unknown;
    const FAILING: Stretch = Stretch::Failing;

    fn healthy(since: i64) -> Stretch {
        Stretch::Healthy {
            since: Timestamp(since),
        }
    }

    fn starting() -> Readiness {
        Readiness::Starting {
            until: Timestamp(750),
        }
    }

    fn unready(until: Option<i64>) -> Readiness {
        Readiness::Unready {
            until: until.map(Timestamp),
        }
    }

    fn ready(since: i64) -> Readiness {
        Readiness::Ready {
            since: Timestamp(since),
        }
    }

    /// Covers W9 and W10: readiness from the results of two checks (10 s and 2 s required), the stored state and the
    /// time.
    #[test]
    fn a_replica_is_ready_by_its_age_its_checks_and_what_is_stored() {
        for (stretches, stored, now, expected) in [
            (&[][..], None, 0, starting()),
            (&[], None, 749, starting()),
            (&[], None, 750, ready(750)),
            (&[], None, 9_000, ready(750)),
            (&[healthy(-20_000)], None, 749, starting()),
            (&[healthy(-20_000)], None, 750, ready(750)),
            (&[UNKNOWN], None, 750, unready(None)),
            (&[FAILING], None, 750, unready(None)),
            (&[healthy(100)], None, 750, unready(Some(10_100))),
            (&[healthy(100)], None, 10_099, unready(Some(10_100))),
            (&[healthy(100)], None, 10_100, ready(10_100)),
            (&[healthy(100)], None, 50_000, ready(10_100)),
            (
                &[healthy(100), healthy(5_000)],
                None,
                14_999,
                unready(Some(15_000)),
            ),
            (&[healthy(100), healthy(5_000)], None, 15_000, ready(15_000)),
            (&[healthy(100), UNKNOWN], None, 50_000, unready(None)),
            (&[healthy(100), FAILING], None, 50_000, unready(None)),
            (&[UNKNOWN, UNKNOWN], Some(800), 900, ready(800)),
            (&[healthy(850), UNKNOWN], Some(800), 900, ready(800)),
            (&[healthy(850), FAILING], Some(800), 900, unready(None)),
            (&[FAILING, UNKNOWN], Some(800), 900, unready(None)),
        ] {
            let checks: Vec<Checked> = stretches
                .iter()
                .zip([10, 2].map(Duration::from_secs))
                .map(|(stretch, min_healthy_time)| Checked {
                    stretch: *stretch,
                    min_healthy_time,
                })
                .collect();
            let stored = stored.map(Timestamp);
            let found = replica_readiness(Timestamp(0), &checks, stored, Timestamp(now));
            assert_eq!(found, expected, "{stretches:?} {stored:?} {now}");
        }
    }

    /// Covers W9: the begin of a stretch of successes.
    #[test]
    fn a_stretch_begins_with_the_first_success_after_the_last_failure() {
        for (before, result, after) in [
            (UNKNOWN, Probed::Success, healthy(9)),
            (FAILING, Probed::Success, healthy(9)),
            (healthy(3), Probed::Success, healthy(3)),
            (healthy(12), Probed::Success, healthy(9)),
            (UNKNOWN, Probed::Failure, FAILING),
            (FAILING, Probed::Failure, FAILING),
            (healthy(3), Probed::Failure, FAILING),
        ] {
            assert_eq!(before.with(result, Timestamp(9)), after, "{before:?} {result:?}");
        }
    }

    /// Covers W9 and W12: readiness of a service.
    #[test]
    fn a_service_is_ready_by_the_ready_replicas_of_its_active_release() {
        for (replicas, unavailable, least) in [
            (3, 0, 3),
            (3, 1, 2),
            (3, 2, 1),
            (3, 3, 1),
            (1, 0, 1),
            (1, 9, 1),
            (0, 0, 1),
        ] {
            for ready in 0..=4 {
                let found = is_service_ready(replicas, unavailable, ready);
                assert_eq!(found, ready >= least, "{replicas} {unavailable} {ready}");
            }
        }
    }

    /// Covers W9: start period and deadline of a service.
    #[test]
    fn a_service_has_its_start_period_and_its_deadline_to_become_ready() {
        let [period, deadline] = [30, 600].map(Duration::from_secs);
        let until = Timestamp(630_005);
        for (now, expected) in [
            (0, FirstReady::Until(until)),
            (630_004, FirstReady::Until(until)),
            (630_005, FirstReady::TooLate),
        ] {
            let found = first_ready(Timestamp(5), period, deadline, Timestamp(now));
            assert_eq!(found, expected, "{now}");
        }
    }
}
