//! The JSON that callers get: an interface of the embedder's own, so that it changes when the embedder wants.

use axum::Json;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use watershed_controller::RunOutcome;
use watershed_controller::resource::Row;

use crate::routes::Refused;

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

/// The time after which a caller may try again what can't be done now, in seconds.
const SECONDS: &str = "5";

/// The table of codes says the status.
impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Self(problem) = self;
        let status = StatusCode::from_u16(problem.code.http_status());
        let mut response = (status.unwrap_or_default(), Json(json!(problem))).into_response();
        if response.status() == StatusCode::SERVICE_UNAVAILABLE && problem.retryable {
            let headers = response.headers_mut();
            headers.insert(RETRY_AFTER, HeaderValue::from_static(SECONDS));
        }
        response
    }
}
