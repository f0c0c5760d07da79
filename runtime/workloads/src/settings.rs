//! Conversion of specs' settings to the types of the policies.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use watershed_controller::message::to_json;
use watershed_core::RetryPolicy;
use watershed_proto as proto;
use watershed_schedule::{Concurrency, Cron, Schedule, Zone, jiff::SignedDuration};

use crate::policy::exit::Codes;
use crate::policy::health::{Action, Check};
use crate::policy::restart::{Policy, Restart};
use crate::policy::rollout::{Bounds, OnDeadline};

/// Settings for stopping a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopping {
    /// Name of the first signal, without `SIG`.
    pub signal: String,
    /// Milliseconds until SIGKILL.
    pub grace_ms: u64,
}

impl Default for Stopping {
    /// Returns Docker's defaults: `TERM`, then the kill.
    fn default() -> Self {
        Self {
            signal: "TERM".to_owned(),
            grace_ms: 10_000,
        }
    }
}

impl From<Option<&proto::Stopping>> for Stopping {
    fn from(said: Option<&proto::Stopping>) -> Self {
        said.map_or_else(Self::default, |said| Self {
            signal: said.signal.clone(),
            grace_ms: said.grace_ms,
        })
    }
}

/// Limits of a program's kept output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logs {
    /// Size in bytes at which a new file begins.
    pub max_size: u64,
    /// Number of older files that are kept.
    pub keep: u32,
}

impl From<Option<&proto::OutputLimits>> for Logs {
    fn from(said: Option<&proto::OutputLimits>) -> Self {
        said.map_or(
            Self {
                max_size: 10_000_000,
                keep: 5,
            },
            |said| Self {
                max_size: said.max_size_bytes,
                keep: said.keep,
            },
        )
    }
}

/// The probe of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// A GET request to a port of the replica.
    Http {
        /// Name of the port to which the request goes.
        port: String,
        /// Path of the URL.
        path: String,
        /// Range of successful statuses, both ends included.
        status: (u16, u16),
    },
    /// A connection to a port of the replica.
    Tcp {
        /// Name of the port to connect to.
        port: String,
    },
    /// A command that must exit with 0.
    Command(Vec<String>),
}

/// A check of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckSpec {
    /// Probe that the check sends.
    pub question: Question,
    /// Time limit of a probe.
    pub timeout: Duration,
    /// Thresholds and consequences of the results.
    pub check: Check,
}

impl CheckSpec {
    /// Returns the check's name for people: `http /health`.
    pub fn name(&self) -> String {
        match &self.question {
            Question::Http { path, .. } => format!("http {path}"),
            Question::Tcp { port } => format!("tcp {port}"),
            Question::Command(command) => format!("command {}", command.join(" ")),
        }
    }

    /// Returns a digest of the probe, under which results are stored.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new_derive_key("watershed 2026 question of a check");
        // Texts and numbers have an encoding always.
        hasher.update(&to_json(&self.question).unwrap_or_default());
        hasher.finalize().to_hex().as_str()[..16].to_owned()
    }
}

/// Settings about a program that are not part of its release: replicas of a release are checked, stopped and restarted
/// by the settings last declared with its program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manners {
    /// Checks of a replica.
    pub checks: Vec<CheckSpec>,
    /// Signal and grace period of stops.
    pub stop: Stopping,
    /// Exit codes with a special meaning.
    pub codes: Codes,
}

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn status(said: u32) -> u16 {
    u16::try_from(said).unwrap_or(u16::MAX)
}

fn codes(said: &[u32]) -> Vec<i32> {
    said.iter().filter_map(|code| i32::try_from(*code).ok()).collect()
}

/// Reads a check from a spec; none if the check has no probe.
pub(crate) fn check(said: &proto::HealthCheck) -> Option<CheckSpec> {
    let question = match (&said.http, &said.tcp) {
        (Some(http), _) => Question::Http {
            port: http.port.clone(),
            path: http.path.clone(),
            status: (status(http.status_from), status(http.status_to)),
        },
        (None, Some(tcp)) => Question::Tcp {
            port: tcp.port.clone(),
        },
        (None, None) if said.command.is_empty() => return None,
        (None, None) => Question::Command(said.command.clone()),
    };
    Some(CheckSpec {
        question,
        timeout: ms(said.timeout_ms),
        check: Check {
            readiness: said.readiness,
            interval: ms(said.interval_ms.max(1)),
            threshold: said.threshold,
            start_period: ms(said.start_period_ms),
            min_healthy_time: ms(said.min_healthy_time_ms),
            on_failure: match said.on_failure.as_str() {
                "stop" => Action::Stop,
                "alert" => Action::Alert,
                _ => Action::Restart,
            },
        },
    })
}

