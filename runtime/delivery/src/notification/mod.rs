//! Notifications: the hidden kind of resource, each of which is one message to one receiver (rules N6 to N8).
//!
//! Whoever sends creates it under the message's key, so a repetition creates nothing. It reads nothing, so no change of
//! data cancels it, and it belongs to nobody, so what is not delivered when its sender is deleted still goes. An attempt
//! is stored before it is made: after a crash in the middle it is made again, with the same key.

pub mod record;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use watershed_controller::kind::Nudging;
use watershed_controller::message::{DecodeError, EncodeError};
use watershed_controller::{
    Builder, Context, Error, Handle, KindOptions, NewResource, Outcome, Reconciler, Resource, Select,
    Timestamp, Uid, json_message,
};
use watershed_locks::Unpoisoned;

use self::record::{Record, Standing};
use crate::crash;
use crate::message::{Key, Message, Sender, shown};
use crate::notify::{Attempt, DeliveryError, Notifier, Receipt};
use crate::policy::{self, Queued};

/// Kind under which the catalog stores notifications.
pub const KIND: &str = "notification";
/// Error code of a message that could not be delivered.
pub const DEAD: &str = "delivery-failed";
/// Label that groups the notifications of one sender to one receiver, which are sent in order.
const LANE: &str = "lane";

/// The most messages that are sent at once.
pub const AT_ONCE: usize = 32;
/// The most messages that are sent at once over one connector, since providers throttle senders.
pub const CONNECTOR_AT_ONCE: usize = 4;
/// Time for which a message waits for a free slot of its connector before it yields to other connectors' messages.
const TURN_WITHIN: Duration = Duration::from_secs(1);
/// Delay before a message that has yielded tries for a slot again.
const TURN_AGAIN: Duration = Duration::from_secs(2);
/// Interval at which a waiting message checks its predecessors even without a notification of their end.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// Time limit of an attempt, whatever the notifier does.
const ATTEMPT_WITHIN: Duration = Duration::from_secs(180);
/// Interval at which a message checks whether its sender has recorded it.
const NOTED_WITHIN: Duration = Duration::from_secs(24 * 3_600);

/// The addressee of a message: a connector and an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Receiver {
    /// Name of the connector over which the message is sent.
    pub connector: String,
    /// Address or channel, as a template; empty if the connector has only one.
    pub to: String,
    /// Variables that the address template reads, as stored in the catalog.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
}

impl Receiver {
    /// Returns the receiver's identity, a part of message keys.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{} {}", self.connector, self.to)
    }

    /// Returns the receiver's label for people, without webhook addresses, which are secrets.
    #[must_use]
    pub fn label(&self) -> String {
        match self.to.is_empty() || self.to.contains("://") || self.to.contains("{{") {
            true => format!("connector \"{}\"", self.connector),
            false => format!("{} over connector \"{}\"", shown(&self.to), self.connector),
        }
    }
}

/// The spec of a notification: one message to one receiver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notification {
    /// The message to deliver.
    pub message: Message,
    /// The addressee.
    pub receiver: Receiver,
    /// Uid of the sending resource.
    pub sender: Uid,
    /// Position among the sender's messages; lower ones go first.
    pub order: u64,
}

json_message!(Notification, format = 1);

impl Notification {
    /// Creates a one-line message to the only receiver. A sender sends the same line only once.
    #[must_use]
    pub fn one_line(sender: Uid, name: Sender, order: u64, title: impl Into<String>) -> Self {
        let (title, moment, receiver) = (title.into(), Timestamp::default(), Receiver::default());
        let key = Key::new(sender, moment, &title, &receiver.id());
        Self {
            message: Message::one_line(key, name, moment, title),
            receiver,
            sender,
            order,
        }
    }

    /// Returns the resource that declares this notification, named by the message's key.
    ///
    /// # Errors
    /// When it can't be encoded.
    pub fn declare(&self) -> Result<NewResource, EncodeError> {
        let mut new = Resource::declare(KIND, self.message.key.as_str(), self)?;
        new.hidden = true;
        new.labels = Arc::new(BTreeMap::from([(LANE.into(), self.lane().into())]));
        Ok(new)
    }

    /// Returns the lane: the name of the queue in which messages keep their order.
    fn lane(&self) -> String {
        let lane = format!("{} {}", self.sender, self.receiver.id());
        blake3::hash(lane.as_bytes()).to_hex().to_string()
    }
}

