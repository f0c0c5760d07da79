//! What processes tell each other through the database: one connection for all instances of a store.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use sqlx::postgres::{PgListener, PgPool};
use tokio::sync::broadcast;
use tokio::task::AbortHandle;
use watershed_core::Revision;

use crate::task;

/// Events that a slow follower may be behind before it has missed some, and is told so.
const BEHIND: usize = 1_024;
/// How long after a failed connection another one is tried.
const RECONNECT: Duration = Duration::from_millis(500);

/// Something that happened in some process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// A holder gave its instance back.
    Released(String),
    /// A commit to an instance is through.
    Committed(String, Revision),
}

impl Event {
    pub(super) fn to_payload(&self) -> String {
        match self {
            Event::Released(instance) => format!("released {instance}"),
            Event::Committed(instance, revision) => format!("committed {revision} {instance}"),
        }
    }

    /// None for what a newer version may say.
    fn from_payload(payload: &str) -> Option<Self> {
        let (what, rest) = payload.split_once(' ')?;
        match what {
            "released" => Some(Event::Released(rest.to_owned())),
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

/// Where events come from. The connection is there while somebody follows.
#[derive(Debug)]
pub(super) struct Events {
    pool: PgPool,
    channel: String,
    line: Mutex<Weak<Line>>,
}

/// The connection, which ends with its last follower.
#[derive(Debug)]
struct Line {
    heard: broadcast::Sender<Heard>,
    task: AbortHandle,
}

impl Drop for Line {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What followers get.
#[derive(Debug, Clone)]
enum Heard {
    Event(Event),
    /// There may have been some that nobody heard: the connection is new.
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

    /// Everything from now on. Until the connection stands there may be a gap, and then it says so.
    pub(super) fn follow(&self) -> Follower {
        let mut shared = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let line = shared.upgrade().unwrap_or_else(|| {
            let heard = broadcast::Sender::new(BEHIND);
            let listen = listen(self.pool.clone(), self.channel.clone(), heard.clone());
            let task = task::spawn(listen).abort_handle();
            let line = Arc::new(Line { heard, task });
            *shared = Arc::downgrade(&line);
            line
        });
        Follower {
            heard: line.heard.subscribe(),
            _line: line,
        }
    }
}

/// Tells what it hears, over one connection after the other, until it is aborted.
async fn listen(pool: PgPool, channel: String, followers: broadcast::Sender<Heard>) {
    loop {
        if let Err(error) = listen_once(&pool, &channel, &followers).await {
            tracing::debug!(%error, "can't listen for announcements");
        }
        tokio::time::sleep(RECONNECT).await;
    }
}

async fn listen_once(
    pool: &PgPool,
    channel: &str,
    followers: &broadcast::Sender<Heard>,
) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(channel).await?;
    // An error of sending says that nobody follows at this moment.
    let _ = followers.send(Heard::Gap);
    loop {
        let heard = match listener.try_recv().await? {
            Some(notification) => Event::from_payload(notification.payload()).map(Heard::Event),
            None => Some(Heard::Gap),
        };
        if let Some(heard) = heard {
            let _ = followers.send(heard);
        }
    }
}

/// One who follows the events.
#[derive(Debug)]
pub(super) struct Follower {
    heard: broadcast::Receiver<Heard>,
    _line: Arc<Line>,
}

impl Follower {
    /// Waits until something is heard that `wanted` wants, or something may have been missed: then look yourself.
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
        for event in [Event::Released("a b".to_owned()), committed] {
            assert_eq!(Event::from_payload(&event.to_payload()), Some(event));
        }
        for unknown in ["", "later thing", "committed x y"] {
            assert_eq!(Event::from_payload(unknown), None);
        }
    }
}
