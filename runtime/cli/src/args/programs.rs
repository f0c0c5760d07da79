//! The command line of `scale`, `restart`, `rollback` and `logs`.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use crate::candidates::complete_names;
use crate::values::{Replicas, Since};

/// The arguments of `scale`.
#[derive(Debug, Args)]
pub(crate) struct Scale {
    /// Service, by `name` or `kind/name`.
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(complete_names))]
    pub name: String,
    /// Number of replicas, or `file` for that of the file.
    #[arg(value_name = "N|file")]
    pub replicas: Replicas,
}

/// The arguments of `restart`.
#[derive(Debug, Args)]
pub(crate) struct Restart {
    /// Services, by `name` or `kind/name`.
    #[arg(value_name = "NAME", required = true, add = ArgValueCompleter::new(complete_names))]
    pub names: Vec<String>,
    /// Restart all replicas at once.
    #[arg(long)]
    pub now: bool,
}

/// The arguments of `rollback`.
#[derive(Debug, Args)]
pub(crate) struct Rollback {
    /// Service, by `name` or `kind/name`.
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(complete_names))]
    pub name: String,
    /// Number of the release [default: the one before the active one].
    #[arg(long, value_name = "N")]
    pub to: Option<u64>,
}

/// The arguments of `logs`.
#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// Resource, by `name` or `kind/name`; also one that is no longer there.
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(complete_names))]
    pub name: String,
    /// Follow new log lines.
    #[arg(short = 'f', long)]
    pub follow: bool,
    /// Maximum number of earlier lines.
    #[arg(short = 'n', long, alias = "tail", value_name = "N", default_value_t = 1000)]
    pub limit: u64,
    /// Only lines since a time in UTC, or of so long until now.
    #[arg(long, value_name = "TIME|AGO")]
    pub since: Option<Since>,
    /// Of a service, only this replica.
    #[arg(long, value_name = "N")]
    pub replica: Option<u64>,
    /// Of a job or service, the output of the start before the last one.
    #[arg(long)]
    pub previous: bool,
    /// Of a job or service, the logs of its runs instead of its output.
    #[arg(long, conflicts_with_all = ["replica", "previous"])]
    pub runs: bool,
}
