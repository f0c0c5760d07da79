//! The state that the handlers of routes share.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::response::Response;
use tracing::Instrument as _;
use watershed_api::{Code, Problem};

use super::answers::Unanswered;
use super::caller::Identify;
use super::service::Service;

/// The state that handlers share.
#[derive(Clone)]
pub(super) struct Context {
    /// The service whose routes they are.
    pub(super) service: Service,
    /// Authentication of requests.
    pub(super) identify: Arc<dyn Identify>,
}

/// Parameters of a path, percent-decoded once.
pub(super) type PathWords = Result<Path<HashMap<String, String>>, PathRejection>;

/// Carries out work to its end, also if the client disconnects.
pub(super) async fn detached(
    work: impl Future<Output = Result<Response, Unanswered>> + Send + 'static,
) -> Result<Response, Unanswered> {
    let ended = tokio::spawn(work.in_current_span()).await;
    ended.unwrap_or_else(|_| Err(Problem::new(Code::Defect, "the work of the call has panicked").into()))
}
