//! Restarts of a service's processes (rules W5 and W6).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use watershed_core::{Attempts, RetryPolicy, Timestamp};

use super::exit::{Codes, Exit, ExitClass};

/// The ends after which a process is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// All: a service should run.
    #[default]
    Always,
    /// All but success.
    OnFailure,
    /// None.
    Never,
}

/// The part `restart` of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restart {
    /// The ends after which a process is started again.
    pub policy: Policy,
    /// The wait after the first failure in a row.
    pub base: Duration,
    /// The longest wait.
    pub cap: Duration,
    /// The failures in a row after which a replica has failed; 0 for no limit.
    pub attempts: u32,
    /// The time after which a ready process was stable, so that its end is the first failure; `None` for never.
    pub stable_window: Option<Duration>,
    /// The codes that have a meaning.
    pub codes: Codes,
}

impl Default for Restart {
    /// Waits of 10 s to 5 min keep a crash loop cheap. Twice the cap is the stable window, so that a loop at the cap is
    /// never stable. After five failures a person must look.
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

/// The cause of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// By a stop that was stored before its signal: never a failure (W3).
    Intended,
    /// With the machine: it starts again, uncounted (W13).
    Reboot,
    /// Stopped by a check whose action is a restart. It counts, or a wrong check would restart for ever (W6).
    Check,
    /// By itself.
    Unexpected(Exit),
}

/// The end of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The cause.
    pub ending: Ending,
    /// The time for which the process had been ready; `None` if it never was.
    pub ready_for: Option<Duration>,
    /// The time of the end.
    pub at: Timestamp,
}

/// The decision after the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Nothing: the stop had a purpose, which goes on.
    Stay,
    /// Start at once. The failures before are what they were.
    Start,
    /// Start at [`Attempts::next`], with these failures in a row.
    BackOff(Attempts),
    /// The replica is completed.
    Complete,
    /// The replica has failed.
    Fail(Reason, Attempts),
}

/// The reason why a replica has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The failures in a row have reached the limit.
    CrashLoopBackOff,
    /// The code says that another start would end the same way.
    NoRetryCode,
    /// The process failed, and its policy is `never`.
    Exited,
    /// A check stopped the process, and its policy is `never`.
    StoppedByCheck,
}

impl Reason {
    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CrashLoopBackOff => "crash_loop_back_off",
            Self::NoRetryCode => "no_retry_code",
            Self::Exited => "exited",
            Self::StoppedByCheck => "stopped_by_check",
        }
    }
}

/// Decides what follows on the end of a run (W5, W6).
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

/// The failures in a row with this one, which is the first if the run was stable.
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

/// Returns the failures with a next start that is up to a tenth of the wait later, so that replicas that crashed
/// together don't start together (W5). `draw` is any number: 0 adds nothing, `u32::MAX` a tenth.
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
