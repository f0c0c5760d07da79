//! One resource as readers see it, and what it was before, for those who may still want that.
//!
//! Catalogs have many entries, nearly all of them idle and without a past; so an entry is small, and what few have lies
//! elsewhere.

use std::mem::discriminant;
use std::sync::Arc;

use watershed_core::{Key, NoOpRun, Reason, Row, Settled, Stage, Status, Timestamp};

use super::is_live;
use crate::types::resource::Resource;

/// The status of most resources, and of all before the core has published one.
const IDLE: Status = Status {
    stage: Stage::Settled(Settled::Idle),
    reason: None,
    progress: None,
};

/// One resource.
#[derive(Debug, Default)]
pub(super) struct Entry {
    /// None once it is gone, while somebody may still want what it was.
    pub(super) row: Option<Arc<Row>>,
    /// None while it is idle. Those that began to stand alike at once share it.
    stands: Option<Arc<Stands>>,
    pub(super) before: Option<Box<Former>>,
    /// Its last run, if the row does not tell of it because it was a no-op.
    no_op: Option<Arc<NoOpRun>>,
}

/// A status, with the time since which it holds.
#[derive(Debug)]
pub(super) struct Stands {
    status: Status,
    /// The time at which it began to stand like that, as far as it is settled, pending or running.
    since: Timestamp,
}

/// The former contents of an entry.
#[derive(Debug)]
pub(super) struct Former {
    row: Option<Arc<Row>>,
    no_op: Option<Arc<NoOpRun>>,
    /// The publish that replaced it.
    until: u64,
    before: Option<Box<Former>>,
}

/// The owner of the reference count of a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SharedBy {
    /// The core as well: nothing is copied.
    Everybody,
    /// Readers alone. When very many begin to stand alike, every read counts one reference more and one less to the same
    /// reason; threads that read would wait for each other there, and the loop for them.
    FewReaders,
}

/// Tells whether a publish leaves behind what it replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Replaced {
    Drop,
    Keep,
}

impl Entry {
    /// A row that was found, idle.
    pub(super) fn from_row(row: Arc<Row>) -> Self {
        Self {
            row: Some(row),
            ..Self::default()
        }
    }

    /// The resource with its present row.
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

    /// Returns the time at which it began to stand as it does; nobody knows of what is idle.
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

    /// Takes note of a no-op run.
    pub(super) fn note_no_op(&mut self, run: &Arc<NoOpRun>) {
        if self.row.as_ref().is_some_and(|row| !run.is_in(row)) {
            self.no_op = Some(Arc::clone(run));
        }
    }

    /// The resource with its row as it was when this publish was the last one, if it was there and is to be kept.
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

    /// The resource with the row, present or former, that is found under this key.
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

    /// Puts another row in its place; what nobody may want any more is for the caller to drop.
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

    /// Returns true if a publish has left something behind here that nobody wants who begins after this one.
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
