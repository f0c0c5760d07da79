//! Tokens, the audit log and who asks: paths of the service itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use watershed_api::documents::{Time, Trust};
use watershed_api::http::access::{
    AuditDocument, AuditLine, Authentication, Me, TokenEntry, TokenMade, TokenOrigin, TokenRequest,
    TokenState, TokensDocument,
};
use watershed_api::http::{ROUTES, Route};
use watershed_api::operations::Role;
use watershed_api::{Code, Problem};
use watershed_callers::grants::ALL_INSTANCES;
use watershed_callers::state::{AuditEntry, Listed, StateError, TOKENS_MAX};
use watershed_callers::token::{LIFE_DAYS, NAME_MAX, OPERATIONS_MAX, Wanted};
use watershed_callers::tokens::{Origin, Revoked};
use watershed_callers::{Grant, Grants, Tokens};

use super::answers;
use super::answers::Unanswered;
use super::body::read;
use super::caller::Caller;
use super::repeats::KeptAs;
use super::service::{Served, Service};
use super::trail::Trail;
use super::words;
use crate::report::hints::nearest;

/// A day, in milliseconds.
const DAY_MS: i64 = 24 * 3_600_000;
/// The most terms of a selection, and the most instances, of a token.
const TERMS_MAX: usize = 100;
/// The longest term of a selection, in bytes.
const TERM_MAX: usize = 1_024;

/// Returns the caller's identity and access.
pub(super) fn me(service: &Service, caller: &Caller) -> Response {
    let narrowing = caller.narrowing().cloned().unwrap_or_default();
    let (mut trust, mut remote_edit) = (BTreeMap::new(), Vec::new());
    for (name, served) in service.all() {
        let Served::Open(open) = served else { continue };
        if caller.on(&name).is_none() {
            continue;
        }
        let of_files = open.instance.trust();
        if of_files == Trust::Full && open.instance.allows_remote_edit() {
            remote_edit.push(name.clone());
        }
        trust.insert(name, of_files);
    }
    answers::json(&Me {
        schema: Me::SCHEMA.to_owned(),
        principal: caller.name().to_owned(),
        authentication: caller.authentication(),
        roles: caller.roles(),
        instances: roles(caller.grants()),
        trust,
        remote_edit,
        attributes: caller.attributes().clone(),
        operations: narrowing.operations,
        select: narrowing.select,
        expires_at: caller.expires_at(),
    })
}

fn roles(grants: &Grants) -> BTreeMap<String, String> {
    let all = grants.iter();
    all.map(|(instance, grant)| (instance.to_owned(), grant.to_string()))
        .collect()
}

/// Lists the tokens that the caller may revoke.
pub(super) async fn tokens(service: &Service, caller: &Caller) -> Result<Response, Unanswered> {
    let tokens = of(service, caller)?;
    let now_ms = Time::now().millis();
    let all = tokens.list().await.map_err(|error| unread(&error))?.into_iter();
    let own = all.filter(|(listed, _)| administers(caller, &listed.token.roles));
    Ok(answers::json(&TokensDocument {
        schema: TokensDocument::SCHEMA.to_owned(),
        tokens: own
            .map(|(listed, origin)| entry(&listed, origin, now_ms))
            .collect(),
    }))
}

