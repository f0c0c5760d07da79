//! Refusals of names that no field has.

use super::error::{At, Code, QueryError};
use crate::view::View;

/// Makes the error of a name that no dimension has.
pub(super) fn unknown_dimension(view: &View, name: &str, at: &At<'_>) -> QueryError {
    let message = match view.measure(name) {
        Some(_) => format!("\"{name}\" is a measure, not a dimension"),
        None => format!("unknown dimension \"{name}\""),
    };
    let known = view.dimensions.iter().map(|dimension| dimension.name.as_str());
    at.unknown(Code::UnknownField, message, name, known)
}

/// Makes the error of a name that no measure has.
pub(super) fn unknown_measure(view: &View, name: &str, at: &At<'_>) -> QueryError {
    let message = match view.dimension(name) {
        Some(_) => format!("\"{name}\" is a dimension, not a measure"),
        None => format!("unknown measure \"{name}\""),
    };
    let known = view.measures.iter().map(|measure| measure.name.as_str());
    at.unknown(Code::UnknownField, message, name, known)
}
