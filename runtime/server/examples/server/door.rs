//! The door for CloudEvents: what other programs tell managed resources.

use std::collections::BTreeMap;

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use watershed_managers::{BODY_MAX, BadEvent, EventDoor, NotTaken};

use crate::routes::Projects;

/// The kind of managed resources in files.
const KIND: &str = "managed";

/// `POST /PROJECT/events`: takes in one CloudEvent or a batch, in the mode that the headers say.
///
/// 202 is answered when all are stored, and says how many resources they concern; 400 names the attribute that is wrong,
/// 413 means too much at once. Whoever got no answer sends the same again: each event counts once.
pub(crate) async fn receive(
    State(projects): State<Projects>,
    Path(project): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<Value>), Response> {
    let door = EventDoor::new(
        projects
            .find(&project)
            .map_err(IntoResponse::into_response)?
            .controller()
            .clone(),
        [KIND],
    );
    let body = to_bytes(body, BODY_MAX).await;
    let body = body.map_err(|_| not_taken(&NotTaken::Bad(BadEvent::TooLarge)))?;
    let taken = door.receive(&texts(&headers), &body).await;
    let taken = taken.map_err(|why| not_taken(&why))?;
    let told = json!({ "events": taken.events, "told": taken.matched });
    Ok((StatusCode::ACCEPTED, Json(told)))
}

/// Headers as texts, their names in lower case; the attributes of an event are ASCII.
fn texts(headers: &HeaderMap) -> BTreeMap<String, String> {
    let text = |(name, value): (&axum::http::HeaderName, &axum::http::HeaderValue)| {
        Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
    };
    headers.iter().filter_map(text).collect()
}

fn not_taken(why: &NotTaken) -> Response {
    let status = StatusCode::from_u16(why.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, Json(json!({ "message": why.to_string() }))).into_response()
}
