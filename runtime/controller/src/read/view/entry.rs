//! A resource as readers see it, with former versions for listings that may still need them.
//!
//! Catalogs have many entries, nearly all of them idle and without a past; so an entry is small, and what few have lies
//! elsewhere.

use std::mem::discriminant;
use std::sync::Arc;

use watershed_core::{Key, NoOpRun, Reason, Row, Settled, Stage, Status, Timestamp};

use super::is_live;
use crate::types::resource::Resource;

/// Status of most resources, and of every resource before the core publishes one.
const IDLE: Status = Status {
    stage: Stage::Settled(Settled::Idle),
    reason: None,
    progress: None,
};

/// A resource in the view.
#[derive(Debug, Default)]
pub(super) struct Entry {
    /// Present row; none once the resource is removed, while former versions are needed.
    pub(super) row: Option<Arc<Row>>,
    /// Status with its time; none while idle. Resources with equal new statuses share one.
    stands: Option<Arc<Stands>>,
    pub(super) before: Option<Box<Former>>,
    /// Last run if it was a no-op that the row does not show.
    no_op: Option<Arc<NoOpRun>>,
}

/// A status, with the time since which its stage holds.
#[derive(Debug)]
pub(super) struct Stands {
    status: Status,
    /// Time since which the resource has been settled, pending or running.
    since: Timestamp,
}

/// A former version of an entry.
#[derive(Debug)]
pub(super) struct Former {
    row: Option<Arc<Row>>,
    no_op: Option<Arc<NoOpRun>>,
    /// Number of the publish that replaced this version.
    until: u64,
    before: Option<Box<Former>>,
}

/// Owners of a status's reason, and so of its reference count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SharedBy {
    /// Readers share the reason with the core: nothing is copied.
    Everybody,
    /// Readers have a copy. If very many resources shared one reason, every read would change the same reference count,
    /// and threads would wait for each other.
    FewReaders,
}

/// Tells whether a publish keeps the versions that it replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Replaced {
    Drop,
    Keep,
}

impl Entry {
    /// Creates the entry of a stored row, idle.
    pub(super) fn from_row(row: Arc<Row>) -> Self {
        Self {
            row: Some(row),
            ..Self::default()
        }
    }

    /// Returns the resource with its present row.
    pub(super) fn read(&self) -> Option<Resource> {
        Some(self.resource(self.row.as_ref()?, self.no_op.as_deref()))
    }

    fn resource(&self, row: &Arc<Row>, no_op: Option<&NoOpRun>) -> Resource {
        // Readers find the last run in the row, also where it is status. Most rows tell of it themselves and are shared.
        let row = match no_op.filter(|run| !run.is_in(row)) {
            None => Arc::clone(row),
            Some(run) => {
                let mut row = Row::clone(row);
                run.show_in(&mut row);
                Arc::new(row)
            }
        };
        Resource {
            row,
            status: self.status().clone(),
        }
    }

    pub(super) fn status(&self) -> &Status {
        self.stands.as_ref().map_or(&IDLE, |stands| &stands.status)
    }

    /// Returns the time since which the stage holds; 0 for an idle resource, where it is unknown.
    pub(super) fn stands_since(&self) -> Timestamp {
        self.stands.as_ref().map_or(Timestamp(0), |stands| stands.since)
    }

    /// Sets the status. `latest` caches the previous allocation, so that runs of equal statuses share one `Arc`.
    pub(super) fn stand(
        &mut self,
        status: &Status,
        now: Timestamp,
        latest: &mut Option<Arc<Stands>>,
        shared: SharedBy,
    ) {
        if *status == IDLE {
            self.stands = None;
            return;
        }
        let is_alike =
            |stands: &&Arc<Stands>| discriminant(&stands.status.stage) == discriminant(&status.stage);
        let before = self.stands.as_ref().filter(is_alike);
        let since = before.map_or(now, |stands| stands.since);
        let is_it = |latest: &&Arc<Stands>| latest.since == since && latest.status == *status;
        if latest.as_ref().filter(is_it).is_none() {
            let mut status = status.clone();
            if shared == SharedBy::FewReaders {
                status.reason = status.reason.map(|reason| Arc::new(Reason::clone(&reason)));
            }
            *latest = Some(Arc::new(Stands { status, since }));
        }
        self.stands.clone_from(latest);
    }

    /// Stores a no-op run that the row does not show.
    pub(super) fn note_no_op(&mut self, run: &Arc<NoOpRun>) {
        if self.row.as_ref().is_some_and(|row| !run.is_in(row)) {
            self.no_op = Some(Arc::clone(run));
        }
    }

