//! All routes of a service, and what is checked before each.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, CONTENT_ENCODING};
use axum::http::request::Parts;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use tracing::Instrument as _;
use watershed_api::{Code, Problem};

use super::answers::Refused;
use super::caller::{Caller, Identify};
use super::checkout::is_hook;
use super::context::Context;
use super::meters::{MeteredRoute, known};
use super::mock_user::VIEW_AS;
use super::proxies::Client;
use super::routes::{AnsweredBy, another_method, instance_routes, nothing};
use super::service::Service;
use super::service_routes::service_routes;
use super::{compression, exports, guard, spans, streams};

/// Returns the routes of a service. `identify` authenticates requests by their head. There is no default, since a server
/// without authentication lets everybody in.
pub fn router<F>(service: Service, identify: F) -> Router
where
    F: Fn(&Parts) -> Result<Caller, Problem> + Send + Sync + 'static,
{
    router_with(service, identify)
}

/// Returns the routes of a service, whose requests are authenticated asynchronously.
pub fn router_with(service: Service, identify: impl Identify) -> Router {
    let context = Context {
        service,
        identify: Arc::new(identify),
    };
    let router = instance_routes();
    #[cfg(feature = "mcp")]
    let router = match context.service.has_assistants() {
        true => router.merge(super::mcp::door::route(&context.service)),
        false => router,
    };
    router
        .merge(service_routes())
        .fallback(nothing)
        .method_not_allowed_fallback(another_method)
        .layer(from_fn_with_state(context.clone(), admit))
        .layer(from_fn_with_state(context.clone(), meter))
        .layer(compression::layer())
        .with_state(context)
}

/// Routes of the service itself by which answers are counted.
const OF_SERVICE: [&str; 9] = [
    "/livez",
    "/mcp",
    "/metrics",
    "/openapi.json",
    "/readyz",
    "/v1/audit",
    "/v1/instances",
    "/v1/me",
    "/v1/tokens",
];

/// Counts an answer with its route and the time that it took.
async fn meter(State(context): State<Context>, request: Request, next: Next) -> Response {
    let (method, began) = (known(request.method()), std::time::Instant::now());
    let (span, uri) = (spans::begin(&request), request.uri().clone());
    let of_service = OF_SERVICE.into_iter().find(|own| *own == uri.path());
    let response = next.run(request).instrument(span.clone()).await;
    let of_instance = response.extensions().get::<AnsweredBy>();
    let route = match (of_instance, of_service) {
        (Some(by), _) => MeteredRoute::Instance(by.0),
        (None, Some(own)) => MeteredRoute::Service(own),
        (None, None) => MeteredRoute::None,
    };
    let status = response.status();
    let meters = context.service.meters();
    meters.count(method, route, status.as_u16(), began.elapsed());
    spans::end(&span, (method, uri.path()), route, status);
    response
}

/// Checks and authenticates a request before its route.
async fn admit(State(context): State<Context>, request: Request, next: Next) -> Response {
    let base = context.service.base();
    let (mut parts, body) = request.into_parts();
    if let Err(refused) = guard::check(&parts, context.service.hosts(), base) {
        return refused.into_response();
    }
    #[cfg(feature = "mcp")]
    if let Some(mut response) = super::mcp::metadata::answer(&context.service, &parts) {
        guard::protect(response.headers_mut());
        return response;
    }
    if parts.headers.contains_key(CONTENT_ENCODING) {
        let problem = Problem::new(Code::BadArgument, "a compressed body is not read")
            .hint("send the body uncompressed");
        return Refused::new(problem, base)
            .with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE)
            .into_response();
    }
    if parts.headers.contains_key(VIEW_AS) && !parts.uri.path().starts_with("/v1/instances/") {
        let message = "`Watershed-View-As` is for the paths of an instance";
        return Refused::new(Problem::new(Code::BadArgument, message), base).into_response();
    }
    if let Some(asked) = exports::signed(&parts) {
        let mut response = exports::answer_signed(&context.service, &parts, asked).await;
        guard::protect(response.headers_mut());
        return response;
    }
    let caller = match context.identify.identify(&parts).await {
        Ok(caller) => Some(caller),
        // A probe knows no token, and learns nothing but that.
        Err(problem) if problem.code == Code::Unauthenticated && is_probe(&parts) => None,
        // Its signature is checked with its body.
        Err(_) if is_hook(&parts) => None,
        Err(problem) => {
            let has_tried = parts.headers.contains_key(AUTHORIZATION);
            let is_sign_in = has_tried && problem.code == Code::Unauthenticated;
            let refused = Refused::new(problem, base);
            let client = parts.extensions.get::<Client>().filter(|_| is_sign_in);
            let counted = context
                .service
                .gate()
                .failed_sign_in(client.and_then(|it| it.address), base);
            let response = counted.err().unwrap_or(refused).into_response();
            #[cfg(feature = "mcp")]
            let response = {
                let mut response = response;
                super::mcp::metadata::challenge(&context.service, &parts, &mut response);
                response
            };
            return response;
        }
    };
    if let Some(caller) = &caller {
        if let Err(refused) = context.service.gate().admit(caller, base) {
            return refused.into_response();
        }
        parts.extensions.insert(caller.clone());
    }
    let mut response = next.run(Request::from_parts(parts, body)).await;
    if let Some(caller) = &caller {
        response = streams::ending_with(caller, response);
    }
    guard::protect(response.headers_mut());
    response
}

/// Returns true for the questions of a supervisor, whether the process answers and is ready.
fn is_probe(parts: &Parts) -> bool {
    matches!(parts.uri.path(), "/livez" | "/readyz") && parts.uri.query().is_none()
}
