//! Errors of queries and data blocks.

use watershed_compilers::RenderError;
use watershed_core::{Error, Key};
use watershed_drivers::olap::{Failure, QueryError};
use watershed_metrics::plan::PlanError;
use watershed_outputs::{failure, secrets::Unknown};

use crate::view;

/// The most rows of an answer, as a person or a chart can use at once.
pub const MOST_ROWS: u64 = 10_000;

/// Message in place of an engine's error that the viewer may not see.
pub const UNSPOKEN: &str = "the query failed on the data that it reads";

/// The error of a metrics query.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MetricsError {
    /// No metrics view has this name.
    #[error("there is no metrics view \"{0}\"")]
    Unknown(String),
    /// The metrics view was never valid.
    #[error("metrics view \"{0}\" has not been found to be valid")]
    NotValid(String),
    /// The security rules of the view can't be evaluated for the viewer.
    #[error("the policy of \"{view}\" can't be evaluated: {message}")]
    Policy {
        /// View whose rules failed.
        view: String,
        /// Cause as text.
        message: String,
    },
    /// The explore or canvas does not exist.
    #[error("there is no {kind} \"{name}\"", kind = .0.kind, name = .0.name)]
    NoFront(Key),
    /// The explore or canvas does not show this view.
    #[error("{front} does not show metrics view \"{view}\"")]
    NotInFront {
        /// The explore or canvas.
        front: Key,
        /// View that was queried.
        view: String,
    },
    /// The template of an expression in the view can't be executed.
    #[error(transparent)]
    Render(#[from] view::RenderError),
    /// The query is not valid for the view.
    #[error(transparent)]
    Refused(#[from] PlanError),
    /// The engine failed while running the query.
    #[error(transparent)]
    Engine(QueryError),
    /// The engine failed with a message that only the project's owner may see.
    #[error("{UNSPOKEN}")]
    Unspoken(QueryError),
    /// The answer exceeds the row limit.
    #[error("the answer has more than {MOST_ROWS} rows: set a `limit`, or group by less")]
    TooManyRows,
    /// A pivot exceeds the limit of columns.
    #[error("the pivot has {0} columns, more than {max}", max = watershed_metrics::query::Limits::PIVOT_COLUMNS)]
    TooManyColumns(usize),
}

/// The error of a data block.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ResolveError {
    /// A metrics query was refused or failed.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// A template can't be executed.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// The value of a variable is not known.
    #[error(transparent)]
    Variable(#[from] Unknown),
    /// The SQL over metrics views uses more than metrics queries support.
    #[error("{message}")]
    MetricsSql {
        /// Description of the unsupported part.
        message: String,
        /// Hint for a query that works, if any.
        hint: Option<String>,
    },
    /// No API has this name.
    #[error("there is no API \"{0}\"")]
    UnknownApi(String),
    /// The API's file does not compile.
    #[error("the API \"{0}\" does not compile")]
    Faulty(String),
    /// The viewer may not call the API.
    #[error("the API \"{0}\" is not open to this user")]
    NotAllowed(String),
    /// The security rules of an API can't be evaluated.
    #[error("the policy of \"{api}\" can't be evaluated: {message}")]
    Policy {
        /// API whose rules failed.
        api: String,
        /// Cause as text.
        message: String,
    },
    /// The API does not read an argument of the call.
    #[error("the API \"{api}\" reads no argument \"{name}\"")]
    UnknownArgument {
        /// API that was called.
        api: String,
        /// Argument that the API does not read.
        name: String,
        /// Hint with the arguments that the API reads.
        hint: String,
    },
    /// APIs that call one another in a cycle.
    #[error("APIs call one another: {}", .0.join(" calls "))]
    Cycle(Vec<String>),
    /// Files can't be listed.
    #[error("{0}")]
    Files(String),
    /// The resolver of the data block is not supported.
    #[error("`data` by `{0}` is not supported yet")]
    Unsupported(String),
}

impl ResolveError {
    /// Converts the error to that of a resource, with a stable code.
    #[must_use]
    pub fn to_error(&self) -> Error {
        let plain = |code: &'static str| Error::permanent(code, self.to_string());
        match self {
            Self::Metrics(MetricsError::Engine(error)) => from_query(error),
            Self::Metrics(MetricsError::Refused(error)) => Error {
                hint: error.hint().map(Into::into),
                ..plain("bad-metrics-query")
            },
            Self::Metrics(_) => plain("bad-query"),
            Self::Render(error) => failure::from_render(error),
            Self::Variable(unknown) => unknown.clone().into(),
            Self::MetricsSql { hint, .. } => Error {
                hint: hint.as_deref().map(Into::into),
                ..plain("bad-metrics-query")
            },
            Self::UnknownArgument { hint, .. } => Error {
                hint: Some(hint.as_str().into()),
                ..plain("bad-query")
            },
            Self::UnknownApi(_) | Self::Faulty(_) | Self::Cycle(_) => plain("bad-query"),
            Self::NotAllowed(_) | Self::Policy { .. } => plain("not-allowed"),
            Self::Files(_) => plain("bad-query"),
            Self::Unsupported(resolver) => failure::unsupported_data(resolver),
        }
    }

    /// Returns the engine's message that the viewer may not see, for the project's owner; none for other errors.
    pub fn unspoken(&self) -> Option<Error> {
        match self {
            Self::Metrics(MetricsError::Unspoken(error)) => Some(from_query(error)),
            _ => None,
        }
    }
}

/// Converts an error of the engine to that of a resource.
pub fn from_query(error: &QueryError) -> Error {
    match error {
        QueryError::Failed(Failure::Sql(error)) => failure::from_sql(error),
        QueryError::Failed(failure) => failure::from_failure(failure),
        QueryError::Timeout(_) => Error {
            hint: Some("raise its `timeout`".into()),
            ..Error::permanent("timeout", error.to_string())
        },
        other => Error::permanent("bad-query", other.to_string()),
    }
}
