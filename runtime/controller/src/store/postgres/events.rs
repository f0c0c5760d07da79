//! Notifications between processes through the database: one connection for all instances of a store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use sqlx::postgres::{PgListener, PgPool, PgPoolOptions};
use tokio::sync::broadcast;
use tokio::task::AbortHandle;
use uuid::Uuid;
use watershed_core::Revision;

use crate::sync::Unpoisoned;
use crate::tasks;

/// Number of events that a slow follower may be behind before it is told of a gap.
const BEHIND: usize = 1_024;
/// Pause after a failed connection.
const RECONNECT: Duration = Duration::from_millis(500);

/// An event that a process announces to the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// A leader released the lease of an instance.
    Released(String),
    /// A commit to an instance succeeded.
    Committed(String, Revision),
    /// Calls were left for the leader of an instance.
    RemoteCall(String),
    /// Calls of this caller were answered.
    Answered(String, Uuid),
}

impl Event {
    pub(super) fn to_payload(&self) -> String {
        match self {
            Event::Released(instance) => format!("released {instance}"),
            Event::Committed(instance, revision) => format!("committed {revision} {instance}"),
            Event::RemoteCall(instance) => format!("asked {instance}"),
            Event::Answered(instance, caller) => format!("answered {caller} {instance}"),
        }
    }

    fn instance(&self) -> &str {
        match self {
            Event::Released(instance)
            | Event::Committed(instance, _)
            | Event::RemoteCall(instance)
            | Event::Answered(instance, _) => instance,
        }
    }

    /// Parses a payload; none for an event of a newer version.
    fn from_payload(payload: &str) -> Option<Self> {
        let (what, rest) = payload.split_once(' ')?;
        match what {
            "released" => Some(Event::Released(rest.to_owned())),
            "asked" => Some(Event::RemoteCall(rest.to_owned())),
            "answered" => {
                let (caller, instance) = rest.split_once(' ')?;
                Some(Event::Answered(instance.to_owned(), caller.parse().ok()?))
            }
            "committed" => {
                let (revision, instance) = rest.split_once(' ')?;
                Some(Event::Committed(
                    instance.to_owned(),
                    Revision(revision.parse().ok()?),
                ))
            }
            _ => None,
        }
    }
}

/// Source of events. A connection exists while there are followers.
#[derive(Debug)]
pub(super) struct Events {
    pool: PgPool,
    channel: String,
    line: Mutex<Weak<Line>>,
}

/// The connection, which ends with its last follower.
#[derive(Debug)]
struct Line {
    routes: Arc<Routes>,
    task: AbortHandle,
}

/// Senders to followers, by instance: with hundreds of instances, each hears only of its own.
#[derive(Debug, Default)]
struct Routes(Mutex<HashMap<String, broadcast::Sender<Heard>>>);

impl Routes {
    fn follow(&self, instance: &str) -> broadcast::Receiver<Heard> {
        let mut routes = self.0.lock().unpoisoned();
        if let Some(route) = routes.get(instance) {
            return route.subscribe();
        }
        let (route, followed) = broadcast::channel(BEHIND);
        routes.insert(instance.to_owned(), route);
        followed
    }

    fn tell(&self, event: Event) {
        let mut routes = self.0.lock().unpoisoned();
        let instance = event.instance().to_owned();
        let is_followed = routes
            .get(&instance)
            .map(|route| route.send(Heard::Event(event)).is_ok());
        if is_followed == Some(false) {
            routes.remove(&instance);
        }
    }

    fn tell_all(&self) {
        let mut routes = self.0.lock().unpoisoned();
        routes.retain(|_, route| route.send(Heard::Gap).is_ok());
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A notification as followers receive it.
#[derive(Debug, Clone)]
enum Heard {
    Event(Event),
    /// Events may have been missed, because the connection is new.
    Gap,
}

impl Events {
    pub(super) fn new(pool: PgPool, channel: String) -> Self {
        Self {
            pool,
            channel,
            line: Mutex::default(),
        }
    }

    /// Follows the events of an instance from now on. A gap is reported once the connection is ready.
    pub(super) fn follow(&self, instance: &str) -> Follower {
        let mut shared = self.line.lock().unpoisoned();
        let line = shared.upgrade().unwrap_or_else(|| {
            let routes = Arc::new(Routes::default());
            let listen = listen(self.pool.clone(), self.channel.clone(), Arc::clone(&routes));
            let task = tasks::spawn(listen).abort_handle();
            let line = Arc::new(Line { routes, task });
            *shared = Arc::downgrade(&line);
            line
        });
        Follower {
            heard: line.routes.follow(instance),
            _line: line,
        }
    }
}

/// Forwards notifications, reconnecting after failures, until it is aborted.
async fn listen(pool: PgPool, channel: String, routes: Arc<Routes>) {
    loop {
        if let Err(error) = listen_once(&pool, &channel, &routes).await {
            tracing::debug!(%error, "can't listen for announcements");
        }
        tokio::time::sleep(RECONNECT).await;
    }
}

async fn listen_once(pool: &PgPool, channel: &str, routes: &Routes) -> Result<(), sqlx::Error> {
    // Beside the embedder's pool: whoever listens holds a connection for good, and a pool may have only one.
    let options = pool.connect_options().as_ref().clone();
    let own = PgPoolOptions::new().max_connections(1).connect_lazy_with(options);
    let mut listener = PgListener::connect_with(&own).await?;
    listener.listen(channel).await?;
    routes.tell_all();
    loop {
        match listener.try_recv().await? {
            Some(notification) => {
                if let Some(event) = Event::from_payload(notification.payload()) {
                    routes.tell(event);
                }
            }
            None => routes.tell_all(),
        }
    }
}

/// A follower of the events of one instance.
#[derive(Debug)]
pub(super) struct Follower {
    heard: broadcast::Receiver<Heard>,
    _line: Arc<Line>,
}

impl Follower {
    /// Waits for an event that `wanted` accepts, or for a gap, after which the caller must look itself.
    ///
    /// Cancel-safe.
    pub(super) async fn until(&mut self, wanted: impl Fn(&Event) -> bool) {
        loop {
            match self.heard.recv().await {
                Ok(Heard::Event(event)) if !wanted(&event) => {}
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => return,
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_back_from_their_payload() {
        let committed = Event::Committed("two words".to_owned(), Revision(7));
        let asked = Event::RemoteCall("a b".to_owned());
        let answered = Event::Answered("a b".to_owned(), Uuid::from_u128(7));
        for event in [Event::Released("a b".to_owned()), committed, asked, answered] {
            assert_eq!(Event::from_payload(&event.to_payload()), Some(event));
        }
        for unknown in ["", "later thing", "committed x y"] {
            assert_eq!(Event::from_payload(unknown), None);
        }
    }
}
