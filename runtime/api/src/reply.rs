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
    /// An event of the work.
    Event(Box<Event>),
    /// The current progress of the work.
    Activity(Activity),
    /// The process whose use of the engine's file the work waits for.
    Waiting(String),
    /// The document of a run that has settled for the first time and goes on.
    ///
    /// The text is the reason why files can't be watched; none if they can.
    Converged(Box<RunDocument>, Option<String>),
    /// The names of models that files declare as sources, and that people call so.
    Sources(Vec<String>),
    /// The resource whose rows follow.
    About(Box<ResourceDocument>),
    /// The columns of a result, whose rows follow.
    Columns(Vec<Column>),
    /// Some rows of a result.
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
