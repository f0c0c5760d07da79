//! The document of `stats`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Time;

/// The statistics of a project's controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatsDocument {
    /// Name and version of this form: `watershed.stats/1`.
    pub schema: String,
    /// Version of the program that wrote the document.
    pub version: String,
    /// Name of the project.
    pub project: String,
    /// Path of the project's folder.
    pub root: String,
    /// Name of the project's environment.
    pub environment: String,
    /// Id of the process that runs the project; null if the numbers come from the stored state.
    pub process: Option<u32>,
    /// Time at which the numbers were taken.
    pub at: Time,
    /// Revision of the catalog.
    pub revision: u64,
    /// Number of resources, including hidden resources.
    pub resources: u64,
    /// Number of pending resources, by the priority of their request: `requested`, `normal` or `background`.
    pub pending: BTreeMap<String, u64>,
    /// Number of pending resources, by the reason for their request.
    pub pending_by_reason: BTreeMap<String, u64>,
    /// Longest time that a resource has been pending, in milliseconds.
    pub oldest_pending_ms: u64,
    /// Number of running invocations.
    pub running: u64,
    /// Longest time that an invocation has been running, in milliseconds.
    pub longest_running_ms: u64,
    /// Number of running invocations that were cancelled and have not returned.
    pub stuck: u64,
    /// Number of settled resources, by the reason, such as `idle`, `failed`, `retrying` or `paused`.
    pub settled: BTreeMap<String, u64>,
    /// Number of resources whose last run failed by itself.
    pub failed: u64,
    /// Number of resources that were not built because another resource had failed.
    pub blocked: u64,
    /// Number of paused resources.
    pub paused: u64,
    /// Sum of the consecutive failures of all resources.
    pub retries: u64,
    /// Number of alerts, by the last verdict: `pass`, `fail` or `error`; `none` before the first.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub alerts: BTreeMap<String, u64>,
    /// Number of stored messages, by state: `waiting`, `delivered` or `dead`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub notifications: BTreeMap<String, u64>,
    /// Statistics of the process that runs the project, since its start; null if there is no such process.
    pub process_stats: Option<ProcessStats>,
}

impl StatsDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.stats/1";
}

/// The statistics of a process since its start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessStats {
    /// Number of invocations that were started.
    pub invocations_started: u64,
    /// Number of invocations that succeeded.
    pub invocations_done: u64,
    /// Number of invocations that failed.
    pub invocations_failed: u64,
    /// Number of attempts to commit.
    pub commits: u64,
    /// Number of attempts to commit that failed.
    pub commits_failed: u64,
    /// Duration of the last commit, in microseconds.
    pub commit_last_us: u64,
    /// Longest duration of a commit in the last minute or two, in microseconds.
    pub commit_longest_us: u64,
    /// Time that the last call waited for the controller's event loop, in microseconds.
    pub loop_lag_last_us: u64,
    /// Longest wait of a call for the event loop in the last minute or two, in microseconds.
    pub loop_lag_longest_us: u64,
    /// Time since the lease was last renewed, in milliseconds; null if the lease can't expire.
    pub lease_age_ms: Option<u64>,
    /// Term of the lease, in milliseconds; null if the lease can't expire.
    pub lease_term_ms: Option<u64>,
    /// Last time at which all resources were settled; null before the first.
    pub last_convergence_at: Option<Time>,
    /// Duration of the last convergence, from the first request until all resources were settled, in milliseconds.
    pub last_convergence_took_ms: Option<u64>,
    /// Number of log lines that were dropped because the disk was too slow.
    pub log_lines_dropped: u64,
}