/// Access to connectors and their secrets, implemented by the host of this kind.
pub trait Connect: Send + Sync + 'static {
    /// Returns the notifier of a receiver, and the receiver's address with templates executed.
    ///
    /// # Errors
    /// When there is none, or its settings can't be used.
    fn connect(
        &self,
        handle: &Handle,
        receiver: &Receiver,
    ) -> Result<(Arc<dyn Notifier>, String), DeliveryError>;

    /// Removes secrets from a text before it is stored.
    fn redact(&self, text: String) -> String {
        text
    }

    /// Returns true if the sender has recorded that it created this message, and so never creates it again.
    fn is_noted(&self, handle: &Handle, sender: Uid, key: &Key) -> bool {
        let _ = (handle, sender, key);
        true
    }
}

/// A single notifier that delivers the messages to all receivers.
struct Only(Arc<dyn Notifier>);

impl Connect for Only {
    fn connect(&self, _: &Handle, to: &Receiver) -> Result<(Arc<dyn Notifier>, String), DeliveryError> {
        Ok((Arc::clone(&self.0), to.to.clone()))
    }
}

/// Reconciler of notifications, which delivers each message.
pub struct Notifications {
    connect: Arc<dyn Connect>,
    permits: Mutex<BTreeMap<String, Arc<Semaphore>>>,
    has_jitter: bool,
}

impl Notifications {
    /// Creates the kind with the host's access to connectors.
    pub fn new(connect: impl Connect) -> Self {
        Self {
            connect: Arc::new(connect),
            permits: Mutex::default(),
            has_jitter: true,
        }
    }

    /// Creates the kind with a single notifier for all receivers.
    pub fn over(notifier: impl Notifier + 'static) -> Self {
        Self::new(Only(Arc::new(notifier)))
    }

    /// Removes the jitter of waits, for tests.
    #[must_use]
    pub fn without_jitter(mut self) -> Self {
        self.has_jitter = false;
        self
    }

    /// Registers the kind. The caller raises the controller's concurrency limit by [`AT_ONCE`].
    #[must_use]
    pub fn register(self, builder: Builder) -> Builder {
        let options = KindOptions::new(KIND)
            .concurrency(AT_ONCE)
            .nudging(Nudging {
                interval: Duration::from_millis(1),
                longest_wait: Duration::from_millis(100),
            })
            .requeue_interval(Duration::from_millis(1));
        builder.kind(options, self)
    }

    fn draw(&self) -> u32 {
        if !self.has_jitter {
            return 0;
        }
        // The keys of a new hasher are random, which is all that is needed.
        let random = RandomState::new().build_hasher().finish();
        u32::try_from(random & u64::from(u32::MAX)).unwrap_or(0)
    }

    /// Acquires a slot for sending over a connector; none if all slots stay taken for [`TURN_WITHIN`].
    async fn place(&self, connector: &str) -> Option<OwnedSemaphorePermit> {
        let semaphore = {
            let mut permits = self.permits.lock().unpoisoned();
            let of = permits.entry(connector.to_owned());
            Arc::clone(of.or_insert_with(|| Arc::new(Semaphore::new(CONNECTOR_AT_ONCE))))
        };
        timeout(TURN_WITHIN, semaphore.acquire_owned()).await.ok()?.ok()
    }

    async fn attempt(&self, context: &Context<Self>, number: u32) -> Result<Receipt, DeliveryError> {
        let spec = context.spec();
        let (notifier, to) = self.connect.connect(&context.controller(), &spec.receiver)?;
        let attempt = Attempt {
            number,
            epoch: context.epoch().0,
            to: &to,
        };
        let delivered = timeout(ATTEMPT_WITHIN, notifier.deliver(&spec.message, attempt)).await;
        delivered.unwrap_or_else(|_| Err(DeliveryError::transient("it took too long")))
    }

    /// Keeps a message that is delivered or dead until its retention ends, then deletes the resource.
    async fn keep(
        &self,
        context: &Context<Self>,
        record: &Record,
        until: Timestamp,
    ) -> Result<Outcome, Error> {
        let spec = context.spec();
        if context.now() < until {
            return said(spec, record, Some(until));
        }
        let handle = context.controller();
        // A sender that has not noted it would send it once more.
        if !self.connect.is_noted(&handle, spec.sender, &spec.message.key) {
            return said(spec, record, Some(context.now().after(NOTED_WITHIN)));
        }
        let deleted = handle.delete(context.uid()).await;
        deleted.map_err(|error| Error::transient("delete", error.to_string()))?;
        Ok(Outcome::changed())
    }
}

