//! The protocol over streamable HTTP, at one path of the service.
//!
//! Three of the library's defaults are not ours. It takes any `Origin`: the service's own check of host and origin comes first. It
//! gives older revisions sessions: here there are none, so that any process may answer and none can be taken over. It marks lists as
//! public: here they differ by role and are private.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::{Router, any};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::super::context::Context;
use super::super::service::Service;
use super::assistant::Assistant;
use super::desk::Here;

/// The path of the door.
pub(in crate::http) const PATH: &str = "/mcp";

/// Returns the route of the door.
pub(in crate::http) fn route(service: &Service) -> Router<Context> {
    let desk = Arc::new(Here::new(service.clone()));
    let config = StreamableHttpServerConfig::default()
        // Checked before, with the names that the service has.
        .disable_allowed_hosts()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(service.limits().body_bytes)
        .with_cancellation_token(service.stopping().child_token());
    let assistant = move || Ok(Assistant::of_requests(desk.clone()));
    let protocol = StreamableHttpService::new(assistant, Arc::new(NeverSessionManager::default()), config);
    let answer = async move |request: Request| -> Response { protocol.handle(request).await.map(Body::new) };
    Router::new().route(PATH, any(answer))
}
