//! The routes of instances, built from the API's table of operations.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use serde_json::Value;
use watershed_api::http::openapi::{own_parameters, parameters};
use watershed_api::http::routes::{Own, Words};
use watershed_api::http::{At, Does, Method, ROUTES, Route, encoded};
use watershed_api::operations::Role;
use watershed_api::{Code, Problem};
use watershed_callers::{Grant, Level};

use super::answers::{self, Refused};
use super::body::read;
use super::call::{Call, Unanswered};
use super::caller::Caller;
use super::checkout::caller_of_hook;
use super::context::{Context, PathWords, detached};
use super::held::Held;
use super::mock_user::{VIEW_AS, mock_user};
use super::scope::Scope;
use super::service::{Open, Service};
use super::trail::Trail;
use super::visibility::Visibility;
use super::words::{self, Parameters};
use super::{operations, repeats};

/// The route that an answer is of, below its instance, as an extension of the response.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnsweredBy(pub(super) &'static str);

/// Returns the routes of instances alone, for calls whose caller is authenticated already and stands in the request's extensions.
#[cfg(feature = "mcp")]
pub(super) fn calls_of_instances(service: Service) -> Router {
    let nobody = |_: &Parts| Err(Problem::new(Code::Unauthenticated, "the caller is not known"));
    let context = Context {
        service,
        identify: Arc::new(nobody),
    };
    instance_routes()
        .fallback(nothing)
        .method_not_allowed_fallback(another_method)
        .with_state(context)
}

/// Returns the routes of the table.
pub(super) fn instance_routes() -> Router<Context> {
    let mut router = Router::new();
    for route in ROUTES {
        let offered = Offered::new(route);
        let handler = async move |State(context): State<Context>, path: PathWords, request: Request| {
            let base = context.service.base().to_owned();
            let answered = offered.answer(context, path, request).await;
            let mut response = answered.unwrap_or_else(|refused| refused.answer(&base));
            response.extensions_mut().insert(AnsweredBy(route.path));
            response
        };
        let filter = match route.method {
            Method::Get => MethodFilter::GET,
            Method::Post => MethodFilter::POST,
            Method::Put => MethodFilter::PUT,
            Method::Delete => MethodFilter::DELETE,
        };
        let routed = match route.does {
            // For all other methods there is no such file.
            Does::Own(Own::WriteVariables) => on(filter, handler).fallback(nothing),
            _ => on(filter, handler),
        };
        router = router.route(&format!("/v1/instances/{{instance}}{}", route.path), routed);
    }
    router
}

/// Answers a request that no route has.
pub(super) async fn nothing(State(context): State<Context>, request: Request) -> Response {
    let base = context.service.base();
    let message = format!("there is nothing at `{}`", request.uri().path());
    let problem =
        Problem::new(Code::UnknownName, message).hint(format!("`{base}/openapi.json` has all paths"));
    Refused::new(problem, base).into_response()
}

/// Answers a request whose route has another method.
pub(super) async fn another_method(State(context): State<Context>, request: Request) -> Response {
    let message = format!("`{}` takes no {}", request.uri().path(), request.method());
    let problem = Problem::new(Code::BadArgument, message);
    Refused::new(problem, context.service.base())
        .with_status(StatusCode::METHOD_NOT_ALLOWED)
        .into_response()
}

/// Returns the problem of a caller whose access to an instance lacks the role of a route.
pub(super) fn lacking(role: Role, grant: Grant, instance: &str) -> Problem {
    let message = format!(
        "this needs the role `{}` on `{instance}`, and you have `{grant}`",
        role.as_str()
    );
    Problem::new(Code::NotAllowed, message).hint("an admin of the service gives roles")
}

/// A call of an instance, before it is known whether the caller may make it.
struct Asked {
    service: Service,
    caller: Caller,
    instance: String,
    path: HashMap<String, String>,
    parts: Parts,
    trail: Trail,
}

/// A call of an instance that the caller may make.
struct Entered {
    open: Open,
    /// The caller, or the mock user as whom the caller looks.
    caller: Caller,
    visibility: Visibility,
    scope: Scope,
}

