//! Watches on the catalog.
//!
//! What is published goes into one bounded [`RingLog`]; each watcher has a cursor in it and reads at its own pace. A
//! watcher that falls too far behind finds its cursor gone and is told so; it costs nobody anything meanwhile.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use watershed_core::{LastRun, Publish, Removed, Revision, Row, StatusUpdate};

use crate::read::ring_log::{Bounds, Read, Reader, RingLog};
use crate::read::view::View;
use crate::sync::{AtomicU64, Mutex, Unpoisoned};

/// Bounds of the held events, in bytes: for a watcher in an overload, and, less, for one that returns after some
/// minutes. Each controller of a process has a log of its own; a reader that falls behind lists again.
const LOG_BOUNDS: Bounds = if cfg!(all(test, feature = "interleavings")) {
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

/// Approximate weight of a removal or a status change, in bytes.
const CHANGE_WEIGHT: usize = 256;

/// Approximate weight of a row's uncounted parts on the heap, in bytes: its reason, and the counts of shared parts.
const SHARED_WEIGHT: usize = 512;

/// A change that a watcher is told of.
///
/// See [`Watch`] for an example.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The changes of a commit, in whole batches.
    Changed(Changes),
    /// Statuses and no-op runs, which change no row. Belongs to no revision, and is not repeated to later watchers.
    Status(Vec<StatusUpdate>),
    /// The watch has missed changes and ends. Watch again from the last revision seen; if that lags at once as well,
    /// list again and watch from there.
    Lagged,
}

/// Changes that became visible together.
///
/// See [`Watch`] for an example.
#[derive(Debug, Clone, PartialEq)]
pub struct Changes {
    /// Revision of the catalog after the changes.
    pub revision: Revision,
    /// New and changed rows.
    pub rows: Vec<Arc<Row>>,
    /// Resources that left the catalog.
    pub removed: Vec<Removed>,
}

/// A watcher's cursor, see [`Handle::watch`](crate::Handle::watch).
///
/// ```
/// # use watershed_controller::{Context, Error, Outcome, Reconciler};
/// # struct Pages;
/// # impl Reconciler for Pages {
/// #     type Spec = Page;
/// #     type State = Page;
/// #     async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
/// #         let page = Page(context.spec().0.clone());
/// #         context.set_state(&page).await?;
/// #         Ok(Outcome::default())
/// #     }
/// # }
/// # #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
/// # struct Page(String);
/// # watershed_controller::json_message!(Page, format = 1);
/// use watershed_controller::{Controller, Event, KindOptions, Resource, Select};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let controller = Controller::builder().kind(KindOptions::new("page"), Pages).start().await?;
/// let listing = controller.list(Select::new().with_deleted());
/// let mut watch = controller.watch(listing.revision);
/// controller.create(Resource::declare("page", "home", &Page("hello".into()))?).await?;
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
    /// Changes between the start of the watch and the cursor, returned first; none if the log has everything.
    first: Option<Changes>,
    cursor: Cursor,
}

#[derive(Debug)]
enum Cursor {
    Following(Reader<Event>),
    /// The watcher has lagged, and does not know yet.
    Lagging,
    Ended,
}

impl Watch {
    /// Waits for the next event; none after the controller has stopped or after [`Event::Lagged`].
    ///
    /// Cancel-safe: no event is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Event> {
        if let Some(first) = self.first.take() {
            return Some(Event::Changed(first));
        }
        loop {
            let read = match &mut self.cursor {
                Cursor::Following(reader) => reader.read().await,
                Cursor::Lagging => Read::Lagged,
                Cursor::Ended => return None,
            };
            match read {
                Read::Entry(event) if self.is_old(&event) => {}
                Read::Entry(event) => return Some(Event::clone(&event)),
                Read::Lagged => {
                    self.cursor = Cursor::Ended;
                    return Some(Event::Lagged);
                }
                Read::Ended => {
                    self.cursor = Cursor::Ended;
                    return None;
                }
            }
        }
    }

    fn is_old(&self, event: &Event) -> bool {
        matches!(event, Event::Changed(changes) if changes.revision <= self.from)
    }
}