    /// Returns the resource with its row as of this publish, if it existed then and `keep` accepts the row.
    pub(super) fn at(&self, publish: u64, keep: impl Fn(&Row) -> bool) -> Option<Resource> {
        let (mut row, mut no_op) = (self.row.as_ref(), self.no_op.as_deref());
        let mut former = self.before.as_deref();
        while let Some(one) = former.filter(|one| one.until > publish) {
            (row, no_op) = (one.row.as_ref(), one.no_op.as_deref());
            former = one.before.as_deref();
        }
        let row = row.filter(|row| keep(row))?;
        Some(self.resource(row, no_op))
    }

    /// Returns the resource with its present or latest former row under this key.
    pub(super) fn under(&self, key: &Key) -> Option<Resource> {
        let has_it = |row: &&Arc<Row>| is_live(row) && row.kind == key.kind && row.name == key.name;
        if let Some(row) = self.row.as_ref().filter(has_it) {
            return Some(self.resource(row, self.no_op.as_deref()));
        }
        let mut former = self.before.as_deref();
        while let Some(one) = former {
            if let Some(row) = one.row.as_ref().filter(has_it) {
                return Some(self.resource(row, one.no_op.as_deref()));
            }
            former = one.before.as_deref();
        }
        None
    }

    /// Replaces the row. Returns the former row if no listing may need it, so that the caller drops it.
    pub(super) fn replace(
        &mut self,
        row: Option<Arc<Row>>,
        publish: u64,
        replaced: Replaced,
    ) -> Option<Arc<Row>> {
        let no_op = self.no_op.take(); // a row that comes later knows of it
        let row = std::mem::replace(&mut self.row, row);
        if replaced == Replaced::Drop {
            return row;
        }
        self.before = Some(Box::new(Former {
            row,
            no_op,
            until: publish,
            before: self.before.take(),
        }));
        None
    }

    /// Returns true if the entry has former versions that no listing needs once this publish is applied.
    pub(super) fn is_past(&self, publish: u64) -> bool {
        self.before.as_ref().is_some_and(|former| former.until <= publish)
    }
}

#[cfg(test)]
mod tests {
    use watershed_core::Trigger;

    use super::*;

    fn pending(why: Trigger) -> Status {
        Status {
            stage: Stage::Pending,
            reason: Some(Arc::new(Reason::bare(why))),
            progress: None,
        }
    }

    #[test]
    fn what_stands_alike_is_kept_once_and_keeps_its_own_time() {
        let (mut early, mut late, mut other) = (Entry::default(), Entry::default(), Entry::default());
        early.stand(
            &pending(Trigger::Retry),
            Timestamp(1),
            &mut None,
            SharedBy::Everybody,
        );
        let mut latest = None;
        for entry in [&mut early, &mut late, &mut other] {
            entry.stand(
                &pending(Trigger::Start),
                Timestamp(2),
                &mut latest,
                SharedBy::FewReaders,
            );
        }
        for (entry, since) in [(&early, 1), (&late, 2), (&other, 2)] {
            assert_eq!(*entry.status(), pending(Trigger::Start));
            assert_eq!(
                entry.stands_since(),
                Timestamp(since),
                "it has been pending since then"
            );
        }
        let shares = |a: &Entry, b: &Entry| {
            let both = a.stands.as_ref().zip(b.stands.as_ref());
            both.is_some_and(|(a, b)| Arc::ptr_eq(a, b))
        };
        assert!(shares(&late, &other));
        assert!(!shares(&early, &late));
        late.stand(&IDLE, Timestamp(3), &mut latest, SharedBy::FewReaders);
        assert_eq!(*late.status(), IDLE);
    }

    #[test]
    fn what_readers_count_references_to_is_not_what_the_core_does() {
        let core = pending(Trigger::Start);
        for (shared, references) in [(SharedBy::Everybody, 2), (SharedBy::FewReaders, 1)] {
            let mut entry = Entry::default();
            entry.stand(&core, Timestamp(1), &mut None, shared);
            assert_eq!(*entry.status(), core);
            assert_eq!(core.reason.as_ref().map(Arc::strong_count), Some(references));
        }
    }

    #[test]
    fn an_entry_is_small() {
        // With its uid, and as empty as maps may be, a hundred bytes: a tenth of what a resource may cost.
        assert!(size_of::<Entry>() <= 32, "{}", size_of::<Entry>());
    }
}
