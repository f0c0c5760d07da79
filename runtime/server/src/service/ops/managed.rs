//! Changes by hand: the stage of managed resources, events for them, and snoozed alerts.

use std::sync::Arc;

use watershed_api::documents::{OperateDocument, Operated, Operation, Phase, Time};
use watershed_api::request::{EventRequest, SetRequest, SnoozeRequest};
use watershed_api::{Code, Problem, hint};
use watershed_controller::{Handle, Resource};
use watershed_core::{Row, Timestamp, Update};
use watershed_managers::{CloudEvent, EventDoor, SetError, set_desired};
use watershed_reconcilers::alert;
use watershed_reconcilers::managed::{KIND, Spec};

use super::operate::{document, listed};
use crate::out::Out;
use crate::report::explain::Life;
use crate::report::names;
use crate::service::Principal;
use crate::service::place::Place;

/// Sets the desired stage of a managed resource.
pub(crate) async fn set(
    place: &impl Place,
    _: &Principal,
    input: SetRequest,
    _: &Out,
) -> Result<OperateDocument, Problem> {
    let hands = place.hands().await?;
    let done = set_stage(&hands.handle, &input.name, &input.desired, place.life()).await;
    let done = hands.end(done).await?;
    Ok(document(
        place.project(),
        Operation::Set,
        vec![done],
        place.life(),
    ))
}

/// Sends events to managed resources.
pub(crate) async fn event(
    place: &impl Place,
    _: &Principal,
    input: EventRequest,
    _: &Out,
) -> Result<OperateDocument, Problem> {
    let events = events(&input.body)?;
    let hands = place.hands().await?;
    let told = tell(&hands.handle, &events, place.life()).await;
    let told = hands.end(told).await?;
    Ok(document(place.project(), Operation::Event, told, place.life()))
}

/// Snoozes an alert: nobody is notified for a while.
pub(crate) async fn snooze(
    place: &impl Place,
    _: &Principal,
    input: SnoozeRequest,
    _: &Out,
) -> Result<OperateDocument, Problem> {
    let until = input.until_ms.map(Timestamp);
    let hands = place.hands().await?;
    let done = snooze_alert(&hands.handle, &input.name, until, place.life()).await;
    let done = hands.end(done).await?;
    Ok(document(
        place.project(),
        Operation::Snooze,
        vec![done],
        place.life(),
    ))
}

async fn set_stage(handle: &Handle, typed: &str, desired: &str, life: Life) -> Result<Operated, Problem> {
    let entries = listed(handle);
    let row = &names::resolve(&entries, typed)?.row;
    if row.kind.as_str() != KIND {
        let message = format!("`{}/{}` is no managed resource", row.kind, row.name);
        return Err(Problem::new(Code::WrongState, message));
    }
    let spec = Resource::spec_of::<Spec>(row);
    let spec = spec.map_err(|error| Problem::new(Code::StateUnreadable, error.to_string()))?;
    let stages = &spec.spec.0.stages;
    if !stages.iter().any(|stage| stage == desired) {
        let message = format!(
            "\"{desired}\" is none of the stages of `{}/{}`",
            row.kind, row.name
        );
        return Err(
            Problem::new(Code::BadArgument, message).hint(format!("one of `{}`", stages.join("`, `")))
        );
    }
    let before = set_desired(handle, row.key(), desired.into()).await;
    let before = before.map_err(|error| not_set(&error))?;
    let mut detail = format!("desired {before} -> {desired} (until its file changes it)");
    if life == Life::AtRest {
        detail.push_str("; it takes effect when the project runs");
    }
    Ok(Operated {
        changed: before.as_str() != desired,
        ..operated(row, detail, life)
    })
}

fn not_set(error: &SetError) -> Problem {
    let refusal = Problem::new(
        match error {
            SetError::Owned { .. } => Code::WrongState,
            SetError::NoStage { .. } => Code::BadArgument,
            SetError::Unreadable(_) => Code::StateUnreadable,
            SetError::Unknown(_) | SetError::Refused(_) => Code::Unavailable,
        },
        error.to_string(),
    );
    match error {
        SetError::Owned { owner, .. } => {
            refusal.hint(hint::operation("set", [owner.name.as_str(), "desired=STAGE"]))
        }
        _ => refusal,
    }
}

