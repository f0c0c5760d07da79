//! Routes of the service itself: who asks, tokens, the audit log, probes, and pages for people.

use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get};
use axum::{Extension, Router};
use watershed_api::{Code, Problem};

use super::answers::Refused;
use super::caller::Caller;
use super::context::{Context, PathWords, detached};
use super::trail::Trail;
use super::{access, pages, repeats};

/// Returns the routes of the service itself.
pub(super) fn service_routes() -> Router<Context> {
    Router::new()
        .route(
            "/v1/instances",
            get(
                async |State(context): State<Context>, caller: Extension<Caller>| {
                    pages::instances(&context.service, &caller).await
                },
            ),
        )
        .merge(of_access())
        .route(
            "/openapi.json",
            get(async |State(context): State<Context>| pages::description(&context.service)),
        )
        .route("/problems/{code}", get(problem))
        .route("/livez", get(live))
        .route("/readyz", get(ready))
        .route(
            "/metrics",
            get(
                async |State(context): State<Context>, caller: axum::Extension<Caller>, request: Request| {
                    let base = context.service.base();
                    let query = request.uri().query().map(str::to_owned);
                    pages::metrics(&context.service, &caller, query.as_deref())
                        .await
                        .unwrap_or_else(|problem| Refused::new(problem, base).into_response())
                },
            ),
        )
        .merge(for_people())
}

/// Returns the routes of access: who asks, tokens, and the audit log.
fn of_access() -> Router<Context> {
    let tokens = async |State(context): State<Context>, caller: Extension<Caller>| {
        let listed = access::tokens(&context.service, &caller).await;
        listed.unwrap_or_else(|refused| refused.answer(context.service.base()))
    };
    let audit = async |State(context): State<Context>, caller: Extension<Caller>, request: Request| {
        let (parts, _) = request.into_parts();
        let page = access::audit(&context.service, &caller, &parts).await;
        page.unwrap_or_else(|refused| refused.answer(context.service.base()))
    };
    let make = async |State(context): State<Context>, caller: Extension<Caller>, request: Request| {
        let (base, service) = (context.service.base().to_owned(), context.service.clone());
        let made = detached(async move {
            let (parts, body) = request.into_parts();
            let trail = Trail::new(service.state().cloned(), &caller, None, "token-create");
            let work = |body| access::make(&service, &caller, body, &trail);
            let made = repeats::once(&service, &caller, &parts, body, &trail, work).await;
            trail.end(&made).await;
            made
        });
        made.await.unwrap_or_else(|refused| refused.answer(&base))
    };
    let revoke = async |State(context): State<Context>, caller: Extension<Caller>, path: PathWords| {
        let (base, service) = (context.service.base().to_owned(), context.service.clone());
        let id = path
            .ok()
            .and_then(|Path(words)| words.get("id").cloned())
            .unwrap_or_default();
        let revoked = detached(async move {
            let trail = Trail::new(service.state().cloned(), &caller, None, "token-revoke");
            let revoked = access::revoke(&service, &caller, &id, &trail).await;
            trail.end(&revoked).await;
            revoked
        });
        revoked.await.unwrap_or_else(|refused| refused.answer(&base))
    };
    Router::new()
        .route(
            "/v1/me",
            get(
                async |State(context): State<Context>, caller: Extension<Caller>| {
                    access::me(&context.service, &caller)
                },
            ),
        )
        .route("/v1/tokens", get(tokens).post(make))
        .route("/v1/tokens/{id}", delete(revoke))
        .route("/v1/audit", get(audit))
}

/// Returns the routes of the console.
#[cfg(feature = "console")]
fn for_people() -> Router<Context> {
    use super::console;
    let page = async |State(context): State<Context>| console::page(&context.service);
    Router::new()
        .route("/", get(page))
        .route("/ui/{*view}", get(page))
        .route(
            "/assets/{file}",
            get(async |path: PathWords, headers: axum::http::HeaderMap| {
                let file = path.ok().and_then(|Path(words)| words.get("file").cloned());
                console::file(&file.unwrap_or_default(), &headers)
            }),
        )
}

/// Returns the home page's route, for a program that was built without the console.
#[cfg(not(feature = "console"))]
fn for_people() -> Router<Context> {
    Router::new().route(
        "/",
        get(
            async |State(context): State<Context>, caller: axum::Extension<Caller>| {
                pages::welcome(&context.service, &caller)
            },
        ),
    )
}

async fn problem(State(context): State<Context>, path: PathWords) -> Response {
    let base = context.service.base();
    let code = path.ok().and_then(|Path(words)| words.get("code").cloned());
    pages::problem(&code.unwrap_or_default())
        .unwrap_or_else(|problem| Refused::new(problem, base).into_response())
}

async fn live(State(context): State<Context>) -> Response {
    let refused = |problem| Refused::new(problem, context.service.base()).into_response();
    pages::live(&context.service).await.unwrap_or_else(refused)
}

async fn ready(
    State(context): State<Context>,
    caller: Option<Extension<Caller>>,
    request: Request,
) -> Response {
    let base = context.service.base();
    let is_verbose = match request.uri().query() {
        None | Some("") => false,
        Some("verbose") => true,
        Some(other) => {
            let problem = Problem::new(
                Code::BadArgument,
                format!("`{other}` is no question of this path"),
            )
            .hint("`verbose` names all instances");
            return Refused::new(problem, base).into_response();
        }
    };
    pages::ready(&context.service, caller.as_deref(), is_verbose)
        .unwrap_or_else(|problem| Refused::new(problem, base).into_response())
}
