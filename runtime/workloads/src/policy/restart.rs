//! Restarts of a service's processes (rules W5 and W6).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use watershed_core::{Attempts, RetryPolicy, Timestamp};

use super::exit::{Codes, Exit, ExitClass};

/// The exits after which a process is restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// All exits: a service should run.
    #[default]
    Always,
    /// All exits except success.
    OnFailure,
    /// No exit.
    Never,
}

/// The restart settings of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restart {
    /// Exits after which a process is restarted.
    pub policy: Policy,
    /// Delay after the first failure in a row.
    pub base: Duration,
    /// The longest delay.
    pub cap: Duration,
    /// Number of consecutive failures at which a replica fails; 0 for no limit.
    pub attempts: u32,
    /// Time of readiness after which a process counts as stable, so that its next failure is the first in a row; `None`
    /// for never.
    pub stable_window: Option<Duration>,
    /// Exit codes with a special meaning.
    pub codes: Codes,
}

impl Default for Restart {
    /// Returns the default settings. Delays of 10 s to 5 min keep a crash loop cheap; a stable window of twice the
    /// longest delay keeps a loop from counting as stable; after five failures a person must look.
    fn default() -> Self {
        Self {
            policy: Policy::Always,
            base: Duration::from_secs(10),
            cap: Duration::from_secs(5 * 60),
            attempts: 5,
            stable_window: Some(Duration::from_secs(10 * 60)),
            codes: Codes::default(),
        }
    }
}

/// The cause of a run's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// A stop whose purpose was stored before its signal: never a failure (W3).
    Intended,
    /// A reboot of the machine: restarted, and not counted (W13).
    Reboot,
    /// A check whose action is a restart. Counted, since a wrong check would otherwise restart for ever (W6).
    Check,
    /// An exit without a stop.
    Unexpected(Exit),
}

/// The end of one run of a replica's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Cause of the end.
    pub ending: Ending,
    /// Time for which the process had been ready; `None` if it never was.
    pub ready_for: Option<Duration>,
    /// Time of the end.
    pub at: Timestamp,
}

/// The decision after the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// None: the stop has a purpose, which decides what follows.
    Stay,
    /// Start at once, without changing the count of failures.
    Start,
    /// Start at [`Attempts::next`], with this count of consecutive failures.
    BackOff(Attempts),
    /// No restart: the replica has completed.
    Complete,
    /// No restart: the replica has failed, with this reason and count.
    Fail(Reason, Attempts),
}

/// The reason of a replica's failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The consecutive failures have reached the limit.
    CrashLoopBackOff,
    /// The exit code says that a restart would end the same way.
    NoRetryCode,
    /// The process failed, and the restart policy is `never`.
    Exited,
    /// A check stopped the process, and the restart policy is `never`.
    StoppedByCheck,
}

impl Reason {
    /// Returns the reason as a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CrashLoopBackOff => "crash_loop_back_off",
            Self::NoRetryCode => "no_retry_code",
            Self::Exited => "exited",
            Self::StoppedByCheck => "stopped_by_check",
        }
    }
}

/// Decides about a restart after the end of a run (W5, W6).
///
/// `failures` are those in a row before it. Under `always` each end that nobody intended counts as one, also success: a
/// program that ends at once, again and again, is a loop whatever its code is.
pub fn decide(restart: &Restart, failures: Attempts, ended: Ended) -> Decision {
    let class = match ended.ending {
        Ending::Intended => return Decision::Stay,
        Ending::Reboot => return Decision::Start,
        Ending::Check => ExitClass::Failure,
        Ending::Unexpected(exit) => restart.codes.classify(exit),
    };
    match (restart.policy, class) {
        (Policy::OnFailure | Policy::Never, ExitClass::Success) => Decision::Complete,
        (_, ExitClass::Permanent) => Decision::Fail(Reason::NoRetryCode, count(restart, failures, ended)),
        (Policy::Never, ExitClass::Failure) => {
            let reason = match ended.ending {
                Ending::Check => Reason::StoppedByCheck,
                _ => Reason::Exited,
            };
            Decision::Fail(reason, count(restart, failures, ended))
        }
        (Policy::Always, ExitClass::Success) | (Policy::Always | Policy::OnFailure, ExitClass::Failure) => {
            match count(restart, failures, ended) {
                counted if counted.is_used_up() => Decision::Fail(Reason::CrashLoopBackOff, counted),
                counted => Decision::BackOff(counted),
            }
        }
    }
}

/// Returns the consecutive failures including this one, which is the first if the run was stable.
fn count(restart: &Restart, before: Attempts, ended: Ended) -> Attempts {
    let stable = restart
        .stable_window
        .zip(ended.ready_for)
        .is_some_and(|(window, ready_for)| ready_for >= window);
    let before = if stable { Attempts::default() } else { before };
    before.failed(ended.at, backoff(restart))
}

fn backoff(restart: &Restart) -> RetryPolicy {
    RetryPolicy::Backoff {
        base: restart.base,
        cap: restart.cap,
        attempts: match restart.attempts {
            0 => u32::MAX,
            limited => limited,
        },
        reset_after: Duration::ZERO,
    }
}

/// Delays the next start by up to a tenth of its wait, so that replicas that crashed together don't restart together
/// (W5). `draw` is a random number: 0 adds nothing, `u32::MAX` a tenth.
#[must_use]
pub fn with_jitter(attempts: Attempts, draw: u32) -> Attempts {
    let next = attempts.last.zip(attempts.next).map(|(last, next)| {
        let wait = i128::from(next.0) - i128::from(last.0);
        let more = wait.max(0) * i128::from(draw) / (i128::from(u32::MAX) * 10);
        Timestamp(next.0.saturating_add(i64::try_from(more).unwrap_or(i64::MAX)))
    });
    Attempts { next, ..attempts }
}

#[cfg(test)]
mod tests;
