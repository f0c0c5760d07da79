//! Changes of managed resources by hand, and the events that they are told of.

use std::time::Duration;

use watershed_controller::store::SqliteStore;
use watershed_controller::{Controller, Handle, Resource};
use watershed_core::Row;
use watershed_managers::{CloudEvent, EVENT_KIND, EventDoor, SetError, set_desired};
use watershed_reconcilers::managed::{KIND, Spec};

use super::operate::{document, listed};
use super::{INSTANCE, Instance, OpenError};
use crate::documents::{Operated, Operation, Phase};
use crate::exit::Exit;
use crate::report::document::Project;
use crate::report::explain::Life;
use crate::report::names;
use crate::socket::{Answer, ManagedChange, Refusal};
use crate::state_folder::StateFolder;

/// The time in which the store has to take changes made by hand.
const GRACE: Duration = Duration::from_secs(10);

impl Instance {
    /// Sets what is desired of a managed resource, or takes events in.
    pub(super) async fn operate_managed(&self, change: ManagedChange) -> Result<Answer, Refusal> {
        operate(self.controller(), &self.project, change, Life::Live).await
    }
}

/// Does the same in a folder that this process holds: it takes effect when the project runs.
///
/// # Errors
/// When the catalog can't be opened.
pub(crate) async fn operate_managed_alone(
    project: &Project,
    state: &StateFolder,
    change: ManagedChange,
) -> Result<Result<Answer, Refusal>, OpenError> {
    let store = SqliteStore::open(state.catalog()).await?;
    let controller = Controller::builder().instance(INSTANCE).store(store);
    let controller = controller.passive_kind(EVENT_KIND).start().await?;
    let answer = operate(controller.as_ref(), project, change, Life::AtRest).await;
    Ok(match controller.shutdown(GRACE).await {
        Ok(()) => answer,
        Err(error) => answer.and(Err(Refusal::new(Exit::NotNow, error.to_string()))),
    })
}

async fn operate(
    handle: &Handle,
    project: &Project,
    change: ManagedChange,
    life: Life,
) -> Result<Answer, Refusal> {
    let (operation, resources) = match change {
        ManagedChange::Set { name, desired } => {
            (Operation::Set, vec![set(handle, &name, &desired, life).await?])
        }
        ManagedChange::Events(events) => (Operation::Event, tell(handle, &events, life).await?),
    };
    Ok(document(project, operation, resources, life))
}

async fn set(handle: &Handle, typed: &str, desired: &str, life: Life) -> Result<Operated, Refusal> {
    let entries = listed(handle);
    let row = &names::resolve(&entries, typed)?.row;
    if row.kind.as_str() != KIND {
        let message = format!("`{}/{}` is no managed resource", row.kind, row.name);
        return Err(Refusal::new(Exit::Usage, message));
    }
    let spec = Resource::spec_of::<Spec>(row);
    let spec = spec.map_err(|error| Refusal::new(Exit::StateFolder, error.to_string()))?;
    let stages = &spec.spec.0.stages;
    if !stages.iter().any(|stage| stage == desired) {
        let message = format!(
            "\"{desired}\" is none of the stages of `{}/{}`",
            row.kind, row.name
        );
        return Err(Refusal::new(Exit::Usage, message).hint(format!("one of `{}`", stages.join("`, `"))));
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

fn not_set(error: &SetError) -> Refusal {
    let refusal = Refusal::new(
        match error {
            SetError::Owned { .. } | SetError::NoStage { .. } => Exit::Usage,
            SetError::Unreadable(_) => Exit::StateFolder,
            SetError::Unknown(_) | SetError::Refused(_) => Exit::NotNow,
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

/// Takes events in, and returns the resources that they concern.
async fn tell(handle: &Handle, events: &[CloudEvent], life: Life) -> Result<Vec<Operated>, Refusal> {
    let door = EventDoor::new(handle.clone(), [KIND]);
    let mut told = Vec::new();
    for event in events {
        let matched = door.deliver_to(event).await;
        let matched = matched.map_err(|error| Refusal::new(Exit::NotNow, error.to_string()))?;
        for key in matched {
            let Ok(found) = handle.get(key) else { continue };
            let mut detail = format!("of \"{}\" {}", event.kind, event.identity());
            if life == Life::AtRest {
                detail.push_str("; it takes effect when the project runs");
            }
            told.push(operated(&found.row, detail, life));
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