/// Reads the restart settings from a spec.
pub(crate) fn restart(said: Option<&proto::RestartPolicy>) -> Restart {
    said.map_or_else(Restart::default, |said| Restart {
        policy: match said.policy.as_str() {
            "on_failure" => Policy::OnFailure,
            "never" => Policy::Never,
            _ => Policy::Always,
        },
        base: ms(said.base_ms),
        cap: ms(said.cap_ms),
        attempts: said.attempts,
        stable_window: (said.stable_window_ms > 0).then(|| ms(said.stable_window_ms)),
        codes: Codes {
            success: codes(&said.success_codes),
            no_retry: codes(&said.no_retry_codes),
        },
    })
}

/// Rollout settings of a service, with the number of its replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RolloutSettings {
    pub(crate) bounds: Bounds,
    pub(crate) is_replace: bool,
    pub(crate) deadline: Duration,
    pub(crate) on_deadline: OnDeadline,
}

/// Returns the longest start period among checks.
pub(crate) fn start_period(checks: &[CheckSpec]) -> Duration {
    let periods = checks.iter().map(|check| check.check.start_period);
    periods.max().unwrap_or_default()
}

/// Reads the rollout settings of a service with this number of replicas.
pub(crate) fn rollout(spec: &proto::ServiceSpec, replicas: u32) -> RolloutSettings {
    let said = spec.rollout.clone().unwrap_or_else(|| proto::Rollout {
        surge: 1,
        deadline_ms: 600_000,
        ..proto::Rollout::default()
    });
    RolloutSettings {
        bounds: Bounds {
            replicas,
            surge: said.surge,
            unavailable: said.unavailable,
        },
        is_replace: said.strategy == "replace",
        deadline: ms(said.deadline_ms),
        on_deadline: match said.on_deadline.as_str() {
            "force" => OnDeadline::Force,
            _ => OnDeadline::Fail,
        },
    }
}

/// Reads the settings of a service that are not part of its release.
pub(crate) fn manners(spec: &proto::ServiceSpec) -> Manners {
    Manners {
        checks: spec.checks.iter().filter_map(check).collect(),
        stop: spec.stop.as_ref().into(),
        codes: restart(spec.restart.as_ref()).codes,
    }
}

/// Job settings whose change triggers no run.
pub(crate) struct JobSettings {
    pub(crate) timeout: Option<Duration>,
    pub(crate) success: Vec<i32>,
    pub(crate) retries: RetryPolicy,
    pub(crate) schedule: Option<(Schedule, Concurrency)>,
    /// Times of the schedule as text; a changed schedule counts from the change on.
    pub(crate) times: String,
}

/// Reads the settings of a job, which the compiler has validated.
pub(crate) fn job(spec: &proto::JobSpec) -> JobSettings {
    let retries = spec.retries.unwrap_or(proto::JobRetries {
        attempts: 1,
        base_ms: 1_000,
        cap_ms: 60_000,
    });
    let success = match codes(&spec.success_codes) {
        none if none.is_empty() => vec![0],
        some => some,
    };
    JobSettings {
        timeout: (spec.timeout_ms > 0).then(|| ms(spec.timeout_ms)),
        success,
        retries: RetryPolicy::Backoff {
            base: ms(retries.base_ms),
            cap: ms(retries.cap_ms),
            attempts: retries.attempts.max(1),
            reset_after: Duration::ZERO,
        },
        schedule: spec.schedule.as_ref().and_then(schedule),
        times: spec.schedule.as_ref().map(times).unwrap_or_default(),
    }
}

fn times(said: &proto::JobSchedule) -> String {
    format!("{} {} {}", said.cron, said.time_zone, said.every_ms)
}

fn schedule(said: &proto::JobSchedule) -> Option<(Schedule, Concurrency)> {
    let concurrency = match said.concurrency.as_str() {
        "replace" => Concurrency::Replace,
        _ => Concurrency::Forbid,
    };
    if said.every_ms > 0 {
        let every = SignedDuration::try_from(ms(said.every_ms)).ok()?;
        return Some((Schedule::every(every).ok()?, concurrency));
    }
    let zone = Zone::find(&said.time_zone).unwrap_or(Zone::UTC);
    Some((Schedule::cron(Cron::parse(&said.cron).ok()?, zone), concurrency))
}
