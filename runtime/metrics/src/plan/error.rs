//! Errors of planning.

use crate::query::{Code, Limits, QueryError};
use crate::range::RangeError;

/// The reason why a query can't be planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The query is invalid or not allowed.
    #[error(transparent)]
    Refused(#[from] QueryError),
    /// A time range can't be resolved.
    #[error("{at}: {source}")]
    Range {
        /// The key of the query that states the range.
        at: &'static str,
        /// The reason why the range can't be resolved.
        source: RangeError,
    },
}

impl PlanError {
    /// Returns advice on how to fix the error, if there is any.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Refused(error) => error.hint.as_deref(),
            Self::Range { .. } => None,
        }
    }

    fn refused(code: Code, at: &str, message: impl Into<String>) -> Self {
        Self::Refused(QueryError::new(code, at, message))
    }

    pub(super) fn range(at: &'static str, source: RangeError) -> Self {
        Self::Range { at, source }
    }

    pub(super) fn closed(view: &str) -> Self {
        Self::refused(
            Code::NotAllowed,
            "metrics_view",
            format!("\"{view}\" may not be seen"),
        )
    }

    pub(super) fn missing(kind: &str, name: &str) -> Self {
        Self::refused(Code::UnknownField, "query", format!("unknown {kind} \"{name}\""))
    }

    pub(super) fn unbounded() -> Self {
        let message = "a comparison needs a `time_range` with ends";
        Self::refused(Code::ConflictingKeys, "comparison_time_range", message)
    }

    pub(super) fn too_many_buckets() -> Self {
        let message = format!("ranges have at most {} buckets", Limits::BUCKETS);
        Self::refused(Code::TooLarge, "time_range", message)
    }

    pub(super) fn too_deep() -> Self {
        let message = format!(
            "measures and subqueries are nested at most {} deep",
            Limits::DEPTH
        );
        Self::refused(Code::TooLarge, "query", message)
    }

    pub(super) fn lists_compared(name: &str) -> Self {
        let message = format!("\"{name}\" has several values, so nothing is compared with it");
        Self::refused(Code::MixedTypes, "where", message)
    }

    pub(super) fn circle(name: &str) -> Self {
        let message = format!("\"{name}\" requires itself");
        Self::refused(Code::ConflictingKeys, "measures", message)
    }

    pub(super) fn compared_within(name: &str) -> Self {
        let message = format!("\"{name}\" is computed over smaller groups, which have no comparison");
        Self::refused(Code::ConflictingKeys, "measures", message)
    }

    pub(super) fn dimension_required(measure: &str, dimension: &str) -> Self {
        let message = format!("\"{measure}\" needs the dimension \"{dimension}\" in the query");
        Self::refused(Code::DimensionRequired, "measures", message)
    }

    pub(super) fn not_grouped(name: &str) -> Self {
        let message = format!("\"{name}\" is no dimension of the query, so groups have no value of it");
        Self::refused(Code::DimensionRequired, "having", message)
    }

    pub(super) fn no_time_to_fill() -> Self {
        let message = "a spine of times needs the range's time dimension with a grain";
        Self::refused(Code::DimensionRequired, "spine", message)
    }

    pub(super) fn no_number(name: &str) -> Self {
        let message = format!("\"{name}\" is no number");
        Self::refused(Code::MixedTypes, "measures", message)
    }

    pub(super) fn pivot(message: &str) -> Self {
        Self::refused(Code::ConflictingKeys, "pivot_on", message)
    }
}