/// The log of changes for watchers.
#[derive(Debug)]
pub(crate) struct ChangeLog {
    log: RingLog<Event>,
    /// Highest revision whose changes are not in the log, or no longer.
    removed: Mutex<Revision>,
    /// Revision at which a resource was last removed.
    last_removal: AtomicU64,
}

impl ChangeLog {
    /// Creates a log that begins after the stored catalog.
    pub(crate) fn since(revision: Revision, last_removal: Option<Revision>) -> Self {
        Self {
            log: RingLog::new(LOG_BOUNDS),
            removed: Mutex::new(revision),
            last_removal: AtomicU64::new(last_removal.unwrap_or(revision).0),
        }
    }

    /// Records removals before readers see them, so that a watcher whose rows lack them can tell.
    pub(crate) fn announce(&self, publish: &Publish) {
        if !publish.removed.is_empty() {
            self.last_removal.store(publish.revision.0, Ordering::SeqCst);
        }
    }

    /// Publishes changes to watchers. Statuses are dropped while there are none.
    pub(crate) fn publish(&self, publish: Publish) {
        if !publish.rows.is_empty() || !publish.removed.is_empty() {
            let (revision, rows, removed) = (publish.revision, publish.rows, publish.removed);
            let weight = rows.iter().map(|row| weight(row)).sum::<usize>() + removed.len() * CHANGE_WEIGHT;
            self.push(
                weight,
                Event::Changed(Changes {
                    revision,
                    rows,
                    removed,
                }),
            );
        }
        if !self.log.has_readers() {
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
        // Held while entries go, so that nobody takes a cursor behind them and finds that nothing has gone.
        let mut removed = self.removed.lock().unpoisoned();
        let pushed_out = self.log.push(weight, event);
        let revision = pushed_out.iter().rev().find_map(|event| match &**event {
            Event::Changed(changes) => Some(changes.revision),
            _ => None,
        });
        if let Some(revision) = revision {
            *removed = revision;
        }
    }

    /// Creates a watch on everything after `from`. A revision later than the present one belongs to another catalog.
    ///
    /// What the log no longer has, or never had because it was before the start, is seen in the rows themselves,
    /// unless something was removed since.
    pub(crate) fn watch(&self, from: Revision, view: &View) -> Watch {
        let cursor = self.follow(from);
        if from <= view.revision() && self.is_followed(from) {
            return Watch {
                from,
                first: None,
                cursor,
            };
        }
        let (revision, mut rows) = view.changed_since(from);
        rows.sort_by_key(|row| (row.revision, row.uid));
        let cursor = self.follow(revision);
        let is_whole = from <= revision && from.0 >= self.last_removal.load(Ordering::SeqCst);
        if !is_whole || !self.is_followed(revision) {
            return Watch {
                from,
                first: None,
                cursor: Cursor::Lagging,
            };
        }
        let changes = Changes {
            revision,
            rows,
            removed: Vec::new(),
        };
        Watch {
            from: revision,
            first: (!changes.rows.is_empty()).then_some(changes),
            cursor,
        }
    }

    fn follow(&self, from: Revision) -> Cursor {
        // Statuses before the first change of interest were published before `from` was listed.
        let reader = self.log.follow(|event| match event {
            Event::Changed(changes) => changes.revision <= from,
            _ => true,
        });
        Cursor::Following(reader)
    }

    /// Returns true if the log has every change after `from`. Called after the cursor is taken, which itself notices
    /// later losses.
    fn is_followed(&self, from: Revision) -> bool {
        from >= *self.removed.lock().unpoisoned()
    }

    /// Returns the approximate memory of all held events, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.log.weight()
    }

    pub(crate) fn end(&self) {
        self.log.end();
    }
}

/// Returns the weight of a row's unshared parts, in bytes. Versions of a row share refs, paths and labels, which are
/// not counted.
fn weight(row: &Row) -> usize {
    let run = row.last_run.as_ref().map_or(0, |run| {
        let refs = run.seen.as_ref().map_or(0, |seen| size_of_val(&*seen.refs));
        size_of::<LastRun>() + refs
    });
    let state = row.state.as_ref().map_or(0, |state| state.len());
    size_of::<Row>() + SHARED_WEIGHT + run + row.spec.len() + state
}