/// Returns the kind and name of the resource that a path names; none if it names no resource.
fn named(path: &HashMap<String, String>) -> Option<String> {
    let word = |name: &str| path.get(name).map(String::as_str);
    match (word("kind"), word("name"), word("view")) {
        (Some(kind), Some(name), _) => Some(format!("{kind}/{name}")),
        // Paths with a name alone are those of APIs: a token for some resources gets no board.
        (None, Some(name), _) => Some(format!("api/{name}")),
        (_, _, Some(view)) => Some(format!("metrics_view/{view}")),
        _ => None,
    }
}

/// Returns the resource, or the one thing, that a path names.
fn subject(path: &HashMap<String, String>) -> Option<String> {
    match (
        path.get("kind"),
        path.get("name").or(path.get("id")).or(path.get("path")),
    ) {
        (Some(kind), Some(name)) => Some(format!("{kind}/{name}")),
        (_, name) => name.cloned(),
    }
}

/// An operation of the API's table, prepared as a route.
#[derive(Clone)]
struct Offered {
    route: &'static Route,
    parameters: Arc<Parameters>,
    /// True if any query parameter is accepted, as the arguments of an API.
    takes_all: bool,
}

impl Offered {
    fn new(route: &'static Route) -> Self {
        let of_own = |own| {
            let parameters = own_parameters(own).into_iter();
            let named = parameters.map(|it: Value| {
                (
                    it["name"].as_str().unwrap_or_default().to_owned(),
                    it["schema"].clone(),
                )
            });
            named.collect()
        };
        let query = match (&route.does, route.words()) {
            (Does::Own(own), _) => of_own(*own),
            (_, Words::Body) => Vec::new(),
            (
                Does::Answers(offer)
                | Does::Starts(offer)
                | Does::Selected(offer)
                | Does::Follows(offer)
                | Does::Rows(offer),
                Words::Query,
            ) => parameters(offer),
        };
        Self {
            route,
            parameters: Arc::new(query),
            takes_all: route.path == "/api/{name}" && route.method == Method::Get,
        }
    }

    /// Routes a request to its operation and returns the response. What may change something is audited, carried out to its
    /// end also if the client disconnects, and once for each idempotency key.
    async fn answer(
        &self,
        context: Context,
        path: PathWords,
        request: Request,
    ) -> Result<Response, Unanswered> {
        let unread = |error: &PathRejection| {
            Problem::new(Code::BadArgument, format!("the path can't be read: {error}"))
        };
        let Path(path) = path.map_err(|error| unread(&error))?;
        let (parts, body) = request.into_parts();
        let instance = path.get("instance").cloned().unwrap_or_default();
        let (caller, body) = match parts.extensions.get::<Caller>().cloned() {
            Some(caller) => (caller, body),
            None => {
                let service = &context.service;
                let hook = caller_of_hook(service, self.route, &parts, &instance, body).await?;
                // What a webhook says chooses nothing.
                (hook, Body::empty())
            }
        };
        let state = context.service.state().filter(|_| self.route.changes()).cloned();
        let trail = Trail::new(state, &caller, Some(&instance), self.route.name());
        if let Some(subject) = subject(&path) {
            trail.about(&subject);
        }
        let asked = Asked {
            service: context.service,
            caller,
            instance,
            path,
            parts,
            trail,
        };
        if !self.route.changes() {
            let entered = self.enter(&asked).await?;
            return self.carry_out(&asked, &entered, body).await;
        }
        let offered = self.clone();
        detached(async move {
            let answered = offered.change(&asked, body).await;
            asked.trail.end(&answered).await;
            answered
        })
        .await
    }

    async fn change(&self, asked: &Asked, body: Body) -> Result<Response, Unanswered> {
        let entered = &self.enter(asked).await?;
        let Asked {
            service,
            caller,
            parts,
            trail,
            ..
        } = asked;
        let work = |body| self.carry_out(asked, entered, body);
        repeats::once(service, caller, parts, body, trail, work).await
    }

