//! Replies to a request: parts of the answer during the work, and the final answer.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::documents::{Column, Event, LogLine, OutputLine, ResourceDocument, RunDocument};
use crate::operations::Answer;
use crate::problem::Problem;
use crate::request::Activity;

/// A part of the reply to a request, sent as it becomes known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// An event of the run.
    Event(Box<Event>),
    /// The progress of the run so far.
    Activity(Activity),
    /// The process that holds the engine's file, while the request waits for that file.
    Waiting(String),
    /// The document of a `start` that has converged for the first time and continues.
    ///
    /// The text is the reason why files can't be watched; none if they can.
    Converged(Box<RunDocument>, Option<String>),
    /// Names of the models that their files declare with the type `source`.
    Sources(Vec<String>),
    /// The resource whose rows follow.
    About(Box<ResourceDocument>),
    /// Columns of a result whose rows follow.
    Columns(Vec<Column>),
    /// Further rows of a result.
    Rows(Vec<Vec<Value>>),
    /// Log lines of runs.
    Lines(Vec<LogLine>),
    /// Output lines of programs.
    Output(Vec<OutputLine>),
    /// The last part, with the final answer.
    Done(Box<Answer>),
    /// The last part, with the reason why there is no answer.
    Refused(Problem),
}