impl Reconciler for Notifications {
    type Spec = Notification;
    type State = Record;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let before = context.state().cloned().unwrap_or_default();
        let mut record = before.clone();
        let refreshes = context.refreshes();
        record.answer(refreshes.plain.saturating_add(refreshes.full));
        if let Some(until) = record.kept_until() {
            if record != before {
                store(&context, &record).await?;
            }
            return self.keep(&context, &record, until).await;
        }
        let now = context.now();
        if let Some(next) = policy::known_next(record.next, now) {
            return said(context.spec(), &record, Some(next));
        }
        let others: Vec<Queued> = lane(&context)?.iter().map(|(_, queued)| *queued).collect();
        if !policy::is_its_turn(context.spec().order, &others) {
            return Ok(Outcome::unchanged()
                .unready("it waits for an earlier message to the same receiver")
                .requeue_after(LOOK_AGAIN));
        }
        let Some(_place) = self.place(&context.spec().receiver.connector).await else {
            return Ok(Outcome::unchanged()
                .unready("it waits for its connector")
                .requeue_after(TURN_AGAIN));
        };
        record.begin(now);
        store(&context, &record).await?;
        crash::point(crash::BEGUN);
        let ended = tokio::select! {
            biased;
            // The next invocation repeats it: whether it arrived is not known.
            () = context.cancellation().cancelled() => return Ok(Outcome::unchanged()),
            ended = self.attempt(&context, record.attempts) => ended,
        };
        let ended = ended.map_err(|error| DeliveryError {
            message: self.connect.redact(error.message),
            ..error
        });
        crash::point(crash::ANSWERED);
        record.end(ended, context.now(), self.draw());
        store(&context, &record).await?;
        crash::point(crash::MARKED);
        match record.kept_until() {
            Some(until) => {
                // Listed anew: messages that came meanwhile have found this one open, and wait.
                tell_next(&context, &lane(&context)?).await;
                said(context.spec(), &record, Some(until))
            }
            None => said(context.spec(), &record, record.next),
        }
    }
}

/// Converts a stored record to the outcome of the run.
fn said(spec: &Notification, record: &Record, next: Option<Timestamp>) -> Result<Outcome, Error> {
    let label = spec.receiver.label();
    let failure = record.failure.as_deref().unwrap_or("no reason");
    let attempts = record.attempts;
    let outcome = Outcome {
        retrigger: next,
        ..Outcome::changed()
    };
    match record.standing {
        Standing::Delivered { .. } => Ok(outcome),
        Standing::Waiting => Ok(outcome.unready(format!(
            "attempt {attempts} of {} to {label} failed: {failure}",
            policy::ATTEMPTS
        ))),
        Standing::Dead { .. } => {
            let times = match attempts {
                1 => "one attempt".to_owned(),
                more => format!("{more} attempts"),
            };
            let message = format!("not delivered to {label} after {times}: {failure}");
            let mut error = Error::permanent(DEAD, message);
            let retry = format!("`watershed retry {KIND}/{}` sends it again", spec.message.key);
            error.hint = Some(retry.into());
            error.retrigger = next;
            Err(error)
        }
    }
}

/// Returns the other messages of the same sender and receiver.
fn lane(context: &Context<Notifications>) -> Result<Vec<(Uid, Queued)>, Error> {
    let unread = |error: DecodeError| Error::permanent("unreadable", error.to_string());
    let select = Select::kind(KIND)
        .with_hidden()
        .label(LANE, context.spec().lane());
    let mut found = Vec::new();
    for other in context.controller().list(select).resources {
        if other.uid() == context.uid() {
            continue;
        }
        let spec: Notification = other.spec().map_err(unread)?;
        let record: Record = other.state().map_err(unread)?.unwrap_or_default();
        let queued = Queued {
            order: spec.order,
            is_open: record.is_open_yet(),
        };
        found.push((other.uid(), queued));
    }
    Ok(found)
}

/// Requests a run of the next message in the lane, which may have waited for this one.
async fn tell_next(context: &Context<Notifications>, lane: &[(Uid, Queued)]) {
    let open = lane.iter().filter(|(_, queued)| queued.is_open);
    if let Some((uid, _)) = open.min_by_key(|(_, queued)| queued.order) {
        // One that is gone needs nothing, and else it looks by itself after a while.
        let _ = context.controller().nudge(*uid).await;
    }
}

async fn store(context: &Context<Notifications>, record: &Record) -> Result<(), Error> {
    let stored = async {
        context.set_state(record).await?;
        context.committed().await
    };
    stored
        .await
        .map_err(|error| Error::transient("state", error.to_string()))
}
