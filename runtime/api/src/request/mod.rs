//! Requests of commands to an instance.

mod rows;
mod run;

pub use rows::{AlertTestRequest, CallRequest, Callee, ExportRequest, MetricsRequest, Rows};
pub use run::{Activity, Events, RunRequest, Selection};

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::documents::{Operation, Time};

/// A request of a command to an instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Converge everything.
    Run(RunRequest),
    /// The status of resources.
    Status {
        /// Only these, if any.
        names: Vec<String>,
        /// Only these, in the words of `--select`.
        #[serde(default)]
        selection: Selection,
        /// Hidden ones too.
        all: bool,
    },
    /// Look at these again.
    Reconcile {
        /// The resources.
        names: Vec<String>,
        /// The options of the run.
        run: RunRequest,
    },
    /// Do the work of these again.
    Refresh {
        /// The resources.
        names: Vec<String>,
        /// Forget incremental state.
        full: bool,
        /// Dependents too.
        downstream: bool,
        /// These partitions again, besides those that are due.
        #[serde(default)]
        partitions: Option<PartitionChoice>,
        /// The options of the run.
        run: RunRequest,
    },
    /// Build these anew, whose edits are held.
    Approve {
        /// Names of resources.
        names: Vec<String>,
        /// The manner of the work.
        run: RunRequest,
    },
    /// One read-only statement.
    Query {
        /// The statement.
        sql: String,
        /// At most so many rows.
        limit: Option<u64>,
        /// Give up after so long.
        timeout_ms: Option<u64>,
    },
    /// Rows into a file.
    Export(ExportRequest),
    /// A query of a metrics view.
    Metrics(Box<MetricsRequest>),
    /// A call of an API, or the rows of a report.
    Call(Box<CallRequest>),
    /// A trial of an alert.
    TestAlert(AlertTestRequest),
    /// Run the tests of models on the tables as they stand.
    Test(TestRequest),
    /// The first rows of a resource, or its spec and state.
    Show {
        /// The resource.
        name: String,
        /// At most so many rows.
        limit: u64,
    },
    /// Work out what a run would do.
    Plan {
        /// End with another code if there is anything to do.
        exit_code: bool,
        /// A run of these alone.
        #[serde(default)]
        selection: Selection,
    },
    /// The graph of resources.
    Graph {
        /// Only around this one.
        name: Option<String>,
        /// Only these.
        #[serde(default)]
        selection: Selection,
        /// Hidden ones too.
        all: bool,
    },
    /// Past runs.
    History {
        /// Only of this one.
        name: Option<String>,
        /// At most so many.
        limit: u64,
    },
    /// The partitions of a model.
    Partitions(PartitionsRequest),
    /// The reason why something is not running.
    Explain {
        /// The resource; the whole project without one.
        name: Option<String>,
    },
    /// Pause, resume or cancel these.
    Operate {
        /// The operation.
        operation: Operation,
        /// The resources.
        names: Vec<String>,
    },
    /// Change what is wanted of services by hand.
    OperateServices {
        /// The change.
        change: ServiceChange,
        /// The services.
        names: Vec<String>,
    },
    /// Change what is wanted of a managed resource by hand, or tell of events.
    ChangeByHand(ChangeByHand),
    /// Try again now what has failed of these.
    Retry {
        /// The resources.
        names: Vec<String>,
        /// The options of the run.
        run: RunRequest,
    },
    /// The logs of a resource's runs.
    Logs {
        /// The resource.
        name: String,
        /// At most so many lines of what was said before.
        limit: u64,
        /// Also what they say from now on, until nobody listens.
        follow: bool,
        /// Of what was said before only that since this time.
        #[serde(default)]
        since: Option<Time>,
        /// The part of a program's output that is meant; none for the logs of its runs.
        program: Option<ProgramOutput>,
    },
    /// A check that the controller and its catalog hold together.
    Check,
    /// A check of the project's stored data for damage.
    Doctor,
    /// Give back the room that nothing uses.
    Gc,
    /// Look at the trash, or do something with it.
    Trash(TrashRequest),
    /// Write everything that is kept into a file.
    Backup {
        /// The file, with its whole path.
        file: PathBuf,
        /// Replace a file that is there.
        force: bool,
    },
    /// The numbers.
    Stats {
        /// In which form.
        form: StatsForm,
    },
}

impl Request {
    /// Returns the manner of the work that it asks for; none if it asks for none.
    pub fn run_mut(&mut self) -> Option<&mut RunRequest> {
        match self {
            Self::Run(run)
            | Self::Reconcile { run, .. }
            | Self::Refresh { run, .. }
            | Self::Approve { run, .. }
            | Self::Retry { run, .. } => Some(run),
            _ => None,
        }
    }
}

/// The partitions that are listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionsRequest {
    /// The model.
    pub name: String,
    /// Only those that failed.
    pub errored: bool,
    /// At most so many.
    pub limit: u64,
}

/// The partitions that are built again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartitionChoice {
    /// Those that failed.
    Errored,
    /// These: by key, by the beginning of one, or by a value of their data.
    Keys(Vec<String>),
}

/// A thing to do with the trash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrashRequest {
    /// Say what is in it.
    List,
    /// Give a table back to the person who asks.
    Restore {
        /// Its name, or the beginning of its id.
        name: String,
        /// The name that it is to have, if another.
        to: Option<String>,
        /// Only say what would be done.
        dry_run: bool,
    },
    /// Throw tables away for good.
    Empty {
        /// Names, or beginnings of ids; all without one.
        names: Vec<String>,
        /// Only say what would be done.
        dry_run: bool,
    },
}

/// The choice of tests to run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestRequest {
    /// Those of these models; of all without one.
    pub names: Vec<String>,
    /// Those of selected models alone; of all where nothing is selected.
    pub selection: Selection,
    /// Count warnings as errors.
    pub warn_error: bool,
}

/// The form of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatsForm {
    /// A document.
    Document,
    /// Prometheus' text format.
    Prometheus,
}

/// A change of services by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServiceChange {
    /// Another number of replicas; none for that of the file.
    Scale(Option<u32>),
    /// A start anew: of all replicas at once, or of as many as may be missing.
    Restart {
        /// True for all at once.
        now: bool,
    },
    /// An earlier release: of this number, or the one before the active one.
    Rollback {
        /// The number.
        to: Option<u64>,
    },
}

/// A change of resources by hand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeByHand {
    /// Another stage is desired.
    Set {
        /// The resource.
        name: String,
        /// The stage.
        desired: String,
    },
    /// Something has happened: a CloudEvent in its JSON form, or a list of them.
    Events(String),
    /// Nobody is told of an alert for a while.
    Snooze {
        /// The alert.
        name: String,
        /// The end, in milliseconds since 1970; none ends one that there is.
        until_ms: Option<i64>,
    },
}

/// The part of a program's output that is meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramOutput {
    /// The number of the replica; all of them without one.
    pub replica: Option<u64>,
    /// That of the start before the last one.
    pub previous: bool,
}
