//! Following the catalog.
//!
//! What is published goes into one bounded [`Feed`]; each watcher has a place in it and reads at its own pace. A
//! watcher that falls too far behind finds its place gone and is told so; it costs nobody anything meanwhile.

use std::sync::{Arc, Mutex, PoisonError};

use watershed_core::{Gone, Publish, Revision, Row, StatusUpdate};

use crate::feed::{Feed, Read, Reader};

/// The most that published changes kept for watchers may weigh, in bytes: minutes of editing by hand, a second of a
/// storm.
const FEED_BOUND: usize = 32 << 20;

/// What a change weighs beyond its spec and state, about.
const ROW_WEIGHT: usize = 512;

/// One thing that a watcher sees.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// What a commit changed, whole batches of it.
    Changed(Changes),
    /// Where resources stand; belongs to no revision and isn't repeated to those who come later.
    Status(Vec<StatusUpdate>),
    /// This watcher has missed something. It gets nothing more: list again, and watch from that revision.
    Lagged,
}

/// Changes that became visible together.
#[derive(Debug, Clone, PartialEq)]
pub struct Changes {
    /// The catalog's revision with them.
    pub revision: Revision,
    /// New and changed rows.
    pub rows: Vec<Arc<Row>>,
    /// Resources that are no longer in the catalog.
    pub gone: Vec<Gone>,
}

/// A watcher's place, see [`Handle::watch`](crate::Handle::watch).
#[derive(Debug)]
pub struct Watch {
    from: Revision,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Following(Reader<Event>),
    /// What the watcher asked for is gone, which it has not been told yet.
    Lagging,
    Ended,
}

impl Watch {
    /// The next event; none when the controller has stopped or after [`Event::Lagged`].
    ///
    /// Cancel-safe: no event is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            let read = match &mut self.place {
                Place::Following(reader) => reader.read().await,
                Place::Lagging => Read::Lagged,
                Place::Ended => return None,
            };
            match read {
                Read::Entry(event) if self.is_old(&event) => {}
                Read::Entry(event) => return Some(Event::clone(&event)),
                Read::Lagged => {
                    self.place = Place::Ended;
                    return Some(Event::Lagged);
                }
                Read::Ended => {
                    self.place = Place::Ended;
                    return None;
                }
            }
        }
    }

    fn is_old(&self, event: &Event) -> bool {
        matches!(event, Event::Changed(changes) if changes.revision <= self.from)
    }
}

/// The side of the loop: what watchers may still see.
#[derive(Debug)]
pub(crate) struct Watching {
    feed: Feed<Event>,
    /// The highest revision that is not, or no longer, in the feed.
    gone: Mutex<Revision>,
}

impl Watching {
    /// Nothing was published yet but the catalog as it was found.
    pub(crate) fn since(revision: Revision) -> Self {
        Self {
            feed: Feed::new(FEED_BOUND),
            gone: Mutex::new(revision),
        }
    }

    /// Shows watchers what was published. Standing is left out while nobody watches.
    pub(crate) fn publish(&self, publish: Publish) {
        if !publish.rows.is_empty() || !publish.gone.is_empty() {
            let Publish {
                revision, rows, gone, ..
            } = publish;
            let weight = rows.iter().map(|row| weight(row)).sum::<usize>() + gone.len() * ROW_WEIGHT;
            self.push(weight, Event::Changed(Changes { revision, rows, gone }));
        }
        if !publish.statuses.is_empty() && self.feed.has_readers() {
            self.push(
                publish.statuses.len() * ROW_WEIGHT,
                Event::Status(publish.statuses),
            );
        }
    }

    fn push(&self, weight: usize, event: Event) {
        let pushed_out = self.feed.push(weight, event);
        let revision = pushed_out.iter().rev().find_map(|event| match &**event {
            Event::Changed(changes) => Some(changes.revision),
            _ => None,
        });
        if let Some(revision) = revision {
            *self.gone.lock().unwrap_or_else(PoisonError::into_inner) = revision;
        }
    }

    /// Watches everything after `from`. A revision that is not there yet, at `now`, is that of another catalog.
    pub(crate) fn watch(&self, from: Revision, now: Revision) -> Watch {
        // Statuses before the first change of interest were published before `from` was listed.
        let reader = self.feed.follow(|event| match event {
            Event::Changed(changes) => changes.revision <= from,
            _ => true,
        });
        // Read after the place is taken: what goes from now on is noticed by the place itself.
        let gone = *self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        let place = if from < gone || from > now {
            Place::Lagging
        } else {
            Place::Following(reader)
        };
        Watch { from, place }
    }

    pub(crate) fn end(&self) {
        self.feed.end();
    }
}

fn weight(row: &Row) -> usize {
    ROW_WEIGHT + row.spec.len() + row.state.as_ref().map_or(0, |state| state.len())
}
