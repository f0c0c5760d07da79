//! The routes, made from the table.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, get, on};
use serde_json::Value;
use watershed_api::http::openapi::{own_parameters, parameters};
use watershed_api::http::own::{EventsTaken, TreeDocument, TreeHealth};
use watershed_api::http::routes::{Offer, Own, Words};
use watershed_api::http::{At, DiagnosticsDocument, Does, Method, ROUTES, Route};
use watershed_api::{Answer, Code, Operation as _, Problem, Request as Asked};
use watershed_controller::Select;
use watershed_managers::{BODY_MAX, EventDoor, NotTaken, Tree, tree};

use super::answers::{self, Refused};
use super::caller::{Caller, Identify};
use super::list::MANAGED;
use super::operations::{self, Choice};
use super::service::{Open, Service};
use super::words::{self, Parameters};
use super::{guard, list, pages, watch};

/// The bytes of a body: longer than any statement of a person's.
const LONGEST_BODY: usize = 1 << 20;
/// The time in which a body has to come.
const PATIENCE: Duration = Duration::from_secs(30);

/// Everything that handlers need.
#[derive(Clone)]
struct Context {
    service: Service,
    identify: Identify,
}

/// Returns the routes of a service. `identify` tells who asks, from the head of a request: it has no default, for a server that
/// forgets to ask lets everybody in.
pub fn router<F>(service: Service, identify: F) -> Router
where
    F: Fn(&Parts) -> Result<Caller, Problem> + Send + Sync + 'static,
{
    let context = Context {
        service,
        identify: Arc::new(identify),
    };
    let mut router = Router::new();
    for route in ROUTES {
        let offered = Offered::new(route);
        let handler = async move |State(context): State<Context>, path: PathWords, request: Request| {
            let base = context.service.base().to_owned();
            let answered = offered.answer(context, path, request).await;
            answered.unwrap_or_else(|refused| refused.answer(&base))
        };
        let filter = match route.method {
            Method::Get => MethodFilter::GET,
            Method::Post => MethodFilter::POST,
        };
        router = router.route(
            &format!("/v1/instances/{{instance}}{}", route.path),
            on(filter, handler),
        );
    }
    router
        .route(
            "/v1/instances",
            get(async |State(context): State<Context>| pages::instances(&context.service)),
        )
        .route(
            "/v1/me",
            get(async |caller: axum::Extension<Caller>| pages::me(&caller)),
        )
        .route(
            "/openapi.json",
            get(async |State(context): State<Context>| pages::description(&context.service)),
        )
        .route("/problems/{code}", get(problem))
        .route("/livez", get(async || pages::live()))
        .route("/readyz", get(ready))
        .route(
            "/",
            get(async |State(context): State<Context>| pages::welcome(&context.service)),
        )
        .fallback(nothing)
        .method_not_allowed_fallback(another_method)
        .layer(from_fn_with_state(context.clone(), admit))
        .with_state(context)
}

/// The words of a path, decoded once.
type PathWords = Result<Path<HashMap<String, String>>, PathRejection>;

/// Lets in who may ask, from where it may be asked.
async fn admit(State(context): State<Context>, request: Request, next: Next) -> Response {
    let base = context.service.base();
    let (mut parts, body) = request.into_parts();
    if let Err(refused) = guard::check(&parts, context.service.hosts(), base) {
        return refused.into_response();
    }
    if parts.headers.contains_key(CONTENT_ENCODING) {
        let problem =
            Problem::new(Code::BadArgument, "a compressed body is not read").hint("send it as it is");
        return Refused::new(problem, base)
            .with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE)
            .into_response();
    }
    match (context.identify)(&parts) {
        Ok(caller) => drop(parts.extensions.insert(caller)),
        Err(problem) => return Refused::new(problem, base).into_response(),
    }
    let mut response = next.run(Request::from_parts(parts, body)).await;
    let headers = response.headers_mut();
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    headers.insert("referrer-policy", HeaderValue::from_static("no-referrer"));
    headers
        .entry("cache-control")
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

