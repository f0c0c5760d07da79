//! The document of `stats`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Time;

/// The numbers of a project's controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatsDocument {
    /// Name and version of this form: `watershed.stats/1`.
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// Name of the project.
    pub project: String,
    /// Folder of the project.
    pub root: String,
    /// The environment.
    pub environment: String,
    /// The process that runs the project; none if these are the numbers of what is stored.
    pub process: Option<u32>,
    /// The time.
    pub at: Time,
    /// The catalog's revision.
    pub revision: u64,
    /// All resources, hidden ones included.
    pub resources: u64,
    /// Pending ones, by the priority of what asked for them: `requested`, `normal`, `background`.
    pub pending: BTreeMap<String, u64>,
    /// Pending ones, by the reason that they were asked for.
    pub pending_by_reason: BTreeMap<String, u64>,
    /// For how long the one has been pending that is so for longest.
    pub oldest_pending_ms: u64,
    /// Running invocations.
    pub running: u64,
    /// For how long the oldest of them runs.
    pub longest_running_ms: u64,
    /// Those of them that were cancelled and have not returned.
    pub stuck: u64,
    /// Settled ones, by why they are settled.
    pub settled: BTreeMap<String, u64>,
    /// Resources with a failure of their own.
    pub failed: u64,
    /// Resources that were not built because of the failure of another.
    pub blocked: u64,
    /// Paused resources.
    pub paused: u64,
    /// Failures in a row, of all resources together.
    pub retries: u64,
    /// Alerts by their last verdict: `pass`, `fail`, `error`; `none` before the first.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub alerts: BTreeMap<String, u64>,
    /// Kept messages by their standing: `waiting`, `delivered`, `dead`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub notifications: BTreeMap<String, u64>,
    /// Counts of the process that runs the project, since it started; none if none runs.
    pub process_stats: Option<ProcessStats>,
}

impl StatsDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.stats/1";
}

/// Counts of a process since it started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessStats {
    /// Invocations started.
    pub invocations_started: u64,
    /// Invocations that succeeded.
    pub invocations_done: u64,
    /// Invocations that failed.
    pub invocations_failed: u64,
    /// Commits tried.
    pub commits: u64,
    /// Commits that failed and were tried again.
    pub commits_failed: u64,
    /// The time that the last commit took, in microseconds.
    pub commit_last_us: u64,
    /// The longest commit of the last minute.
    pub commit_longest_us: u64,
    /// The time that the last call waited for the controller's loop, in microseconds.
    pub loop_lag_last_us: u64,
    /// The longest such wait of the last minute.
    pub loop_lag_longest_us: u64,
    /// The time since the lease was renewed; none if it lasts as long as the process.
    pub lease_age_ms: Option<u64>,
    /// The term of the lease.
    pub lease_term_ms: Option<u64>,
    /// The time at which everything was last settled.
    pub last_convergence_at: Option<Time>,
    /// The time that something had been pending or running until then.
    pub last_convergence_took_ms: Option<u64>,
    /// Log lines that were dropped because the disk was too slow for them.
    pub log_lines_dropped: u64,
}
