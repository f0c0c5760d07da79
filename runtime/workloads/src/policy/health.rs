//! Checks that fail, and what they lead to (rule W10).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use watershed_core::Timestamp;

/// The result of one probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Probed {
    /// The expected answer, in time.
    Success,
    /// Anything else.
    Failure,
}

/// The consequence of a check that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// This replica is restarted, which counts as a failure of it.
    #[default]
    Restart,
    /// The service is stopped, and has failed.
    Stop,
    /// A transition says it.
    Alert,
}

impl Action {
    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Restart => "restart",
            Self::Stop => "stop",
            Self::Alert => "alert",
        }
    }
}

/// The settings of a check that don't depend on what it asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// True if the replica is ready only while it succeeds.
    pub readiness: bool,
    /// Time between the beginnings of two probes.
    pub interval: Duration,
    /// Failures in a row after which it acts, at least one.
    pub threshold: u32,
    /// Time from the start of a process in which failures count for nothing but readiness.
    pub start_period: Duration,
    /// Time for which it has to succeed until the replica is ready.
    pub min_healthy_time: Duration,
    /// The consequence.
    pub on_failure: Action,
}

impl Default for Check {
    /// A threshold of three tolerates an answer that was lost.
    fn default() -> Self {
        Self {
            readiness: false,
            interval: Duration::from_secs(10),
            threshold: 3,
            start_period: Duration::ZERO,
            min_healthy_time: Duration::from_secs(10),
            on_failure: Action::Restart,
        }
    }
}

/// Failures of one check of one process in a row. The program that counts them starts again at zero, so it is not
/// stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Failures(pub u32);

/// The circumstances of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// The start of the process.
    pub started: Timestamp,
    /// The time of the result.
    pub at: Timestamp,
    /// True if the replica has been ready since its start: before, failures count towards readiness only.
    pub was_ready: bool,
    /// The result.
    pub result: Probed,
}

/// Counts a result (W10). Returns the failures in a row with it, and the consequence if it is due: once at the
/// threshold, after which the count starts again at zero.
#[must_use]
pub fn count(check: &Check, failures: Failures, probe: Probe) -> (Failures, Option<Action>) {
    let counts = probe.was_ready && probe.at >= probe.started.after(check.start_period);
    match probe.result {
        Probed::Success => (Failures(0), None),
        Probed::Failure if !counts => (Failures(0), None),
        Probed::Failure if failures.0.saturating_add(1) < check.threshold => (Failures(failures.0 + 1), None),
        Probed::Failure => (Failures(0), Some(check.on_failure)),
    }
}

/// Returns the time of the next probe: at once for a new process, then an interval after the beginning of the last one.
/// Probes that a slow one has delayed are not made up for. A clock that was set back delays none.
pub fn next_probe(check: &Check, last_began: Option<Timestamp>, now: Timestamp) -> Timestamp {
    let latest = now.after(check.interval);
    last_began.map_or(now, |began| began.after(check.interval).clamp(now, latest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUCCESS: Probed = Probed::Success;
    const FAILURE: Probed = Probed::Failure;

    fn probe(result: Probed, was_ready: bool, at: i64) -> Probe {
        Probe {
            started: Timestamp(0),
            at: Timestamp(at),
            was_ready,
            result,
        }
    }

    /// W10: by the count before, the threshold, readiness, the start period and the result.
    #[test]
    fn a_check_acts_at_its_threshold_and_only_after_readiness() {
        let act = Some(Action::Alert);
        for (before, threshold, was_ready, at, result, after, action) in [
            (0, 3, true, 5_000, SUCCESS, 0, None),
            (2, 3, true, 5_000, SUCCESS, 0, None),
            (0, 3, true, 5_000, FAILURE, 1, None),
            (1, 3, true, 5_000, FAILURE, 2, None),
            (2, 3, true, 5_000, FAILURE, 0, act),
            (7, 3, true, 5_000, FAILURE, 0, act),
            (0, 1, true, 5_000, FAILURE, 0, act),
            (0, 0, true, 5_000, FAILURE, 0, act),
            (u32::MAX, 3, true, 5_000, FAILURE, 0, act),
            (2, 3, false, 5_000, FAILURE, 0, None),
            (2, 3, true, 4_999, FAILURE, 0, None),
            (2, 3, false, 4_999, SUCCESS, 0, None),
        ] {
            let check = Check {
                threshold,
                start_period: Duration::from_secs(5),
                on_failure: Action::Alert,
                ..Check::default()
            };
            let found = count(&check, Failures(before), probe(result, was_ready, at));
            assert_eq!(
                found,
                (Failures(after), action),
                "{before} {threshold} {was_ready} {at} {result:?}"
            );
        }
    }

    /// W10.
    #[test]
    fn a_check_acts_once_for_every_threshold_of_failures_in_a_row_in_all_sequences_of_eight() {
        let check = Check::default();
        for bits in 0_u32..1 << 8 {
            let (mut failures, mut acted, mut in_a_row, mut expected) = (Failures::default(), 0, 0, 0);
            for at in 0..8 {
                let failed = bits >> at & 1 == 1;
                let result = if failed { FAILURE } else { SUCCESS };
                in_a_row = if failed { in_a_row + 1 } else { 0 };
                expected += u32::from(in_a_row > 0 && in_a_row % 3 == 0);
                let (next, action) = count(&check, failures, probe(result, true, at));
                assert!(action.is_none_or(|action| action == Action::Restart));
                failures = next;
                acted += u32::from(action.is_some());
            }
            assert_eq!(acted, expected, "{bits:08b}");
        }
    }

    #[test]
    fn probes_begin_an_interval_apart_and_are_not_made_up_for() {
        let check = Check::default();
        for (last, now, next) in [
            (None, 7, 7),
            (Some(0), 7, 10_000),
            (Some(0), 10_000, 10_000),
            (Some(0), 45_000, 45_000),
            (Some(3_600_000), 7, 10_007),
        ] {
            let found = next_probe(&check, last.map(Timestamp), Timestamp(now));
            assert_eq!(found, Timestamp(next), "{last:?} {now}");
        }
    }
}