    /// Admits a call to its instance, if the caller has the route's role there, and the resource that the path names is
    /// in the caller's scope.
    async fn enter(&self, asked: &Asked) -> Result<Entered, Problem> {
        let Asked {
            service,
            caller,
            instance,
            path,
            parts,
            ..
        } = asked;
        let mut grant = service.grant(caller, instance)?;
        let viewed_as = parts.headers.get(VIEW_AS);
        if viewed_as.is_some() {
            if !grant.allows(Role::Admin) {
                return Err(lacking(Role::Admin, grant, instance));
            }
            grant = Grant::new(Level::Read);
        }
        if !grant.allows(self.route.role) {
            return Err(lacking(self.route.role, grant, instance));
        }
        let (visibility, scope) = (Visibility::of(grant), Scope::of(caller));
        scope.check(self.route)?;
        let open = service.find(instance);
        let open = open.map_err(|problem| visibility.problem(problem))?;
        if let Some(name) = named(path) {
            scope.check_name(&name, || open.instance.entries())?;
        }
        let caller = match viewed_as {
            Some(name) => caller.clone().viewing_as(mock_user(&open.instance, name).await?),
            None => caller.clone(),
        };
        if let Some(held) = parts.extensions.get::<Held>() {
            held.hold(&open.instance);
        }
        Ok(Entered {
            open,
            caller,
            visibility,
            scope,
        })
    }

    async fn carry_out(&self, asked: &Asked, entered: &Entered, body: Body) -> Result<Response, Unanswered> {
        let Asked {
            service,
            instance,
            path,
            parts,
            trail,
            ..
        } = asked;
        let Entered {
            open,
            caller,
            visibility,
            scope,
        } = entered;
        let query = words::query(parts.uri.query(), &self.parameters, self.takes_all)?;
        let at = self.at(path);
        let call = Call {
            service,
            open,
            caller,
            trail,
            visibility: *visibility,
            scope,
            headers: &parts.headers,
            parts,
            instance,
            raw: parts.uri.path(),
            place: format!("{}/v1/instances/{}", service.base(), encoded(instance)),
        };
        let answered = match &self.route.does {
            Does::Own(own) => call.own(*own, path, query, body).await,
            Does::Answers(offer) => {
                let words = self.words(query, body, service).await?;
                let mut request = (offer.read)(words, &at)?;
                scope.check_request(&request, || open.instance.entries())?;
                visibility.check_request(&request)?;
                operations::ask_as(&mut request, caller);
                call.answer(request).await
            }
            Does::Rows(offer) => {
                let words = self.words(query, body, service).await?;
                call.rows((offer.read)(words, &at)?).await
            }
            Does::Starts(offer) => {
                let words = self.words(query, body, service).await?;
                let request = (offer.read)(words, &at)?;
                scope.check_request(&request, || open.instance.entries())?;
                call.start(request).await
            }
            Does::Follows(offer) => {
                let follows = query["follow"] == true;
                let request = (offer.read)(query, &at)?;
                match follows {
                    true => Ok(operations::follow(
                        open,
                        request,
                        *visibility,
                        service.base().to_owned(),
                        &open.ending,
                    )),
                    false => call.answer(request).await,
                }
            }
            Does::Selected(offer) => {
                let words = self.words(query, body, service).await?;
                call.selected(offer, words).await
            }
        };
        let answered = answered.map_err(|unanswered| match unanswered {
            Unanswered::Problem(problem) => {
                let problem = answers::problem(problem, &open.instance);
                Unanswered::Problem(match self.route.does {
                    Does::Rows(_) => visibility.problem_of_question(problem),
                    _ => visibility.problem(problem),
                })
            }
            other => other,
        })?;
        let gate = service.gate();
        let kept = gate.keep_stream(answered, caller, instance, service.base());
        Ok(kept.unwrap_or_else(IntoResponse::into_response))
    }

    /// Parses the parameters of the route, from the query or the body.
    async fn words(&self, query: Value, body: Body, service: &Service) -> Result<Value, Unanswered> {
        match self.route.words() {
            Words::Query => Ok(query),
            Words::Body => Ok(words::body(&read(body, service.gate()).await?)?),
        }
    }

    /// Returns the subject of the call, from the parameters of the path.
    fn at(&self, path: &HashMap<String, String>) -> At {
        match (
            path.get("kind"),
            path.get("name"),
            path.get("view").or(path.get("id")),
        ) {
            (Some(kind), Some(name), _) => At::resource(kind, name),
            (None, Some(name), _) => At::plain(name),
            (_, _, Some(one)) => At::plain(one),
            _ => At::nothing(),
        }
    }
}
