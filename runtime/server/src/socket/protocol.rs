//! The messages on the socket.

use std::path::PathBuf;

use futures::{SinkExt, StreamExt};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::net::UnixStream;
use tokio_util::codec::{Framed, LinesCodec, LinesCodecError};
use watershed_managers::CloudEvent;

use super::rows::{AlertTestRequest, CallRequest, ExportRequest, MetricsRequest};
use super::run::{Activity, RunRequest, Selection};
use crate::documents::{
    AlertTestDocument, BackupDocument, CallDocument, CheckDocument, Column, Command, CompileDocument,
    DoctorDocument, Event, ExplainDocument, ExportDocument, GcDocument, GraphDocument, HistoryDocument,
    LogLine, LogsDocument, MetricsDocument, OperateDocument, Operation, OutputLine, PartitionsDocument,
    PlanDocument, ResourceDocument, RunDocument, ShowDocument, StatsDocument, TestsDocument, Time,
    TrashDocument,
};
use crate::exit::Exit;

/// Longest request: a statement that a person or a script sends.
const LONGEST_REQUEST: usize = 16 << 20;
/// Longest reply: the document of 100,000 resources.
const LONGEST_REPLY: usize = 512 << 20;

/// First message of both sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    /// Name of the protocol, so that a stranger on the socket is recognised.
    pub(super) program: String,
    /// Version of the program.
    pub(super) version: String,
    /// The owner of the folder; only the owner fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) owner: Option<Owner>,
}

impl Hello {
    pub(super) fn ours() -> Self {
        Self {
            program: "watershed".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            owner: None,
        }
    }

    /// Returns true if both sides speak the same language.
    pub(super) fn fits(&self, other: &Self) -> bool {
        (&self.program, &self.version) == (&other.program, &other.version)
    }
}

/// The process that owns a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Its command.
    pub command: Command,
    /// Its process id.
    pub process: u32,
    /// Its project is confined to its own folder and its state.
    #[serde(default)]
    pub sandbox: bool,
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "`watershed {}` (process {})",
            self.command.as_str(),
            self.process
        )
    }
}

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

/// A part of the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Something happened.
    Event(Box<Event>),
    /// The present activity, for progress.
    Activity(Activity),
    /// The work waits until this process closes the engine's file.
    Waiting(String),
    /// Everything has settled for the first time, and the work goes on: how things stand, and why files can't be
    /// watched if they can't.
    Converged(Box<RunDocument>, Option<String>),
    /// The resource whose rows follow.
    About(Box<ResourceDocument>),
    /// The columns of a result; rows follow.
    Columns(Vec<Column>),
    /// Rows of a result.
    Rows(Vec<Vec<Value>>),
    /// Log lines of runs.
    Lines(Vec<LogLine>),
    /// Lines that programs wrote.
    Output(Vec<OutputLine>),
    /// The end, with the answer.
    Done(Box<Answer>),
    /// The end, without one.
    Refused(Refusal),
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
    /// Something has happened.
    Events(Vec<CloudEvent>),
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

