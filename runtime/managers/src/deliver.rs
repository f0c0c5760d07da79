//! The delivery of events: storage for each resource concerned, which is then asked to look.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use watershed_controller::{EditError, Handle, Key, Kind, Refusal, Resource, Select, json_message};

use crate::cloud::{BadEvent, CloudEvent};
use crate::desired::desired_of;
use crate::record::record_of;

/// The kind of the hidden resources that store events. It has no reconciler.
pub const EVENT_KIND: &str = "event";
/// The largest number of events kept for each resource; the oldest are deleted. A repetition is recognized while its
/// event is kept.
pub const EVENTS_KEPT: usize = 64;

/// The spec of a stored event.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Received {
    /// The event as received.
    pub event: CloudEvent,
}

json_message!(Received, format = 1);

/// The delivery of an event to one resource.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delivery {
    /// The resource that the event concerns.
    pub key: Key,
    /// False if the resource already has this event, so that it has no further effect.
    pub is_new: bool,
}

/// The counts of events that one request delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken {
    /// The number of events in the request.
    pub events: usize,
    /// The number of deliveries, one for each event and resource concerned.
    pub matched: usize,
}

/// The reason why a request with events is not answered with status 202.
#[derive(Debug, thiserror::Error)]
pub enum NotTaken {
    /// The request contains no valid events.
    #[error(transparent)]
    Bad(#[from] BadEvent),
    /// Some or all events could not be stored; the request may be repeated.
    #[error("the events are not stored")]
    NotStored(#[from] EditError),
}

impl NotTaken {
    /// Returns the HTTP status of the answer: 413 for too much, 400 for invalid events, 503 for a request to repeat.
    pub fn status(&self) -> u16 {
        match self {
            Self::Bad(BadEvent::TooLarge | BadEvent::TooMany) => 413,
            Self::Bad(BadEvent::Body(_) | BadEvent::Attribute { .. }) => 400,
            Self::NotStored(_) => 503,
        }
    }
}

/// A receiver of events for the resources of some kinds. Cheap to clone.
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
    /// Returns a receiver for the resources of these kinds, all of them kinds of managed resources.
    pub fn new<K: Into<Kind>>(handle: Handle, kinds: impl IntoIterator<Item = K>) -> Self {
        Self {
            handle,
            kinds: kinds.into_iter().map(Into::into).collect(),
        }
    }

    /// Delivers the events of an HTTP request in any mode, and returns once all are stored, so that the answer is 202.
    /// Header names must be in lower case.
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

    /// Stores an event for each resource that it concerns, and returns the number of those resources. Repetitions count
    /// too.
    ///
    /// All are stored when this returns: each has its effect once, in spite of any crash. Cancel-safe: of a dropped call
    /// the event is stored for some or all, and may be sent again.
    ///
    /// # Errors
    /// If it could not be stored.
    pub async fn deliver(&self, event: &CloudEvent) -> Result<usize, EditError> {
        Ok(self.deliver_to(event).await?.len())
    }

    /// Stores an event like [`deliver`](Self::deliver), and returns the resources that it concerns.
    ///
    /// # Errors
    /// If it could not be stored.
    pub async fn deliver_to(&self, event: &CloudEvent) -> Result<Vec<Key>, EditError> {
        let delivered = self.deliver_each(event).await?.into_iter();
        Ok(delivered.map(|delivery| delivery.key).collect())
    }

    /// Stores an event like [`deliver`](Self::deliver), and returns for each resource whether the event is new to it.
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

    /// Stores an event for a resource, and asks the resource to look. Returns false if the event is already stored or
    /// the resource is gone.
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

/// Returns true if a rule or a waiting step of the resource is meant for the event.
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
