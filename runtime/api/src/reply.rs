//! Replies to a request: parts of the answer while the work goes on, and its end.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::documents::{
    AlertTestDocument, BackupDocument, CallDocument, CheckDocument, Column, CompileDocument, DoctorDocument,
    Event, ExplainDocument, ExportDocument, GcDocument, GraphDocument, HistoryDocument, LogLine,
    LogsDocument, MetricsDocument, OperateDocument, OutputLine, PartitionsDocument, PlanDocument,
    ResourceDocument, RunDocument, ShowDocument, StatsDocument, TestsDocument, TrashDocument,
};
use crate::problem::Problem;
use crate::request::Activity;

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
    Refused(Problem),
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
