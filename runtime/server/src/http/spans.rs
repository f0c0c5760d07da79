//! Spans of requests: each as long as its answer is awaited, and below the caller's own if the caller names one.

use axum::extract::Request;
use axum::http::StatusCode;
use tracing::Span;
use tracing::field::Empty;

use super::meters::MeteredRoute;
use crate::targets::REQUESTS;

/// Returns the span of a request that has just come.
pub(super) fn begin(request: &Request) -> Span {
    let span = tracing::trace_span!(
        target: REQUESTS,
        "request",
        otel.kind = "server",
        otel.status_code = Empty,
        http.request.method = Empty,
        http.route = Empty,
        http.response.status_code = Empty,
        watershed.instance = Empty,
    );
    #[cfg(feature = "otel")]
    if !span.is_disabled() {
        crate::telemetry::take_up(&span, request.headers());
    }
    #[cfg(not(feature = "otel"))]
    let _ = request;
    span
}

/// Describes the answer in the span of its request. The instance is the one that was found; names of others would make as
/// many values as somebody has ideas.
pub(super) fn end(span: &Span, (method, path): (&str, &str), route: MeteredRoute, status: StatusCode) {
    if span.is_disabled() {
        return;
    }
    span.record("http.request.method", method);
    span.record("http.route", route.to_string());
    span.record("http.response.status_code", status.as_u16());
    if let MeteredRoute::Instance(_) = route {
        span.record("watershed.instance", path.split('/').nth(3));
    }
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
}
