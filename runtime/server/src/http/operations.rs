//! Handlers of the operations in the API's table.

use std::sync::Arc;
use std::time::Duration;

use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use watershed_api::documents::ResourceName;
use watershed_api::http::forms::Selected;
use watershed_api::http::openapi::LONGEST_WAIT_S;
use watershed_api::http::routes::{Offer, take_selected};
use watershed_api::http::{At, Touched};
use watershed_api::request::Selection;
use watershed_api::{Code, Problem, Reply, Request};
use watershed_core::Key;

use super::answers;
use super::caller::Caller;
use super::scope::Scope;
use super::service::Open;
use super::visibility::Visibility;
use crate::report::kinds::PROJECT_PARSER;
use crate::report::names;
use crate::selection::{Evaluate as _, States};
use crate::socket::{Service as _, replies};

/// Asks a question about rows in the name of the caller, whose attributes the project's policies see. No policy applies
/// to the owner.
pub(super) fn ask_as(request: &mut Request, caller: &Caller) {
    match request {
        Request::Metrics(asked) => asked.user = caller.user(),
        Request::MetricsBounds(asked) => asked.user = caller.user(),
        Request::Call(asked) => asked.user = caller.user(),
        _ => {}
    }
}

/// Adds the path of an accepted request to its response.
///
/// # Errors
/// `bad-argument`, where the name of the instance can't stand in a path.
pub(super) fn located(mut response: Response, location: &str) -> Result<Response, Problem> {
    let location = HeaderValue::from_str(location);
    let location =
        location.map_err(|_| Problem::new(Code::BadArgument, "the name of the instance is no path"))?;
    response.headers_mut().insert(LOCATION, location);
    Ok(response)
}

/// Parses the time that the caller wants to wait for the end, from the header `Prefer`.
pub(super) fn preferred_wait(headers: &HeaderMap) -> Result<Option<Duration>, Problem> {
    let Some(prefer) = headers.get("prefer").and_then(|prefer| prefer.to_str().ok()) else {
        return Ok(None);
    };
    let wait = prefer
        .split([',', ';'])
        .find_map(|one| one.trim().strip_prefix("wait="));
    let Some(wait) = wait else { return Ok(None) };
    let seconds: u64 = wait.trim().parse().map_err(|_| {
        Problem::new(
            Code::BadArgument,
            format!("`Prefer: wait` takes whole seconds, not `{wait}`"),
        )
    })?;
    Ok(Some(Duration::from_secs(seconds.min(LONGEST_WAIT_S))))
}

/// Refuses unknown resource names before a request is stored.
pub(super) fn check(open: &Open, request: &mut Request) -> Result<(), Problem> {
    let named = match request {
        Request::Reconcile(named) | Request::Approve(named) | Request::Retry(named) => named.names.clone(),
        Request::Refresh(refresh) => refresh.names.clone(),
        _ => Vec::new(),
    };
    let entries = open.instance.entries();
    names::resolve_all(&entries, &named)?;
    if let Some(run) = request.run_mut() {
        run.selection.among(&entries, States::Known)?;
    }
    Ok(())
}

/// Resolves an operation's selection, and decides whether the operation runs or the selection is only listed.
///
/// # Errors
/// `wrong-state`, when the number that was confirmed holds no more, and those of the operation.
pub(super) fn selected(open: &Open, offer: &Offer, body: Value, scope: &Scope) -> Result<Choice, Problem> {
    let Value::Object(mut words) = body else {
        return Err(Problem::new(Code::BadArgument, "the body is not a JSON object"));
    };
    let selected = take_selected(&mut words)?;
    let names = chosen(open, &selected, scope)?;
    let number = u64::try_from(names.len()).unwrap_or(u64::MAX);
    let words: Map<String, Value> = words;
    let request = (offer.read)(Value::Object(words), &At::selected(names.iter().cloned()))?;
    match selected.confirm {
        None => Ok(Choice::Asks(Touched {
            schema: Touched::SCHEMA.to_owned(),
            confirm: number,
            resources: names,
        })),
        Some(confirmed) if confirmed == number => Ok(Choice::Acts(request, names)),
        Some(confirmed) => {
            let message =
                format!("{confirmed} resources were confirmed, and the selection stands for {number} now");
            Err(Problem::new(Code::WrongState, message)
                .hint("ask again without `confirm`, and look at what is listed"))
        }
    }
}

/// The result of resolving an operation's selection.
pub(super) enum Choice {
    /// The operation is not confirmed: list the selected resources.
    Asks(Touched),
    /// The operation is confirmed: carry it out on these resources.
    Acts(Request, Vec<ResourceName>),
}

/// Returns the names of the selected resources in the caller's scope, sorted.
fn chosen(open: &Open, selected: &Selected, scope: &Scope) -> Result<Vec<ResourceName>, Problem> {
    let entries = open.instance.entries();
    let selection = Selection {
        select: selected.select.clone(),
        exclude: selected.exclude.clone(),
    };
    let chosen = scope.select(&selection, &entries)?;
    let live = entries.iter().map(|entry| &entry.row);
    let live =
        live.filter(|row| !row.hidden && !row.intents.is_deleted() && row.kind.as_str() != PROJECT_PARSER);
    let meant = live.filter(|row| chosen.as_ref().is_none_or(|chosen| chosen.contains(&row.uid)));
    let mut names: Vec<ResourceName> = meant
        .map(|row| ResourceName::new(row.kind.as_str(), row.name.as_str()))
        .collect();
    names.sort();
    Ok(names)
}

/// Returns an operation's replies as server-sent events, until the client disconnects.
pub(super) fn follow(
    open: &Open,
    request: Request,
    visibility: Visibility,
    base: String,
    stopping: &CancellationToken,
) -> Response {
    let instance = Arc::clone(&open.instance);
    let (sender, receiver) = replies();
    tokio::spawn({
        let instance = Arc::clone(&instance);
        async move { instance.serve(request, sender).await }
    });
    let events = futures::stream::unfold((receiver, instance), move |(mut receiver, instance)| {
        let base = base.clone();
        async move {
            let reply = receiver.recv().await?;
            let event = event_of(reply, &instance, visibility, &base);
            Some((Ok::<_, std::convert::Infallible>(event), (receiver, instance)))
        }
    });
    let events = events.take_until(stopping.clone().cancelled_owned());
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

fn event_of(reply: Reply, instance: &crate::instance::Instance, visibility: Visibility, base: &str) -> Event {
    let data = |value: Value| visibility.show(value).to_string();
    match reply {
        Reply::Lines(lines) => Event::default()
            .event("lines")
            .data(data(answers::document(&lines, instance))),
        Reply::Output(lines) => Event::default()
            .event("output")
            .data(data(answers::document(&lines, instance))),
        Reply::Done(answer) => Event::default()
            .event("done")
            .data(data(answers::of_answer(&answer, instance))),
        Reply::Refused(problem) => {
            let problem = visibility.problem(answers::problem(problem, instance));
            let document = watershed_api::http::ProblemDocument::new(problem, base);
            let document = serde_json::to_value(document).unwrap_or_default();
            Event::default().event("refused").data(document.to_string())
        }
        // Nothing else is sent by what follows.
        _ => Event::default().comment("more"),
    }
}

/// Returns the key of a resource, also of one that is being deleted.
///
/// # Errors
/// `unknown-name`, with the nearest name.
pub(super) fn existing(open: &Open, kind: &str, name: &str) -> Result<Key, Problem> {
    let entries = open.instance.entries();
    let found = names::resolve_with_deleted(&entries, &format!("{kind}/{name}"))?;
    Ok(found.row.key())
}
