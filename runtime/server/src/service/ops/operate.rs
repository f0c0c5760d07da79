//! Pausing, resuming and cancelling resources.

use std::time::Duration;

use watershed_api::Problem;
use watershed_api::documents::{OperateDocument, Operated, Operation, Phase};
use watershed_api::request::NamesRequest;
use watershed_controller::resource::Stage;
use watershed_controller::{Handle, Select};

use crate::instance::refused;
use crate::out::Out;
use crate::report::document::Project;
use crate::report::explain::Life;
use crate::report::{Entry, names};
use crate::service::Principal;
use crate::service::place::Place;

/// The time that a cancelled run has to return before the state is reported anyway.
const STOPS_WITHIN: Duration = Duration::from_secs(5);

/// Pauses resources, so that they are not run.
pub(crate) async fn pause(
    place: &impl Place,
    _: &Principal,
    input: NamesRequest,
    _: &Out,
) -> Result<OperateDocument, Problem> {
    change(place, Operation::Pause, &input.names).await
}

/// Resumes paused resources.
pub(crate) async fn resume(
    place: &impl Place,
    _: &Principal,
    input: NamesRequest,
    _: &Out,
) -> Result<OperateDocument, Problem> {
    change(place, Operation::Resume, &input.names).await
}

/// Cancels the runs of resources.
pub(crate) async fn cancel(
    place: &impl Place,
    _: &Principal,
    input: NamesRequest,
    _: &Out,
) -> Result<OperateDocument, Problem> {
    if place.life() == Life::Live {
        return change(place, Operation::Cancel, &input.names).await;
    }
    // Nothing runs there.
    let entries = place.listing().await?.entries;
    let mut resources = Vec::new();
    for name in &input.names {
        let entry = names::resolve(&entries, name)?;
        resources.push(Operated {
            kind: entry.row.kind.to_string(),
            name: entry.row.name.to_string(),
            changed: false,
            paused: entry.row.paused,
            phase: Phase::Idle,
            detail: String::new(),
        });
    }
    Ok(document(
        place.project(),
        Operation::Cancel,
        resources,
        Life::AtRest,
    ))
}

async fn change(
    place: &impl Place,
    operation: Operation,
    typed: &[String],
) -> Result<OperateDocument, Problem> {
    let hands = place.hands().await?;
    let changed = changed(&hands.handle, operation, typed, place.life()).await;
    let resources = hands.end(changed).await?;
    Ok(document(place.project(), operation, resources, place.life()))
}

async fn changed(
    handle: &Handle,
    operation: Operation,
    typed: &[String],
    life: Life,
) -> Result<Vec<Operated>, Problem> {
    let entries = listed(handle);
    let named: Result<Vec<&Entry>, Problem> =
        typed.iter().map(|name| names::resolve(&entries, name)).collect();
    let mut resources = Vec::new();
    for entry in named? {
        let uid = entry.row.uid;
        let done = match operation {
            Operation::Pause => handle.pause(uid).await,
            Operation::Resume => handle.resume(uid).await,
            _ => handle.cancel(uid).await,
        };
        done.map_err(|error| refused(&error))?;
        if operation == Operation::Cancel {
            until_stopped(handle, entry).await;
        }
        resources.push(operated(operation, entry, handle, life));
    }
    Ok(resources)
}

/// Waits a while until the cancelled run has returned.
async fn until_stopped(handle: &Handle, entry: &Entry) {
    let stopped = |found: Option<&watershed_controller::Resource>| {
        !found.is_some_and(|found| matches!(found.status.stage, Stage::Running { cancelled: true, .. }))
    };
    // What has not returned by then is told so.
    let _ = handle.wait_until(entry.row.key(), stopped, STOPS_WITHIN).await;
}

fn operated(operation: Operation, before: &Entry, handle: &Handle, life: Life) -> Operated {
    let now = handle.get(before.row.uid).ok();
    let moved = !matches!(before.status.stage, Stage::Settled(_));
    let changed = match operation {
        Operation::Pause => !before.row.paused,
        Operation::Resume => before.row.paused,
        Operation::Cancel => moved,
        // They are told where they are made.
        _ => false,
    };
    let phase = match now.as_ref().map(|now| &now.status.stage) {
        Some(Stage::Pending) if life == Life::Live => Phase::Pending,
        Some(Stage::Running { .. }) => Phase::Running,
        _ => Phase::Idle,
    };
    Operated {
        kind: before.row.kind.to_string(),
        name: before.row.name.to_string(),
        changed,
        paused: now.map_or(before.row.paused, |now| now.row.paused),
        phase,
        detail: String::new(),
    }
}

/// Lists all resources of a controller.
pub(super) fn listed(handle: &Handle) -> Vec<Entry> {
    let resources = handle.list(Select::all()).resources.into_iter();
    resources.map(Entry::from).collect()
}

/// Returns the document of a change by hand.
pub(super) fn document(
    project: &Project,
    command: Operation,
    resources: Vec<Operated>,
    life: Life,
) -> OperateDocument {
    OperateDocument {
        schema: OperateDocument::SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command,
        project: project.name.clone(),
        root: project.root.display().to_string(),
        environment: project.environment.clone(),
        live: life == Life::Live,
        resources,
    }
}
