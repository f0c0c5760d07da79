//! Readiness of a replica and of a service (rule W9).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use watershed_core::Timestamp;

use super::health::Probed;

/// The time that a process has to live before it is running. A program that can't read its configuration ends sooner.
pub const MIN_LIFE: Duration = Duration::from_millis(750);

/// The latest results of one readiness check of one replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stretch {
    /// There are none yet.
    #[default]
    Unknown,
    /// The last one was a failure.
    Failing,
    /// The last ones were successes.
    Healthy {
        /// The time of the first of them.
        since: Timestamp,
    },
}

impl Stretch {
    /// Returns the stretch with one more result.
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

/// One readiness check of a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checked {
    /// Its latest results.
    pub stretch: Stretch,
    /// The time for which it has to succeed.
    pub min_healthy_time: Duration,
}

/// The readiness of a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// It has not lived long enough to be running; look again at `until`.
    Starting {
        /// The time at which it is running.
        until: Timestamp,
    },
    /// It runs and is not ready; look again at `until`, or with the next result.
    Unready {
        /// The time at which it is ready if nothing happens.
        until: Option<Timestamp>,
    },
    /// It is ready.
    Ready {
        /// The time from which on.
        since: Timestamp,
    },
}

/// Judges a replica whose process lives (W9).
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

/// The time at which all checks have succeeded for the longest time that one of them asks for; none if one of them has
/// no success. Without checks: the beginning of time.
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

/// Returns true if a service is ready, given the ready replicas of its active release. One of no replicas never is
/// (W12).
pub fn is_service_ready(replicas: u32, unavailable: u32, ready: u32) -> bool {
    ready >= needed(replicas, unavailable)
}

/// The time that is left to a service to become ready for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstReady {
    /// It may take until this time.
    Until(Timestamp),
    /// It took too long: the service has failed, `never-ready`, and its replicas are stopped.
    TooLate,
}

/// Judges a service that has not been ready since its first start (W9).
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

    /// W9 and W10: by the results of the checks (the first asks for 10 s, the second for 2 s), what is stored, and time.
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

    /// W9.
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

    /// W9 and W12.
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

    /// W9.
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