async fn problem(State(context): State<Context>, path: PathWords) -> Response {
    let base = context.service.base();
    let code = path.ok().and_then(|Path(words)| words.get("code").cloned());
    pages::problem(&code.unwrap_or_default())
        .unwrap_or_else(|problem| Refused::new(problem, base).into_response())
}

async fn ready(State(context): State<Context>) -> Response {
    let base = context.service.base();
    pages::ready(&context.service).unwrap_or_else(|problem| Refused::new(problem, base).into_response())
}

async fn nothing(State(context): State<Context>, request: Request) -> Response {
    let base = context.service.base();
    let message = format!("there is nothing at `{}`", request.uri().path());
    let problem =
        Problem::new(Code::UnknownName, message).hint(format!("`{base}/openapi.json` has all paths"));
    Refused::new(problem, base).into_response()
}

async fn another_method(State(context): State<Context>, request: Request) -> Response {
    let message = format!("`{}` takes no {}", request.uri().path(), request.method());
    let problem = Problem::new(Code::BadArgument, message);
    Refused::new(problem, context.service.base())
        .with_status(StatusCode::METHOD_NOT_ALLOWED)
        .into_response()
}

/// A reason why a route has no answer.
enum Unanswered {
    /// A problem, under the status of its code.
    Problem(Problem),
    /// A problem under another status.
    Status(Problem, StatusCode),
}

impl Unanswered {
    fn answer(self, base: &str) -> Response {
        match self {
            Self::Problem(problem) => Refused::new(problem, base).into_response(),
            Self::Status(problem, status) => Refused::new(problem, base).with_status(status).into_response(),
        }
    }
}

impl From<Problem> for Unanswered {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

/// A line of the table, ready to be called.
#[derive(Clone)]
struct Offered {
    route: &'static Route,
    parameters: Arc<Parameters>,
    /// True if the query may have any word: the arguments of an API.
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
                Does::Answers(offer) | Does::Starts(offer) | Does::Selected(offer) | Does::Follows(offer),
                Words::Query,
            ) => parameters(offer),
        };
        Self {
            route,
            parameters: Arc::new(query),
            takes_all: route.path == "/api/{name}" && route.method == Method::Get,
        }
    }

    /// Answers a request.
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
        let caller = parts.extensions.get::<Caller>().cloned();
        let caller = caller.ok_or_else(|| Problem::new(Code::NotAllowed, "nobody knows who asks"))?;
        if !caller.roles().contains(&self.route.role) {
            return Err(Problem::new(Code::NotAllowed, "this needs another role").into());
        }
        let word = |name: &str| path.get(name).map(String::as_str).unwrap_or_default();
        let open = context.service.find(word("instance"))?;
        let query = words::query(parts.uri.query(), &self.parameters, self.takes_all)?;
        let at = self.at(&path);
        let call = Call {
            service: &context.service,
            open,
            caller: &caller,
            headers: &parts.headers,
            place: format!(
                "{}/v1/instances/{}",
                context.service.base(),
                encoded(word("instance"))
            ),
        };
        let answered = match &self.route.does {
            Does::Own(own) => call.own(*own, &path, query, body).await,
            Does::Answers(offer) => {
                let words = self.words(query, body).await?;
                operations::answer(open, (offer.read)(words, &at)?)
                    .await
                    .map_err(Into::into)
            }
            Does::Starts(offer) => {
                let words = self.words(query, body).await?;
                let request = (offer.read)(words, &at)?;
                call.start(request).await
            }
            Does::Follows(offer) => {
                let follows = query["follow"] == true;
                let request = (offer.read)(query, &at)?;
                match follows {
                    true => Ok(operations::follow(
                        open,
                        request,
                        context.service.base().to_owned(),
                        context.service.stopping(),
                    )),
                    false => operations::answer(open, request).await.map_err(Into::into),
                }
            }
            Does::Selected(offer) => {
                let words = self.words(query, body).await?;
                call.selected(offer, words).await
            }
        };
        answered.map_err(|unanswered| match unanswered {
            Unanswered::Problem(problem) => Unanswered::Problem(answers::problem(problem, &open.instance)),
            other => other,
        })
    }

    /// Returns the words of the route: the query, or the body.
    async fn words(&self, query: Value, body: Body) -> Result<Value, Unanswered> {
        match self.route.words() {
            Words::Query => Ok(query),
            Words::Body => Ok(words::body(&read(body, LONGEST_BODY).await?)?),
        }
    }

    /// Returns what the path is about.
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

