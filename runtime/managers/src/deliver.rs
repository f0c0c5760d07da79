//! The door for events: each match is stored, and the resource is told to look.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use watershed_controller::{EditError, Handle, Key, Kind, Refusal, Resource, Select, json_message};

use crate::cloud::{BadEvent, CloudEvent};
use crate::desired::desired_of;
use crate::record::record_of;

/// The kind of the hidden resources that events are stored as. It needs no reconciler.
pub const EVENT_KIND: &str = "event";
/// The newest events of a resource are kept, so many of them: for as long one that comes again counts once.
pub const EVENTS_KEPT: usize = 64;

/// An event as it is stored.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Received {
    /// The event.
    pub event: CloudEvent,
}

json_message!(Received, format = 1);

/// A resource that an event concerns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delivery {
    /// The resource.
    pub key: Key,
    /// False if the event had come before, and counts no second time.
    pub is_new: bool,
}

/// Events that were taken in by one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken {
    /// The number of events.
    pub events: usize,
    /// The number of times that one concerns a resource.
    pub matched: usize,
}

/// The reasons for which a request with events is not answered with 202.
#[derive(Debug, thiserror::Error)]
pub enum NotTaken {
    /// It is no request with events.
    #[error(transparent)]
    Bad(#[from] BadEvent),
    /// Its events are stored in part or not at all, and may be sent again.
    #[error("the events are not stored")]
    NotStored(#[from] EditError),
}

impl NotTaken {
    /// Returns the HTTP status that says so: 413 for what is too much, 400 for what is wrong, 503 for what may be
    /// sent again.
    pub fn status(&self) -> u16 {
        match self {
            Self::Bad(BadEvent::TooLarge | BadEvent::TooMany) => 413,
            Self::Bad(BadEvent::Body(_) | BadEvent::Attribute { .. }) => 400,
            Self::NotStored(_) => 503,
        }
    }
}

/// Takes events in for the resources of some kinds. Cheap to clone.
///
/// ```
/// # use watershed_controller::Controller;
/// use watershed_managers::{CloudEvent, EventDoor};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let controller = Controller::builder().start().await?;
/// let door = EventDoor::new(controller.handle(), ["session", "pod"]);
/// let matched = door.deliver(&CloudEvent::new("1", "/lab", "lab.done").about("monday")).await?;
/// assert_eq!(matched, 0, "there is no session");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct EventDoor {
    handle: Handle,
    kinds: Vec<Kind>,
}

impl EventDoor {
    /// Returns the door to the resources of these kinds, which are managed ones.
    pub fn new<K: Into<Kind>>(handle: Handle, kinds: impl IntoIterator<Item = K>) -> Self {
        Self {
            handle,
            kinds: kinds.into_iter().map(Into::into).collect(),
        }
    }

    /// Takes in the events of an HTTP request, in whichever mode its headers say (names in lower case), and returns
    /// when all are stored: the answer is 202 then.
    ///
    /// Cancel-safe, as [`deliver`](Self::deliver).
    ///
    /// # Errors
    /// [`NotTaken`] with the status of the answer. Nothing is stored of a request that is wrong.
    pub async fn receive(&self, headers: &BTreeMap<String, String>, body: &[u8]) -> Result<Taken, NotTaken> {
        let events = CloudEvent::read(headers, body)?;
        let mut taken = Taken {
            events: events.len(),
            matched: 0,
        };
        for event in &events {
            taken.matched += self.deliver(event).await?;
        }
        Ok(taken)
    }

    /// Stores an event for each resource that it concerns, and returns how many those are, also if it had come before.
    ///
    /// All are stored when this returns: each has its effect once, in spite of any crash. Cancel-safe: of a dropped call
    /// the event is stored for some or all, and may be sent again.
    ///
    /// # Errors
    /// If it could not be stored.
    pub async fn deliver(&self, event: &CloudEvent) -> Result<usize, EditError> {
        Ok(self.deliver_to(event).await?.len())
    }

    /// The same, and returns the resources that it concerns.
    ///
    /// # Errors
    /// If it could not be stored.
    pub async fn deliver_to(&self, event: &CloudEvent) -> Result<Vec<Key>, EditError> {
        let delivered = self.deliver_each(event).await?.into_iter();
        Ok(delivered.map(|delivery| delivery.key).collect())
    }

    /// The same, and says of each resource whether the event is new to it.
    ///
    /// # Errors
    /// If it could not be stored.
    pub async fn deliver_each(&self, event: &CloudEvent) -> Result<Vec<Delivery>, EditError> {
        let mut matched = Vec::new();
        for kind in &self.kinds {
            let listing = self.handle.list(Select::kind(kind.clone()).with_hidden());
            let concerned = listing
                .resources
                .iter()
                .filter(|found| is_concerned(found, event));
            for resource in concerned {
                let is_new = self.store(event, resource).await?;
                let key = resource.key();
                matched.push(Delivery { key, is_new });
            }
        }
        Ok(matched)
    }

    /// Stores an event for a resource. Returns false if it is stored already.
    async fn store(&self, event: &CloudEvent, target: &Resource) -> Result<bool, EditError> {
        // Sources are URIs of any length, and names are neither with slashes nor long.
        let identity = blake3::hash(event.identity().as_bytes()).to_hex();
        let name = format!("{identity} {}", target.row.uid);
        let mut is_new = self.handle.get(Key::new(EVENT_KIND, name.as_str())).is_err();
        if is_new {
            let received = Received { event: event.clone() };
            let mut new = Resource::declare(EVENT_KIND, &name, &received)?;
            new.owner = Some(target.row.uid);
            new.hidden = true;
            match self.handle.create(new).await {
                Ok(_) => {}
                // It was stored meanwhile.
                Err(EditError::Refused(Refusal::NameTaken { .. })) => is_new = false,
                // It has gone meanwhile, and needs nothing.
                Err(EditError::Refused(Refusal::UnknownOwner { .. })) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        // Also for one that came before: it may not have been told. One that is gone needs nothing.
        let _ = self.handle.nudge(target.row.uid).await;
        Ok(is_new)
    }
}

/// Returns true if a rule of the resource, or a step of it that waits, is for the event.
fn is_concerned(resource: &Resource, event: &CloudEvent) -> bool {
    let name = resource.row.name.as_str();
    let by_rule = desired_of(&resource.row.spec)
        .is_ok_and(|desired| desired.on_events.iter().any(|rule| rule.on.matches(event, name)));
    let by_step = || {
        let record = resource.row.state.as_deref().map(record_of)?.ok()?;
        let current = record.current?;
        Some(match current.awaiting {
            Some(awaiting) => awaiting.event.matches(event, name),
            // The answer may come before the step has said what it waits for.
            None => current.under_way && event.subject.as_deref() == Some(name),
        })
    };
    by_rule || by_step().unwrap_or(false)
}
