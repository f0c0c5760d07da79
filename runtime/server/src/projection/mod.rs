//! A projection: the resources of one instance as readers see them, kept up to date with the controller.
//!
//! A projection is built for its first reader, and dropped some minutes after its last one, so that readers never list the catalog.

mod due;
mod table;

use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard};
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_controller::watch::Watch;
use watershed_controller::{Event, Handle, Select, Uid};
use watershed_core::{Revision, Timestamp};
use watershed_locks::Unpoisoned;

pub(crate) use table::{Slot, Table};

use crate::report::Entry;

/// The time for which a projection without readers is kept.
const KEPT_UNREAD: Duration = Duration::from_secs(300);
/// The longest wait of a reader for the latest commit.
const LONGEST_LAG: Duration = Duration::from_secs(2);

/// The projection of an instance, if somebody has read it lately. Clones share it.
#[derive(Default)]
pub(crate) struct Projections(Arc<Mutex<Option<Arc<Projection>>>>);

/// All resources of an instance as readers see them, kept up to date.
pub(crate) struct Projection {
    /// Id of the projection. Change numbers of other projections are not comparable.
    id: Uuid,
    table: RwLock<Table>,
    /// Latest change and revision, for readers to wait on.
    progress: watch::Sender<Progress>,
    last_read: Mutex<Instant>,
}

/// The progress of a projection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Number of the last change.
    pub(crate) change: u64,
    /// Revision of the catalog that the projection has reached.
    pub(crate) revision: Revision,
    /// True once the projection is no longer updated.
    pub(crate) is_over: bool,
}

impl Projections {
    /// Returns the projection, after waiting a bounded time for the latest commit.
    pub(crate) async fn read(&self, handle: &Handle, leaving: &CancellationToken) -> Arc<Projection> {
        let projection = self.current(handle, leaving);
        projection.reach(handle.revision()).await;
        projection
    }

    fn current(&self, handle: &Handle, leaving: &CancellationToken) -> Arc<Projection> {
        let mut kept = self.0.lock().unpoisoned();
        let alive = kept
            .as_ref()
            .filter(|projection| !projection.progress.borrow().is_over);
        let projection = match alive {
            Some(projection) => Arc::clone(projection),
            None => {
                let (projection, changes) = Projection::begin(handle);
                let keeper = Keeper {
                    projection: Arc::clone(&projection),
                    handle: handle.clone(),
                    changes,
                    leaving: leaving.clone(),
                    kept: Arc::clone(&self.0),
                };
                tokio::spawn(keeper.keep());
                *kept = Some(Arc::clone(&projection));
                projection
            }
        };
        *projection.last_read.lock().unpoisoned() = Instant::now();
        projection
    }
}

impl Projection {
    /// Builds a projection of all resources, and starts to watch for changes.
    fn begin(handle: &Handle) -> (Arc<Self>, Watch) {
        let listing = handle.list(Select::all());
        let changes = handle.watch(listing.revision);
        let mut table = Table::default();
        let entries = listing.resources.into_iter();
        table.apply(
            now(),
            entries.map(|found| (found.row.uid, Some(Entry::from(found)))),
        );
        let progress = Progress {
            change: table.last(),
            revision: listing.revision,
            is_over: false,
        };
        let projection = Self {
            id: Uuid::now_v7(),
            table: RwLock::new(table),
            progress: watch::Sender::new(progress),
            last_read: Mutex::new(Instant::now()),
        };
        (Arc::new(projection), changes)
    }

    /// Returns the id that the change numbers belong to.
    pub(crate) fn id(&self) -> Uuid {
        self.id
    }

    /// Locks the table of resources for reading.
    pub(crate) fn table(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unpoisoned()
    }

    /// Returns a receiver of the projection's progress.
    pub(crate) fn follow(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Waits until the projection has reached a revision, at most for a bounded time. Cancel-safe.
    async fn reach(&self, revision: Revision) {
        let mut progress = self.progress.subscribe();
        let there = progress.wait_for(|progress| progress.revision >= revision || progress.is_over);
        // A busy process answers with what it has.
        let _ = tokio::time::timeout(LONGEST_LAG, there).await;
    }

    /// Updates resources from the controller's current rows and statuses.
    fn refresh(&self, handle: &Handle, uids: impl IntoIterator<Item = Uid>, revision: Option<Revision>) {
        let found = uids
            .into_iter()
            .map(|uid| (uid, handle.get(uid).ok().map(Entry::from)));
        let mut table = self.table.write().unpoisoned();
        table.apply(now(), found);
        self.tell(&table, revision);
    }

    fn pass_time(&self) {
        let mut table = self.table.write().unpoisoned();
        table.pass_time(now());
        self.tell(&table, None);
    }

    fn tell(&self, table: &Table, revision: Option<Revision>) {
        self.progress.send_modify(|progress| {
            progress.change = table.last();
            progress.revision = revision.unwrap_or(progress.revision).max(progress.revision);
        });
    }

    /// Returns the time until a resource changes by the passage of time alone.
    fn until_due(&self) -> Duration {
        let due = self.table().next_due();
        let wait = due.map(|at| u64::try_from(at.0.saturating_sub(now().0)).unwrap_or_default());
        // A clock that is set is noticed within that time.
        Duration::from_millis(wait.unwrap_or(u64::MAX)).min(Duration::from_secs(60))
    }

    fn is_unread(&self) -> bool {
        let unread = self.last_read.lock().unpoisoned().elapsed() >= KEPT_UNREAD;
        unread && self.progress.receiver_count() == 0
    }
}

/// The task that updates a projection.
struct Keeper {
    projection: Arc<Projection>,
    handle: Handle,
    changes: Watch,
    leaving: CancellationToken,
    kept: Arc<Mutex<Option<Arc<Projection>>>>,
}

impl Keeper {
    async fn keep(mut self) {
        loop {
            // Every arm is cancel-safe: the watch keeps its place.
            let event = tokio::select! {
                biased;
                () = self.leaving.cancelled() => break,
                event = self.changes.next() => event,
                () = tokio::time::sleep(self.projection.until_due()) => {
                    self.projection.pass_time();
                    if self.projection.is_unread() {
                        break;
                    }
                    continue;
                }
            };
            match event {
                Some(Event::Changed(changes)) => {
                    let changed = changes.rows.iter().map(|row| row.uid);
                    let removed = changes.removed.iter().map(|removed| removed.uid);
                    self.projection
                        .refresh(&self.handle, changed.chain(removed), Some(changes.revision));
                }
                Some(Event::Status(statuses)) => {
                    let uids = statuses.iter().map(|status| status.uid);
                    self.projection.refresh(&self.handle, uids, None);
                }
                // Readers are told to list again, and find a new one.
                Some(Event::Lagged) | None => break,
            }
        }
        let mut kept = self.kept.lock().unpoisoned();
        let is_ours = kept.as_ref().is_some_and(|kept| kept.id == self.projection.id);
        if is_ours {
            *kept = None;
        }
        drop(kept);
        self.projection
            .progress
            .send_modify(|progress| progress.is_over = true);
    }
}

fn now() -> Timestamp {
    Timestamp::from(SystemTime::now())
}
