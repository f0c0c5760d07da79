//! Failing checks and their consequences (rule W10).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use watershed_core::Timestamp;

/// The result of one probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Probed {
    /// Success: the expected answer in time.
    Success,
    /// Failure: any other answer, or none in time.
    Failure,
}

/// The consequence of a failing check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Restart the replica, which counts as a failure.
    #[default]
    Restart,
    /// Stop the service and fail it.
    Stop,
    /// Record a transition, without further action.
    Alert,
}

impl Action {
    /// Returns the action as a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Restart => "restart",
            Self::Stop => "stop",
            Self::Alert => "alert",
        }
    }
}

/// The settings of a check, apart from the probe that it sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// True if the replica is ready only while the check succeeds.
    pub readiness: bool,
    /// Time between the beginnings of two probes.
    pub interval: Duration,
    /// Number of consecutive failures that trigger the action, at least one.
    pub threshold: u32,
    /// Time after the start of a process in which failures affect only readiness.
    pub start_period: Duration,
    /// Time for which the check must succeed before the replica is ready.
    pub min_healthy_time: Duration,
    /// Action at the threshold.
    pub on_failure: Action,
}

impl Default for Check {
    /// Returns the default settings, whose threshold of three tolerates a lost answer.
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

/// Number of consecutive failures of one check of one process. Not stored: a new program counts from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Failures(pub u32);

/// A probe with its result and circumstances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Start of the process.
    pub started: Timestamp,
    /// Time of the result.
    pub at: Timestamp,
    /// True if the replica has been ready since its start; before that, failures affect only readiness.
    pub was_ready: bool,
    /// Result of the probe.
    pub result: Probed,
}

/// Counts a result (W10). Returns the consecutive failures including it, and the action if due: once at the threshold,
/// after which the count restarts at zero.
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
/// Probes missed because of a slow one are dropped, and a clock that was set back delays none.
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

    /// Covers W10: count, threshold, readiness, start period and result.
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

    /// Covers W10: the action triggers once per threshold.
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
