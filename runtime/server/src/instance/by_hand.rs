//! Changes by hand: what is desired of managed resources, the events that they are told of, and snoozed alerts.

use std::sync::Arc;
use std::time::Duration;

use watershed_api::documents::{Operated, Operation, Phase, Time};
use watershed_api::request::ChangeByHand;
use watershed_api::{Answer, Code, Problem};
use watershed_controller::store::SqliteStore;
use watershed_controller::{Controller, Handle, Resource};
use watershed_core::{Row, Timestamp, Update};
use watershed_managers::{CloudEvent, EVENT_KIND, EventDoor, SetError, set_desired};
use watershed_reconcilers::alert;
use watershed_reconcilers::managed::{KIND, Spec};

use super::operate::{document, listed};
use super::{INSTANCE, Instance, OpenError};
use crate::report::document::Project;
use crate::report::explain::Life;
use crate::report::names;
use crate::state_folder::StateFolder;

/// The time in which the store has to take changes made by hand.
const GRACE: Duration = Duration::from_secs(10);

impl Instance {
    /// Carries a change out.
    pub(super) async fn change_by_hand(&self, change: ChangeByHand) -> Result<Answer, Problem> {
        operate(self.controller(), &self.project, change, Life::Live).await
    }
}

/// Does the same in a folder that this process holds: it takes effect when the project runs.
///
/// # Errors
/// When the catalog can't be opened.
pub(crate) async fn change_alone(
    project: &Project,
    state: &StateFolder,
    change: ChangeByHand,
) -> Result<Result<Answer, Problem>, OpenError> {
    let store = SqliteStore::open(state.catalog()).await?;
    let controller = Controller::builder().instance(INSTANCE).store(store);
    let controller = controller.passive_kind(EVENT_KIND).start().await?;
    let answer = operate(controller.as_ref(), project, change, Life::AtRest).await;
    Ok(match controller.shutdown(GRACE).await {
        Ok(()) => answer,
        Err(error) => answer.and(Err(Problem::new(Code::Unavailable, error.to_string()))),
    })
}

async fn operate(
    handle: &Handle,
    project: &Project,
    change: ChangeByHand,
    life: Life,
) -> Result<Answer, Problem> {
    let (operation, resources) = match change {
        ChangeByHand::Set { name, desired } => {
            (Operation::Set, vec![set(handle, &name, &desired, life).await?])
        }
        ChangeByHand::Events(body) => (Operation::Event, tell(handle, &events(&body)?, life).await?),
        ChangeByHand::Snooze { name, until_ms } => {
            let until = until_ms.map(Timestamp);
            (Operation::Snooze, vec![snooze(handle, &name, until, life).await?])
        }
    };
    Ok(document(project, operation, resources, life))
}

async fn set(handle: &Handle, typed: &str, desired: &str, life: Life) -> Result<Operated, Problem> {
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
            refusal.hint(format!("`watershed set {} desired=STAGE`", owner.name))
        }
        _ => refusal,
    }
}

/// Tells nobody of an alert until a time; without one, ends that.
async fn snooze(
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

/// Reads one event, or a list of them.
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

/// Takes events in, and returns the resources that they concern.
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
