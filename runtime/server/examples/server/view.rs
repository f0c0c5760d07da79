//! The JSON that callers get: an interface of the embedder's own, so that it changes when the embedder wants.

use serde_json::{Value, json};
use watershed_controller::RunOutcome;
use watershed_controller::resource::Row;

/// One resource.
pub(crate) fn row(row: &Row) -> Value {
    json!({
        "kind": row.kind.as_str(),
        "name": row.name.as_str(),
        "error": row.error.as_ref().map(|error| &error.message),
        "runs": row.runs_total,
    })
}

/// Returns the outcome of a request.
pub(crate) fn outcome(outcome: &RunOutcome) -> Value {
    match outcome {
        RunOutcome::Done { outcome, .. } => {
            json!({ "outcome": "done", "work": format!("{:?}", outcome.work).to_lowercase() })
        }
        RunOutcome::Failed { error, .. } => {
            json!({ "outcome": "failed", "code": error.code, "error": error.message, "hint": error.hint })
        }
        other => json!({ "outcome": "none", "why": format!("{other:?}") }),
    }
}
