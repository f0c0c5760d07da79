//! Following the catalog.
//!
//! What is published goes into one bounded [`Feed`]; each watcher has a place in it and reads at its own pace. A
//! watcher that falls too far behind finds its place gone and is told so; it costs nobody anything meanwhile.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use watershed_core::{Gone, LastRun, Publish, Revision, Row, StatusUpdate};

use crate::read::ring_log::{Bounds, Feed, Read, Reader};
use crate::sync::{AtomicU64, Mutex, Unpoisoned};
use crate::read::view::View;

/// How much of what was published is held, in bytes: for those who watch, a moment of a storm; for those who come back
/// later, some minutes of editing by hand. Every controller of a process fills its own, and a reader that falls behind
/// lists again.
const FEED_BOUNDS: Bounds = if cfg!(interleavings) {
    // A few rows.
    Bounds {
        kept: 1_500,
        bound: 4_000,
    }
} else {
    Bounds {
        kept: 1 << 20,
        bound: 16 << 20,
    }
};

/// What a removal or a change of standing weighs, about.
const CHANGE_WEIGHT: usize = 256;

/// What a row weighs on the heap beyond what is counted: its reason, and the counts of what it shares.
const SHARED_WEIGHT: usize = 512;

/// One thing that a watcher sees.
///
/// See [`Watch`] for an example.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// What a commit changed, whole batches of it.
    Changed(Changes),
    /// Where resources stand, and no-op runs, which change no row; belongs to no revision and isn't repeated to those who
    /// come later.
    Status(Vec<StatusUpdate>),
    /// This watcher has missed something. It gets nothing more. Watch again from the last revision that it saw; if that
    /// says the same at once, list again, and watch from there.
    Lagged,
}

/// Changes that became visible together.
///
/// See [`Watch`] for an example.
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
///
/// ```
/// # use watershed_controller::{Context, Error, Outcome, Reconciler};
/// # struct Pages;
/// # impl Reconciler for Pages {
/// #     type Spec = Page;
/// #     type State = Page;
/// #     async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
/// #         let page = Page(context.spec().0.clone());
/// #         context.set_state(&page).await.map_err(|e| Error::transient("state", e.to_string()))?;
/// #         Ok(Outcome::default())
/// #     }
/// # }
/// # #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
/// # struct Page(String);
/// # watershed_controller::json_message!(Page, format = 1);
/// use watershed_controller::{Controller, Event, Hidden, KindOptions, declare};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let controller = Controller::builder().kind(KindOptions::new("page"), Pages).start().await?;
/// let listing = controller.list(Hidden::Leave);
/// let mut watch = controller.watch(listing.revision);
/// controller.create(declare("page", "home", &Page("hello".into()))?).await?;
///
/// while let Some(event) = watch.next().await {
///     match event {
///         Event::Changed(changes) if changes.rows.iter().any(|row| row.name.as_str() == "home") => break,
///         Event::Changed(_) | Event::Status(_) => {}
///         Event::Lagged => break, // List again, and watch from there.
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Watch {
    from: Revision,
    /// What changed before the place begins.
    first: Option<Changes>,
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
        if let Some(first) = self.first.take() {
            return Some(Event::Changed(first));
        }
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
    /// The revision at which a resource was last removed.
    last_removal: AtomicU64,
}

impl Watching {
    /// Nothing was published yet but the catalog as it was found.
    pub(crate) fn since(revision: Revision, last_removal: Option<Revision>) -> Self {
        Self {
            feed: Feed::new(FEED_BOUNDS),
            gone: Mutex::new(revision),
            last_removal: AtomicU64::new(last_removal.unwrap_or(revision).0),
        }
    }

    /// Takes note of removals, before readers see them: whoever finds rows without them knows that they are missing.
    pub(crate) fn announce(&self, publish: &Publish) {
        if !publish.gone.is_empty() {
            self.last_removal.store(publish.revision.0, Ordering::SeqCst);
        }
    }

    /// Shows watchers what was published. What belongs to no revision is left out while nobody watches.
    pub(crate) fn publish(&self, publish: Publish) {
        if !publish.rows.is_empty() || !publish.gone.is_empty() {
            let (revision, rows, gone) = (publish.revision, publish.rows, publish.gone);
            let weight = rows.iter().map(|row| weight(row)).sum::<usize>() + gone.len() * CHANGE_WEIGHT;
            self.push(weight, Event::Changed(Changes { revision, rows, gone }));
        }
        if !self.feed.has_readers() {
            return;
        }
        if !publish.statuses.is_empty() {
            self.push(
                publish.statuses.len() * CHANGE_WEIGHT,
                Event::Status(publish.statuses),
            );
        }
    }

    fn push(&self, weight: usize, event: Event) {
        // Held while entries go, so that nobody takes a place behind them and finds that nothing has gone.
        let mut gone = self.gone.lock().unpoisoned();
        let pushed_out = self.feed.push(weight, event);
        let revision = pushed_out.iter().rev().find_map(|event| match &**event {
            Event::Changed(changes) => Some(changes.revision),
            _ => None,
        });
        if let Some(revision) = revision {
            *gone = revision;
        }
    }

    /// Watches everything after `from`. A revision that is not there yet is that of another catalog.
    ///
    /// What the feed no longer has, or never had because it was before the start, is seen in the rows themselves,
    /// unless something was removed since.
    pub(crate) fn watch(&self, from: Revision, view: &View) -> Watch {
        let place = self.follow(from);
        if from <= view.revision() && self.is_followed(from) {
            return Watch {
                from,
                first: None,
                place,
            };
        }
        let (revision, mut rows) = view.changed_since(from);
        rows.sort_by_key(|row| (row.revision, row.uid));
        let place = self.follow(revision);
        let is_whole = from <= revision && from.0 >= self.last_removal.load(Ordering::SeqCst);
        if !is_whole || !self.is_followed(revision) {
            return Watch {
                from,
                first: None,
                place: Place::Lagging,
            };
        }
        let changes = Changes {
            revision,
            rows,
            gone: Vec::new(),
        };
        Watch {
            from: revision,
            first: (!changes.rows.is_empty()).then_some(changes),
            place,
        }
    }

    fn follow(&self, from: Revision) -> Place {
        // Statuses before the first change of interest were published before `from` was listed.
        let reader = self.feed.follow(|event| match event {
            Event::Changed(changes) => changes.revision <= from,
            _ => true,
        });
        Place::Following(reader)
    }

    /// Whether the feed has all after `from`. Asked after the place is taken: what goes from then on is noticed by the
    /// place itself.
    fn is_followed(&self, from: Revision) -> bool {
        from >= *self.gone.lock().unpoisoned()
    }

    /// What is held for watchers.
    pub(crate) fn held_bytes(&self) -> usize {
        self.feed.weight()
    }

    pub(crate) fn end(&self) {
        self.feed.end();
    }
}

/// What a version of a row weighs if nothing else holds it. Refs, paths and labels are left out: versions share them.
fn weight(row: &Row) -> usize {
    let run = row.last_run.as_ref().map_or(0, |run| {
        let refs = run.seen.as_ref().map_or(0, |seen| size_of_val(&*seen.refs));
        size_of::<LastRun>() + refs
    });
    let state = row.state.as_ref().map_or(0, |state| state.len());
    size_of::<Row>() + SHARED_WEIGHT + run + row.spec.len() + state
}