/// The end of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Of everything that runs or looks at how things stand.
    Run(Box<RunDocument>),
    /// Of a query: all rows were sent.
    Rows {
        /// True if a limit cut the result short.
        more: bool,
    },
    /// Of `metrics`.
    Metrics(Box<MetricsDocument>),
    /// Of `call` and `report run`.
    Call(Box<CallDocument>),
    /// Of `alert test`.
    AlertTest(Box<AlertTestDocument>),
    /// Of `query --out`, `show --out` and `metrics --out`.
    Export(ExportDocument),
    /// Of `test`.
    Tests(Box<TestsDocument>),
    /// Of `show` for what has no rows.
    Show(Box<ShowDocument>),
    /// Of `compile`.
    Compile(CompileDocument),
    /// Of `plan`.
    Plan(Box<PlanDocument>),
    /// Of `graph`.
    Graph(GraphDocument),
    /// Of `history`.
    History(HistoryDocument),
    /// Of `partitions`.
    Partitions(Box<PartitionsDocument>),
    /// Of `explain`.
    Explain(Box<ExplainDocument>),
    /// Of `pause`, `resume` and `cancel`.
    Operate(OperateDocument),
    /// Of `logs`; without the lines that were told on the way.
    Logs(Box<LogsDocument>),
    /// Of `debug check`.
    Check(Box<CheckDocument>),
    /// Of `doctor`.
    Doctor(Box<DoctorDocument>),
    /// Of `gc`.
    Gc(GcDocument),
    /// Of `backup` and `restore`.
    Backup(Box<BackupDocument>),
    /// Of `trash`.
    Trash(Box<TrashDocument>),
    /// Of `stats`.
    Stats(Box<StatsDocument>),
    /// Of `stats --format prometheus`.
    Prometheus(String),
}

/// The reason why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The exit code of the program.
    pub exit_code: u8,
    /// The attempt, and the obstacle.
    pub message: String,
    /// A hint.
    pub hint: Option<String>,
    /// The mistake in the statement that was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// The process that was asked has ended: another one may go on where it was.
    #[serde(default)]
    pub owner_ended: bool,
}

/// A mistake in a statement, as the engine sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Stable name of the mistake.
    pub code: String,
    /// The place, in bytes of the statement.
    pub offset: Option<usize>,
}

impl Refusal {
    /// The refusal of a process that ends before it is done.
    pub(crate) fn owner_ended(message: impl Into<String>) -> Self {
        Self {
            owner_ended: true,
            ..Self::new(Exit::NotNow, message).hint("run the command again")
        }
    }

    /// A refusal that ends the program with `exit`.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit_code: exit.code(),
            message: message.into(),
            hint: None,
            fault: None,
            owner_ended: false,
        }
    }

    /// Refuses to write the rows of a resource that has none: it was never built, or is of a kind without rows.
    pub fn without_rows(name: &str) -> Self {
        Self::new(Exit::Usage, format!("`{name}` has no rows to write"))
            .hint(format!("`watershed show {name}` says what there is of it"))
    }

    /// The same with something that may help.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The reason why a message could not be sent or read.
#[derive(Debug, thiserror::Error)]
pub(super) enum WireError {
    #[error("the connection broke")]
    Line(#[from] LinesCodecError),
    #[error("a message is not in the form that this version knows")]
    Form(#[from] serde_json::Error),
    #[error("the other side closed the connection")]
    Closed,
}

/// One connection, seen as messages.
pub(super) struct Wire {
    lines: Framed<UnixStream, LinesCodec>,
}

/// The side of a connection, by the messages that it reads.
#[derive(Debug, Clone, Copy)]
pub(super) enum Side {
    Client,
    Owner,
}

impl Wire {
    pub(super) fn new(stream: UnixStream, side: Side) -> Self {
        let longest = match side {
            Side::Client => LONGEST_REPLY,
            Side::Owner => LONGEST_REQUEST,
        };
        Self {
            lines: Framed::new(stream, LinesCodec::new_with_max_length(longest)),
        }
    }

    pub(super) async fn send(&mut self, message: &impl Serialize) -> Result<(), WireError> {
        let line = serde_json::to_string(message)?;
        Ok(self.lines.send(line).await?)
    }

    /// Reads the next message. Cancel-safe: a half-read line stays in the buffer.
    pub(super) async fn receive<T: DeserializeOwned>(&mut self) -> Result<T, WireError> {
        let line = self.lines.next().await.ok_or(WireError::Closed)??;
        Ok(serde_json::from_str(&line)?)
    }

    /// Resolves when the other side hangs up. Cancel-safe.
    pub(super) async fn closed(&mut self) {
        // Clients say nothing after their request; whatever still comes is read and dropped.
        while let Some(Ok(_)) = self.lines.next().await {}
    }
}
