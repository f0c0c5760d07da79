//! The reasons why a question has no answer.

use watershed_compilers::RenderError;
use watershed_core::{Error, Key};
use watershed_drivers::olap::{Failure, QueryError};
use watershed_metrics::plan::PlanError;
use watershed_outputs::{failure, secrets::Unknown};

use crate::view;

/// Rows of an answer: what a person or a chart takes in at once, as in the format.
pub const MOST_ROWS: u64 = 10_000;

/// The words for an error of the engine that a viewer may not see.
pub const UNSPOKEN: &str = "the query failed on the data that it reads";

/// The errors of a query of a metrics view.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MetricsError {
    /// No metrics view has the name.
    #[error("there is no metrics view \"{0}\"")]
    Unknown(String),
    /// The view was never found valid.
    #[error("metrics view \"{0}\" has not been found to be valid")]
    NotValid(String),
    /// The rules of the view can't be evaluated for the viewer.
    #[error("the policy of \"{view}\" can't be evaluated: {message}")]
    Policy {
        /// The view.
        view: String,
        /// The reason.
        message: String,
    },
    /// An explore or canvas that is not there.
    #[error("there is no {kind} \"{name}\"", kind = .0.kind, name = .0.name)]
    NoFront(Key),
    /// An explore or canvas that shows other views.
    #[error("{front} does not show metrics view \"{view}\"")]
    NotInFront {
        /// The explore or canvas.
        front: Key,
        /// The view.
        view: String,
    },
    /// An expression of the view can't be written.
    #[error(transparent)]
    Render(#[from] view::RenderError),
    /// The query is refused.
    #[error(transparent)]
    Refused(#[from] PlanError),
    /// The engine did not answer.
    #[error(transparent)]
    Engine(QueryError),
    /// The engine did not answer, in words that the viewer may not see: they are for the project's owner.
    #[error("{UNSPOKEN}")]
    Unspoken(QueryError),
    /// The answer has too many rows.
    #[error("the answer has more than {MOST_ROWS} rows: set a `limit`, or group by less")]
    TooManyRows,
    /// A pivot has too many columns.
    #[error("the pivot has {0} columns, more than {max}", max = watershed_metrics::query::Limits::PIVOT_COLUMNS)]
    TooManyColumns(usize),
}

/// A question has no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ResolveError {
    /// The metrics view refuses it, or the engine can't answer.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// A template can't be executed.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// A variable's value is not known.
    #[error(transparent)]
    Variable(#[from] Unknown),
    /// SQL over metrics views that says more than a query can.
    #[error("{message}")]
    MetricsSql {
        /// The description.
        message: String,
        /// A hint.
        hint: Option<String>,
    },
    /// An API that is not there.
    #[error("there is no API \"{0}\"")]
    UnknownApi(String),
    /// An API whose file does not compile.
    #[error("the API \"{0}\" does not compile")]
    Faulty(String),
    /// An API that the viewer may not call.
    #[error("the API \"{0}\" is not open to this user")]
    NotAllowed(String),
    /// The rules of an API can't be evaluated.
    #[error("the policy of \"{api}\" can't be evaluated: {message}")]
    Policy {
        /// The API.
        api: String,
        /// The reason.
        message: String,
    },
    /// An argument that an API does not read.
    #[error("the API \"{api}\" reads no argument \"{name}\"")]
    UnknownArgument {
        /// The API.
        api: String,
        /// The argument.
        name: String,
        /// A hint.
        hint: String,
    },
    /// APIs that call one another without end.
    #[error("APIs call one another: {}", .0.join(" calls "))]
    Cycle(Vec<String>),
    /// Files can't be listed.
    #[error("{0}")]
    Files(String),
    /// A way to fetch rows that is not supported.
    #[error("`data` by `{0}` is not supported yet")]
    Unsupported(String),
}

impl ResolveError {
    /// Returns it as the error of a resource, with a stable code.
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

    /// Returns the engine's words that the viewer may not see, for the project's owner.
    pub fn unspoken(&self) -> Option<Error> {
        match self {
            Self::Metrics(MetricsError::Unspoken(error)) => Some(from_query(error)),
            _ => None,
        }
    }
}

/// Returns an error of the engine as that of a resource.
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