/// Makes a token.
pub(super) async fn make(
    service: &Service,
    caller: &Caller,
    body: Body,
    trail: &Trail,
) -> Result<Response, Unanswered> {
    let tokens = of(service, caller)?;
    let body = read(body, service.gate()).await?;
    let request: TokenRequest = form(words::body(&body)?)?;
    let now_ms = Time::now().millis();
    trail.about(&format!("{:?} {}", request.name, json!(request.roles)));
    let wanted = wanted(service, caller, request, now_ms)?;
    trail.begin().await?;
    let made = tokens.create(wanted, caller.name(), now_ms).await;
    let minted = made.map_err(|error| unwritten(&error))?.ok_or_else(|| {
        Problem::new(Code::Busy, format!("there are {TOKENS_MAX} tokens already"))
            .hint("a token may be for several instances; new ones can be made by the operator in the file of tokens")
    })?;
    let listed = Listed {
        token: minted.token,
        made_ms: now_ms,
        made_by: caller.name().to_owned(),
        used_ms: None,
        revoked_ms: None,
    };
    trail.about(&listed.token.id);
    let mut document = TokenMade {
        schema: TokenMade::SCHEMA.to_owned(),
        token: entry(&listed, Origin::State, now_ms),
        secret: Some(minted.text),
    };
    let mut response = (StatusCode::CREATED, axum::Json(&document)).into_response();
    // The secret is kept nowhere, not even for who asks again under the same key.
    document.secret = None;
    let kept = serde_json::to_vec(&document).unwrap_or_default();
    response.extensions_mut().insert(KeptAs(kept));
    response
        .headers_mut()
        .insert("cache-control", HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Revokes a token.
pub(super) async fn revoke(
    service: &Service,
    caller: &Caller,
    id: &str,
    trail: &Trail,
) -> Result<Response, Unanswered> {
    trail.about(id);
    let tokens = of(service, caller)?;
    let unknown = || Problem::new(Code::UnknownName, format!("there is no token `{id}`"));
    let find = async || {
        let all = tokens.list().await.map_err(|error| unread(&error))?.into_iter();
        let mut own = all.filter(|(listed, _)| administers(caller, &listed.token.roles));
        own.find(|(listed, _)| listed.token.id == id).ok_or_else(unknown)
    };
    find().await?;
    trail.begin().await?;
    let now_ms = Time::now().millis();
    let revoked = tokens.revoke(id, now_ms).await;
    match revoked.map_err(|error| unwritten(&error))? {
        // What was revoked before stays so: whoever asks twice has what they want.
        Revoked::Done | Revoked::Unknown => {}
        Revoked::InFile => {
            let problem = Problem::new(
                Code::WrongState,
                format!("the token `{id}` stands in the file of tokens"),
            );
            return Err(problem.hint("the operator removes its line there").into());
        }
    }
    let (listed, origin) = find().await?;
    Ok(answers::json(&entry(&listed, origin, now_ms)))
}

/// Returns a page of the audit log.
pub(super) async fn audit(service: &Service, caller: &Caller, parts: &Parts) -> Result<Response, Unanswered> {
    refuse_narrowed(caller)?;
    let is_admin = caller
        .grants()
        .everywhere()
        .is_some_and(|grant| grant.allows(Role::Admin));
    if !is_admin {
        let message = "the audit log needs the role `admin` on all instances";
        return Err(Problem::new(Code::NotAllowed, message).into());
    }
    let state = service.state().ok_or_else(|| {
        Problem::new(Code::WrongState, "this service keeps no audit log")
            .hint("a service with `state` in its configuration does")
    })?;
    let known = ["limit", "page"].map(|name| (name.to_owned(), json!({ "type": "string" })));
    let query = words::query(parts.uri.query(), &known.to_vec(), false)?;
    let (before, limit) = (number(&query, "page")?, number(&query, "limit")?);
    let limit = limit.unwrap_or(100);
    if !(1..=1_000).contains(&limit) {
        return Err(Problem::new(Code::BadArgument, "`limit` is a number from 1 to 1000").into());
    }
    let page = state.audited(before, u32::try_from(limit).unwrap_or(1_000)).await;
    let page = page.map_err(|error| unread(&error))?;
    Ok(answers::json(&AuditDocument {
        schema: AuditDocument::SCHEMA.to_owned(),
        entries: page.entries.into_iter().map(line).collect(),
        next: page.next.map(|next| next.to_string()),
    }))
}

fn line(entry: AuditEntry) -> AuditLine {
    AuditLine {
        at: Time::from_millis(entry.at_ms),
        principal: entry.principal,
        protocol: entry.protocol,
        instance: entry.instance,
        operation: entry.operation,
        subject: entry.subject,
        request: entry.request,
        outcome: entry.outcome,
    }
}

/// Returns a number of the query; none if the query does not have it.
fn number(query: &Value, name: &str) -> Result<Option<i64>, Problem> {
    let Some(text) = query[name].as_str() else {
        return Ok(None);
    };
    let read = text.parse::<i64>().ok().filter(|number| *number >= 0);
    let wrong = || Problem::new(Code::BadArgument, format!("\"{text}\" is no `{name}`"));
    read.map(Some).ok_or_else(wrong)
}

/// Returns the tokens of the service, for a caller who administers some instance.
fn of<'s>(service: &'s Service, caller: &Caller) -> Result<&'s Arc<Tokens>, Problem> {
    refuse_narrowed(caller)?;
    if !caller.grants().iter().any(|(_, grant)| grant.allows(Role::Admin)) {
        return Err(Problem::new(Code::NotAllowed, "tokens need the role `admin`")
            .hint("an admin of the service gives roles"));
    }
    service.tokens().ok_or_else(|| {
        Problem::new(Code::WrongState, "this service has no tokens")
            .hint("one with `auth` in its configuration does: `watershed serve -c FILE`")
    })
}

/// Refuses a token that is narrower than its role: it must not give or take what it does not have.
fn refuse_narrowed(caller: &Caller) -> Result<(), Problem> {
    match caller.narrowing() {
        None => Ok(()),
        Some(_) => Err(Problem::new(
            Code::NotAllowed,
            "a token for some operations or resources may not manage access",
        )),
    }
}

/// Returns true if the caller is admin of each instance that grants name.
fn administers(caller: &Caller, grants: &Grants) -> bool {
    let mut all = grants.iter();
    all.all(|(instance, _)| caller.on(instance).is_some_and(|grant| grant.allows(Role::Admin)))
}

