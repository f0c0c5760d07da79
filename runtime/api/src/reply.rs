//! Replies to a request: parts of the answer while the work goes on, and its end.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::documents::{Column, Event, LogLine, OutputLine, ResourceDocument, RunDocument};
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
    /// The names of models that files declare as sources, for people, who call them so.
    Sources(Vec<String>),
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
