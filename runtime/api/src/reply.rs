//! Replies to a request: parts of the answer while the work goes on, and its end.

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use crate::documents::ExportDocument;
pub(crate) use crate::documents::{
    AlertTestDocument, BackupDocument, CheckDocument, CompileDocument, DoctorDocument, ExplainDocument,
    GcDocument, GraphDocument, HistoryDocument, LogsDocument, OperateDocument, PartitionsDocument,
    PlanDocument, RunDocument, StatsDocument, TestsDocument, TrashDocument,
};
use crate::documents::{
    CallDocument, Column, Event, LogLine, MetricsDocument, OutputLine, ResourceDocument, ShowDocument,
};
use crate::operations::Answer;
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

/// The end of an answer whose rows were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowsEnd {
    /// True if a limit cut the result short.
    pub more: bool,
}

/// The numbers of a project in Prometheus' text format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PrometheusPage(pub String);

/// The end of `show`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// The first rows of the resource were sent.
    Rows(RowsEnd),
    /// The resource has no rows.
    Resource(Box<ShowDocument>),
}

/// The answer of a metrics view.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricsAnswer {
    /// The rows, or the statement.
    Document(Box<MetricsDocument>),
    /// The file that the rows were written into.
    File(ExportDocument),
}

/// The answer of an API or a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallAnswer {
    /// The rows, or the statement.
    Document(Box<CallDocument>),
    /// The file that the rows were written into.
    File(ExportDocument),
}