/// Checks a request for a token, and returns the token to make.
fn wanted(service: &Service, caller: &Caller, request: TokenRequest, now_ms: i64) -> Result<Wanted, Problem> {
    let wrong = |message: String| Problem::new(Code::BadArgument, message);
    if request.name.trim().is_empty() || request.name.len() > NAME_MAX || has_control(&request.name) {
        return Err(wrong(format!("a token has a name of 1 to {NAME_MAX} bytes")));
    }
    if request.roles.is_empty() || request.roles.len() > TERMS_MAX {
        return Err(wrong(format!("a token has roles on 1 to {TERMS_MAX} instances"))
            .hint("`{\"roles\": {\"shop\": \"operate\"}}`; `*` stands for all instances"));
    }
    let mut grants = Grants::default();
    for (instance, role) in &request.roles {
        let role: Grant = role.parse().map_err(|error| wrong(format!("{error}")))?;
        if instance != ALL_INSTANCES {
            service.grant(caller, instance)?;
        }
        grants.add(instance.clone(), role);
    }
    if !administers(caller, &grants) || !grants.are_within(caller.grants()) {
        let message = "a token is given by an admin of each instance that it names";
        return Err(Problem::new(Code::NotAllowed, message).hint("`/v1/me` tells your roles"));
    }
    let operations = request.operations;
    let named = operations.as_deref().unwrap_or_default();
    if operations.is_some() && !(1..=OPERATIONS_MAX).contains(&named.len()) {
        return Err(wrong(format!("a token names 1 to {OPERATIONS_MAX} operations"))
            .hint("without the key it is for all that its roles allow"));
    }
    if let Some(unknown) = named.iter().find(|name| !is_operation(name)) {
        let problem = wrong(format!("there is no operation `{}`", unknown.escape_debug()));
        return Err(match nearest(unknown, ROUTES.iter().map(Route::name)) {
            Some(near) => problem.hint(format!("did you mean `{near}`?")),
            None => problem.hint("`/openapi.json` has them as `x-operation` of each path"),
        });
    }
    let is_term = |term: &String| !term.trim().is_empty() && term.len() <= TERM_MAX && !has_control(term);
    if request.select.len() > TERMS_MAX || !request.select.iter().all(is_term) {
        return Err(wrong(format!(
            "a token selects by at most {TERMS_MAX} terms of text"
        )));
    }
    let by_token = caller.authentication() == Authentication::Token;
    let own_end_ms = caller
        .expires_at()
        .filter(|_| by_token)
        .map_or(i64::MAX, Time::millis);
    let usual_ms = now_ms.saturating_add(i64::from(LIFE_DAYS) * DAY_MS);
    let expires_ms = request.expires_at.map_or(usual_ms.min(own_end_ms), Time::millis);
    if expires_ms > own_end_ms {
        let message = "a token made with a token ends no later than that one";
        return Err(Problem::new(Code::NotAllowed, message).hint("`/v1/me` tells when yours ends"));
    }
    if expires_ms <= now_ms {
        return Err(wrong("the token would have expired already".to_owned()));
    }
    Ok(Wanted {
        name: request.name,
        roles: grants,
        operations,
        select: request.select,
        expires_ms,
    })
}

fn has_control(text: &str) -> bool {
    text.chars().any(char::is_control)
}

fn is_operation(name: &str) -> bool {
    ROUTES.iter().any(|route| route.name() == name)
}

fn form<T: DeserializeOwned>(words: Value) -> Result<T, Problem> {
    serde_json::from_value(words)
        .map_err(|error| Problem::new(Code::BadArgument, format!("the request can't be read: {error}")))
}

fn entry(listed: &Listed, origin: Origin, now_ms: i64) -> TokenEntry {
    let token = &listed.token;
    let is_stored = origin == Origin::State;
    TokenEntry {
        id: token.id.clone(),
        name: token.name.clone(),
        roles: roles(&token.roles),
        operations: token.operations.clone(),
        select: token.select.clone(),
        state: match (listed.revoked_ms, token.is_over(now_ms)) {
            (Some(_), _) => TokenState::Revoked,
            (None, true) => TokenState::Expired,
            (None, false) => TokenState::Valid,
        },
        origin: match origin {
            Origin::State => TokenOrigin::State,
            Origin::File => TokenOrigin::File,
        },
        expires_at: Time::from_millis(token.expires_ms),
        made_at: is_stored.then(|| Time::from_millis(listed.made_ms)),
        made_by: is_stored.then(|| listed.made_by.clone()),
        used_at: listed.used_ms.map(Time::from_millis),
        revoked_at: listed.revoked_ms.map(Time::from_millis),
    }
}

fn unread(error: &StateError) -> Problem {
    Problem::new(Code::Unavailable, format!("the state can't be read: {error}"))
}

fn unwritten(error: &StateError) -> Problem {
    Problem::new(Code::Unavailable, format!("the state can't be written: {error}"))
}