/// Snoozes an alert until a time, or ends the snooze if there is none.
async fn snooze_alert(
    handle: &Handle,
    typed: &str,
    until: Option<Timestamp>,
    life: Life,
) -> Result<Operated, Problem> {
    let entries = listed(handle);
    // Models may have the names of alerts.
    let key = match typed.contains('/') {
        true => typed.to_owned(),
        false => format!("{}/{typed}", alert::KIND),
    };
    let row = &names::resolve(&entries, &key)?.row;
    if row.kind.as_str() != alert::KIND {
        let message = format!("`{}/{}` is no alert", row.kind, row.name);
        return Err(Problem::new(Code::WrongState, message));
    }
    let now = Timestamp(Time::now().millis());
    if let Some(past) = until.filter(|until| *until <= now) {
        let message = format!(
            "`{}` is over, and so is whatever ends there",
            Time::from_millis(past.0)
        );
        return Err(Problem::new(Code::BadArgument, message).hint("say a moment that is still to come"));
    }
    let before = alert::snooze::end(&row.labels, now);
    let update = Update {
        labels: Some(Arc::new(alert::snooze::labels(&row.labels, until, now))),
        ..Update::default()
    };
    let refused = |error: String| Problem::new(Code::Unavailable, error);
    let edited = handle.update(row.uid, update).await;
    edited.map_err(|error| refused(error.to_string()))?;
    if life == Life::Live {
        // It learns of the end, so that it looks again then.
        let nudged = handle.reconcile(row.uid).await;
        nudged.map_err(|error| refused(error.to_string()))?;
    }
    let detail = match until {
        Some(until) => format!(
            "nobody is told until {}",
            watershed_delivery::message::instant(until)
        ),
        None => "people are told again".to_owned(),
    };
    Ok(Operated {
        changed: before != until,
        ..operated(row, detail, life)
    })
}

/// Reads one event, or a list of events, from JSON.
fn events(body: &str) -> Result<Vec<CloudEvent>, Problem> {
    let body = body.trim_start();
    let events = match body.starts_with('[') {
        true => CloudEvent::batch(body.as_bytes()),
        false => CloudEvent::structured(body.as_bytes()).map(|event| vec![event]),
    };
    events.map_err(|error| {
        Problem::new(Code::BadArgument, format!("no event: {error}"))
            .hint("a CloudEvent 1.0 as JSON, with `specversion`, `id`, `source` and `type`")
    })
}

/// Delivers events, and returns the resources that they concern.
async fn tell(handle: &Handle, events: &[CloudEvent], life: Life) -> Result<Vec<Operated>, Problem> {
    let door = EventDoor::new(handle.clone(), [KIND]);
    let mut told = Vec::new();
    for event in events {
        let matched = door.deliver_each(event).await;
        let matched = matched.map_err(|error| Problem::new(Code::Unavailable, error.to_string()))?;
        for delivery in matched {
            let Ok(found) = handle.get(delivery.key) else {
                continue;
            };
            let mut detail = format!("of \"{}\" {}", event.kind, event.identity());
            match (delivery.is_new, life) {
                (false, _) => detail.push_str("; it had come before, and counts once"),
                (true, Life::AtRest) => detail.push_str("; it takes effect when the project runs"),
                (true, Life::Live) => {}
            }
            told.push(Operated {
                changed: delivery.is_new,
                ..operated(&found.row, detail, life)
            });
        }
    }
    Ok(told)
}

fn operated(row: &Row, detail: String, life: Life) -> Operated {
    Operated {
        kind: row.kind.to_string(),
        name: row.name.to_string(),
        changed: true,
        paused: row.paused,
        phase: match life {
            Life::Live => Phase::Pending,
            Life::AtRest => Phase::Idle,
        },
        detail,
    }
}
