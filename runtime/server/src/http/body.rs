//! Bodies of requests, read within the limits of size and time.

use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::http::StatusCode;
use watershed_api::{Code, Problem};

use super::answers::Unanswered;
use super::limits::{Gate, Passed};

/// Reads a whole body, within the limits of size and time.
pub(super) async fn read(body: Body, gate: &Gate) -> Result<Bytes, Unanswered> {
    read_up_to(body, gate.limits().body_bytes, gate).await
}

/// Reads a whole body of at most so many bytes, within the limit of time.
pub(super) async fn read_up_to(body: Body, most: usize, gate: &Gate) -> Result<Bytes, Unanswered> {
    let read = read_within(body, most, gate.limits().body_within).await;
    if read.is_err() {
        gate.count(Passed::Body);
    }
    read
}

async fn read_within(body: Body, most: usize, patience: Duration) -> Result<Bytes, Unanswered> {
    // What says that it is too long is not waited for.
    if body.size_hint().lower() > u64::try_from(most).unwrap_or(u64::MAX) {
        let problem = Problem::new(Code::BadArgument, format!("the body has more than {most} bytes"));
        return Err(Unanswered::Status(problem, StatusCode::PAYLOAD_TOO_LARGE));
    }
    let read = tokio::time::timeout(patience, to_bytes(body, most)).await;
    let late = || {
        let message = format!("the body did not come within {} s", patience.as_secs_f64());
        Unanswered::Status(
            Problem::new(Code::DeadlinePassed, message),
            StatusCode::REQUEST_TIMEOUT,
        )
    };
    let too_long = |error: axum::Error| {
        let problem = Problem::new(
            Code::BadArgument,
            format!("the body can't be read, or has more than {most} bytes: {error}"),
        );
        Unanswered::Status(problem, StatusCode::PAYLOAD_TOO_LARGE)
    };
    read.map_err(|_| late())?.map_err(too_long)
}
