//! Changes of a project as server-sent events.

use std::convert::Infallible;

use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::StreamExt as _;
use serde_json::json;
use watershed_controller as controller;
use watershed_controller::resource::Revision;
use watershed_controller::watch::Changes;

use crate::routes::{Projects, Refused};
use crate::view;

/// The place from which a reader goes on.
#[derive(serde::Deserialize)]
pub(crate) struct Place {
    /// The revision of a listing.
    from: Option<u64>,
}

/// `GET /PROJECT/events?from=REVISION`: what is committed after a listing. The id of each event is its revision, so a
/// browser that lost its connection goes on where it was by itself.
///
/// A reader may be slow: it costs bounded memory, and at the bound it gets `lagged`, after which it lists again.
pub(crate) async fn stream(
    State(projects): State<Projects>,
    Path(project): Path<String>,
    Query(place): Query<Place>,
    headers: HeaderMap,
) -> impl IntoResponse {
    let controller = projects.find(&project)?.controller().clone();
    let resumed = headers
        .get("last-event-id")
        .and_then(|id| id.to_str().ok()?.parse().ok());
    let now = || controller.list(controller::Select::new()).revision.0;
    let from = Revision(resumed.or(place.from).unwrap_or_else(now));
    let watch = controller.watch(from);
    let events = futures::stream::unfold(watch, async |mut watch| Some((watch.next().await?, watch)));
    let events = events
        .filter_map(async |event| encode(event))
        .map(Ok::<_, Infallible>)
        .take_until(projects.stopping.clone().cancelled_owned());
    Ok::<_, Refused>(Sse::new(events).keep_alive(KeepAlive::default()))
}

/// Statuses, and runs that found nothing to do, pass too quickly for a person to read and belong to no revision: they
/// are left out.
fn encode(event: controller::Event) -> Option<Event> {
    match event {
        controller::Event::Changed(changes) => Some(changed(&changes)),
        controller::Event::Status(_) => None,
        controller::Event::Lagged => Some(Event::default().event("lagged").data("list again")),
    }
}

fn changed(
    Changes {
        revision,
        rows,
        removed,
    }: &Changes,
) -> Event {
    let changed: Vec<_> = rows
        .iter()
        .filter(|row| !row.hidden)
        .map(|row| view::row(row))
        .collect();
    let removed: Vec<_> = removed.iter().map(|removed| removed.key.to_string()).collect();
    let data = json!({ "changed": changed, "removed": removed });
    Event::default()
        .event("changed")
        .id(revision.0.to_string())
        .data(data.to_string())
}