/// Reads a body whole.
async fn read(body: Body, most: usize) -> Result<Bytes, Unanswered> {
    // What says that it is too long is not waited for.
    if body.size_hint().lower() > u64::try_from(most).unwrap_or(u64::MAX) {
        let problem = Problem::new(Code::BadArgument, format!("the body has more than {most} bytes"));
        return Err(Unanswered::Status(problem, StatusCode::PAYLOAD_TOO_LARGE));
    }
    let read = tokio::time::timeout(PATIENCE, to_bytes(body, most)).await;
    let late = || {
        let message = format!("the body did not come within {} s", PATIENCE.as_secs());
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

/// Encodes a segment of a path.
fn encoded(segment: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    let mut text = String::new();
    for byte in segment.bytes() {
        match plain(byte) {
            true => text.push(char::from(byte)),
            false => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// One call of a route.
struct Call<'a> {
    service: &'a Service,
    open: &'a Open,
    caller: &'a Caller,
    headers: &'a HeaderMap,
    /// The path of the instance.
    place: String,
}

impl Call<'_> {
    async fn start(&self, request: Asked) -> Result<Response, Unanswered> {
        let started = operations::start(
            self.open,
            request,
            self.caller,
            self.headers,
            self.service.base(),
            &self.place,
            self.service.stopping(),
        )
        .await;
        Ok(started?)
    }

    async fn selected(&self, offer: &Offer, words: Value) -> Result<Response, Unanswered> {
        match operations::selected(self.open, offer, words)? {
            Choice::Asks(touched) => Ok(answers::json(&touched)),
            Choice::Acts(request) if is_work(&request) => self.start(request).await,
            Choice::Acts(request) => Ok(operations::answer(self.open, request).await?),
        }
    }

    async fn own(
        &self,
        own: Own,
        path: &HashMap<String, String>,
        query: Value,
        body: Body,
    ) -> Result<Response, Unanswered> {
        let word = |name: &str| path.get(name).map(String::as_str).unwrap_or_default();
        match own {
            Own::List => Ok(answers::written(list::page(self.open, query).await?)),
            Own::Resource => {
                let found = list::one(self.open, word("kind"), word("name"), query).await?;
                Ok(answers::written(found.to_vec()))
            }
            Own::Tree => self.tree(word("kind"), word("name")),
            Own::Diagnostics => self.diagnostics().await,
            Own::Watch => {
                let last = self.headers.get("last-event-id").and_then(|id| id.to_str().ok());
                Ok(watch::stream(self.open, query, last, self.service.stopping()).await?)
            }
            Own::Request => {
                let request = self.open.requests.get(word("id"), self.service.base()).await?;
                Ok(answers::json(&request))
            }
            Own::Backup => {
                let words = words::body(&read(body, LONGEST_BODY).await?)?;
                match words.as_object().is_some_and(serde_json::Map::is_empty) {
                    true => self.backup().await,
                    false => Err(Problem::new(Code::BadArgument, "a backup takes nothing").into()),
                }
            }
            Own::Events => self.events(body).await,
        }
    }

    fn tree(&self, kind: &str, name: &str) -> Result<Response, Unanswered> {
        let key = operations::existing(self.open, kind, name)?;
        let resources = self
            .open
            .instance
            .controller()
            .list(Select::kind(MANAGED).with_hidden());
        let root = resources.resources.iter().find(|resource| resource.key() == key);
        let found = root.and_then(|root| tree(&resources.resources, root.row.uid));
        let none = || {
            Problem::new(
                Code::WrongState,
                format!("`{key}` has no parts: it is no managed resource"),
            )
        };
        let document = tree_document(&found.ok_or_else(none)?);
        Ok(answers::json(&answers::document(&document, &self.open.instance)))
    }

    async fn diagnostics(&self) -> Result<Response, Unanswered> {
        let input = watershed_api::request::StatusRequest::default();
        let status = watershed_api::operations::ops::Status::request(input);
        let Answer::Status(status) = self.open.instance.answer(status).await? else {
            return Err(Problem::new(Code::Defect, "the answer is that of another operation").into());
        };
        let document = DiagnosticsDocument {
            schema: DiagnosticsDocument::SCHEMA.to_owned(),
            not_applied: status.not_applied,
            diagnostics: status.diagnostics,
        };
        Ok(answers::json(&answers::document(&document, &self.open.instance)))
    }

    async fn backup(&self) -> Result<Response, Unanswered> {
        let name = format!(".backup-{}", uuid::Uuid::now_v7());
        let file = self.open.instance.state.path().join(name);
        let input = watershed_api::request::BackupRequest {
            file: file.clone(),
            force: false,
        };
        let made = self.open.instance.backup(input).await;
        let unread = |error: std::io::Error| {
            Problem::new(Code::Unavailable, format!("the archive can't be read: {error}"))
        };
        let opened = match made {
            Ok(_) => tokio::fs::File::open(&file).await.map_err(unread),
            Err(problem) => Err(problem),
        };
        // What is open stays until it is read.
        let _ = tokio::fs::remove_file(&file).await;
        let body = Body::from_stream(tokio_util::io::ReaderStream::new(opened?));
        Ok(answers::of_type("application/octet-stream", body))
    }

    async fn events(&self, body: Body) -> Result<Response, Unanswered> {
        let body = read(body, BODY_MAX).await?;
        let text = |(name, value): (&axum::http::HeaderName, &HeaderValue)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        };
        let mut headers: BTreeMap<String, String> = self.headers.iter().filter_map(text).collect();
        if !headers.contains_key("ce-id")
            && headers
                .get(CONTENT_TYPE.as_str())
                .is_some_and(|it| it.starts_with("application/json"))
        {
            // An event in plain JSON is one in the structured mode, and a list of them a batch.
            let is_batch = body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
            let mode = if is_batch {
                "application/cloudevents-batch+json"
            } else {
                "application/cloudevents+json"
            };
            headers.insert(CONTENT_TYPE.to_string(), mode.to_owned());
        }
        let door = EventDoor::new(self.open.instance.controller().clone(), [MANAGED]);
        let taken = door
            .receive(&headers, &body)
            .await
            .map_err(|why| not_taken(&why))?;
        let number = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let document = EventsTaken {
            events: number(taken.events),
            told: number(taken.matched),
        };
        Ok((StatusCode::ACCEPTED, axum::Json(document)).into_response())
    }
}

/// Returns true for what goes on after the answer.
fn is_work(request: &Asked) -> bool {
    matches!(
        request,
        Asked::Run(_) | Asked::Reconcile(_) | Asked::Refresh(_) | Asked::Approve(_) | Asked::Retry(_)
    )
}

fn not_taken(why: &NotTaken) -> Unanswered {
    let status = StatusCode::from_u16(why.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let code = match status.is_server_error() {
        true => Code::Unavailable,
        false => Code::BadArgument,
    };
    Unanswered::Status(Problem::new(code, why.to_string()), status)
}

fn tree_document(tree: &Tree) -> TreeDocument {
    use watershed_managers::Health;
    TreeDocument {
        kind: tree.key.kind.to_string(),
        name: tree.key.name.to_string(),
        stage: tree.stage.as_ref().map(|stage| stage.as_str().to_owned()),
        goal: tree.goal.as_ref().map(|stage| stage.as_str().to_owned()),
        health: match tree.health {
            Health::There => TreeHealth::There,
            Health::Moving => TreeHealth::Moving,
            Health::Trying => TreeHealth::Trying,
            Health::Failed => TreeHealth::Failed,
        },
        message: tree.message.clone(),
        parts: tree.parts.iter().map(tree_document).collect(),
    }
}
