//! Lookup of the fields that names in queries mean, if the viewer may see them.

use super::error::{At, Code, QueryError};
use crate::view::{Dimension, Measure, View};

/// Returns the view's dimension of a name; an error if there is none or it is hidden.
pub(super) fn dimension<'v>(view: &'v View, name: &str, at: &At<'_>) -> Result<&'v Dimension, QueryError> {
    let message = match (view.dimension(name), view.measure(name)) {
        (Some(found), _) if found.hidden => return Err(not_allowed(name, at)),
        (Some(found), _) => return Ok(found),
        (None, Some(found)) if found.hidden => return Err(not_allowed(name, at)),
        (None, Some(_)) => format!("\"{name}\" is a measure, not a dimension"),
        (None, None) => format!("unknown dimension \"{name}\""),
    };
    Err(at.unknown(Code::UnknownField, message, name, view.visible_dimensions()))
}

/// Returns the view's measure of a name; an error if there is none or it is hidden.
pub(super) fn measure<'v>(view: &'v View, name: &str, at: &At<'_>) -> Result<&'v Measure, QueryError> {
    let message = match (view.measure(name), view.dimension(name)) {
        (Some(found), _) if found.hidden => return Err(not_allowed(name, at)),
        (Some(found), _) => return Ok(found),
        (None, Some(found)) if found.hidden => return Err(not_allowed(name, at)),
        (None, Some(_)) => format!("\"{name}\" is a dimension, not a measure"),
        (None, None) => format!("unknown measure \"{name}\""),
    };
    Err(at.unknown(Code::UnknownField, message, name, view.visible_measures()))
}

/// Creates the error for a field that the viewer may not see (Q14).
fn not_allowed(name: &str, at: &At<'_>) -> QueryError {
    at.error(Code::NotAllowed, format!("\"{name}\" may not be seen"))
}
