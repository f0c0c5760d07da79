//! Group commit, and the order of release: answers, snapshots and events come after the rows they speak of.

pub(crate) mod no_op;

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::core::Core;
use crate::journal::no_op::Untold;
use crate::resource::lifecycle::At;
use crate::resource::{Life, Slot};
use crate::timers::Timer;
use crate::timers::backoff::backoff;
use crate::types::edit::unless_empty;
use crate::{
    Answer, CallId, Commit, CommitError, CommitId, Effect, Gone, HistoryRow, Mono, NoOpRun, Publish,
    Revision, Row, Standing, Status, StatusUpdate, StopReason, Write,
};

/// The first wait before a failed commit is tried again; it doubles up to the cap.
const RETRY_BASE: Duration = Duration::from_millis(50);
/// The longest such wait: short against the patience of 30 s.
const RETRY_CAP: Duration = Duration::from_secs(2);

/// A commit handed to the store.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
struct InFlight {
    commit: Commit,
    gone: Vec<Gone>,
    /// When it first failed, and how often it has.
    failing: Option<(Mono, u32)>,
    /// The store has refused it at the first try: nothing of it is there.
    refused: bool,
}

/// What is changed and not yet durable, and what waits for that.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Commits {
    durable: Revision,
    /// Set when the next change is the first of its input, and takes a revision.
    fresh: bool,
    dirty: Vec<Slot>,
    gone: Vec<Gone>,
    history: Vec<HistoryRow>,
    in_flight: Option<InFlight>,
    last_id: CommitId,
    /// In order of revision.
    answers: VecDeque<(Revision, CallId, Answer)>,
    /// Committed, to be published with the next flush.
    rows: Vec<Arc<Row>>,
    departed: Vec<Gone>,
    statuses: Vec<Slot>,
    no_ops: Untold,
}

impl Commits {
    pub(crate) fn durable(&self) -> Revision {
        self.durable
    }

    /// The revision that the store has, or was last told to have.
    pub(crate) fn handed_out(&self) -> Revision {
        let in_flight = self.in_flight.as_ref().map(|flight| flight.commit.revision);
        in_flight.unwrap_or(self.durable)
    }

    /// What is changed and was not handed to the store.
    pub(crate) fn dirty_slots(&self) -> HashSet<Slot> {
        self.dirty.iter().copied().collect()
    }

    pub(crate) fn loaded(&mut self, revision: Revision) {
        self.durable = revision;
    }

    pub(crate) fn begin_input(&mut self) {
        self.fresh = true;
    }

    pub(crate) fn history(&mut self, row: HistoryRow) {
        self.history.push(row);
    }

    /// Shows readers a no-op run once this revision is durable.
    pub(crate) fn show_later(&mut self, after: Revision, slot: Slot, run: Arc<NoOpRun>) {
        self.no_ops.push(after, slot, run);
    }

    pub(crate) fn backlog(&self) -> usize {
        self.dirty.len() + self.gone.len() + self.answers.len() + self.no_ops.len()
    }

    /// Whether everything is durable, published and answered.
    pub(crate) fn is_clean(&self) -> bool {
        let is_told = self.answers.is_empty() && self.rows.is_empty() && self.no_ops.len() == 0;
        self.in_flight.is_none() && !self.has_changes() && is_told
    }

    fn has_changes(&self) -> bool {
        !(self.dirty.is_empty() && self.gone.is_empty() && self.history.is_empty())
    }

    /// The calls of all answers that were not given yet, and whether they may be committed all the same: they went
    /// with a commit of which nobody knows how it ended.
    pub(crate) fn take_answers(&mut self) -> Vec<(CallId, bool)> {
        let doubtful = self.in_flight.as_ref().filter(|flight| !flight.refused);
        let doubt = doubtful.map(|flight| flight.commit.revision);
        self.answers
            .drain(..)
            .map(|(revision, call, _)| (call, doubt.is_some_and(|doubt| revision <= doubt)))
            .collect()
    }
}

impl Core {
    /// The revision of the change that is being made.
    pub(crate) fn change(&mut self) -> Revision {
        if std::mem::take(&mut self.commits.fresh) {
            self.revision = self.revision.next();
        }
        self.revision
    }

    /// Changes the row of a resource; readers keep the one that they have.
    pub(crate) fn write(&mut self, slot: Slot, change: impl FnOnce(&mut Row)) {
        if self.slots[slot].unreadable().is_some() {
            return; // kept untouched, whatever happens around it
        }
        let revision = self.change();
        let resource = &mut self.slots[slot];
        let row = Arc::make_mut(&mut resource.row);
        if let Some(no_op) = resource.no_op.take() {
            no_op.show_in(row);
        }
        change(row);
        row.revision = revision;
        row.updated_at = self.now.wall;
        if !std::mem::replace(&mut resource.listed.row_dirty, true) {
            self.commits.dirty.push(slot);
        }
    }

    /// Takes the row out of the catalog; the store need not hear of what it never had.
    pub(crate) fn write_removal(&mut self, slot: Slot) {
        let revision = self.change();
        let resource = &mut self.slots[slot];
        resource.listed.row_dirty = false;
        if resource.stored {
            let row = &resource.row;
            self.commits.gone.push(Gone {
                uid: row.uid,
                key: row.key(),
                revision,
            });
        }
    }

    pub(crate) fn touch_status(&mut self, slot: Slot) {
        let listed = &mut self.slots[slot].listed;
        if !std::mem::replace(&mut listed.status_dirty, true) {
            self.commits.statuses.push(slot);
        }
    }

    /// Answers a call once all that is changed by now is durable.
    pub(crate) fn answer(&mut self, call: CallId, answer: Answer) {
        self.commits.answers.push_back((self.revision, call, answer));
    }

    /// The answers that wait for this revision to be durable. Asked when a commit of it is emitted, that is what the
    /// commit carries out.
    pub fn answers_through(&self, revision: Revision) -> impl Iterator<Item = (CallId, &Answer)> {
        let answers = self.commits.answers.iter();
        answers
            .take_while(move |(of, _, _)| *of <= revision)
            .map(|(_, call, answer)| (*call, answer))
    }

    /// How many answers the next flush releases.
    pub fn answers_to_release(&self) -> usize {
        self.answers_through(self.commits.durable).count()
    }

    /// How many rows the next flush hands to the store; none while the store is busy.
    pub fn to_commit(&self) -> usize {
        if self.commits.in_flight.is_some() {
            return 0;
        }
        self.commits.dirty.len() + self.commits.gone.len() + self.commits.history.len()
    }

    pub(crate) fn release_answers(&mut self) {
        while let Some((revision, _, _)) = self.commits.answers.front() {
            if *revision > self.commits.durable {
                break;
            }
            if let Some((_, call, answer)) = self.commits.answers.pop_front() {
                self.out.push(Effect::Answer { call, answer });
            }
        }
    }

    /// Hands everything changed to the store, unless it is busy.
    pub(crate) fn start_commit(&mut self) {
        if self.commits.in_flight.is_some() || !self.commits.has_changes() {
            return;
        }
        let mut writes: Vec<Write> = Vec::with_capacity(self.commits.dirty.len() + self.commits.gone.len());
        for slot in self.commits.dirty.drain(..) {
            let Some(resource) = self.slots.get_mut(slot) else {
                continue;
            };
            if std::mem::take(&mut resource.listed.row_dirty) && resource.life != Life::Gone {
                resource.stored = true;
                writes.push(Write::Put(resource.row.clone()));
            }
        }
        let gone = std::mem::take(&mut self.commits.gone);
        writes.extend(gone.iter().map(|gone| Write::Remove(gone.uid)));
        self.commits.last_id = self.commits.last_id.next();
        let commit = Commit {
            id: self.commits.last_id,
            epoch: self.epoch,
            revision: self.revision,
            writes: writes.into(),
            history: unless_empty(std::mem::take(&mut self.commits.history).into()),
        };
        self.out.push(Effect::Commit(commit.clone()));
        self.commits.in_flight = Some(InFlight {
            commit,
            gone,
            failing: None,
            refused: false,
        });
    }

    /// A commit is durable: what waited for it may go.
    pub(crate) fn committed(&mut self, id: CommitId) {
        let Some(done) = self.commits.in_flight.take_if(|flight| flight.commit.id == id) else {
            return;
        };
        self.commits.durable = done.commit.revision;
        for write in done.commit.writes.iter() {
            if let Write::Put(row) = write {
                self.commits.rows.push(row.clone());
            }
        }
        self.commits.departed.extend(done.gone);
        while let Some(first) = self.awaiting.first_entry()
            && *first.key() <= self.commits.durable
        {
            for slot in first.remove() {
                if self.slots.get(slot).is_some() {
                    self.enqueue(slot);
                }
            }
        }
    }

    pub(crate) fn commit_failed(&mut self, id: CommitId, error: CommitError) {
        let now = self.now.mono;
        let Some(flight) = self
            .commits
            .in_flight
            .as_mut()
            .filter(|flight| flight.commit.id == id)
        else {
            return;
        };
        let message = match error {
            CommitError::Failed(message) => message,
            CommitError::Full(message) => return self.stop(StopReason::StoreFull(message)),
            CommitError::LeaseLost => {
                // Refused at the first try, it is certainly not in the store; at a later one the first may be.
                flight.refused = flight.failing.is_none();
                return self.stop(StopReason::LeaseLost);
            }
        };
        let (since, failures) = flight.failing.unwrap_or((now, 0));
        flight.failing = Some((since, failures + 1));
        if now.since(since) >= self.limits.commit_patience {
            return self.stop(StopReason::StoreFailed(message));
        }
        let wait = backoff(RETRY_BASE, RETRY_CAP, failures + 1);
        self.timers.set(Timer::CommitRetry, now.after(wait));
    }

    pub(crate) fn retry_commit(&mut self) {
        if let Some(flight) = &self.commits.in_flight {
            self.out.push(Effect::Commit(flight.commit.clone()));
        }
    }

    /// Shows readers what is committed, and how the resources that they know stand.
    pub(crate) fn publish(&mut self) {
        let mut rows = std::mem::take(&mut self.commits.rows);
        rows.sort_by_key(|row| row.revision);
        for row in &rows {
            let slot = self.slots.find(row.uid);
            if let Some(slot) = slot
                && !std::mem::replace(&mut self.slots[slot].published, true)
            {
                self.touch_status(slot);
            }
        }
        let mut statuses = Vec::with_capacity(self.commits.statuses.len());
        let mut no_ops = self.commits.no_ops.take(self.commits.durable);
        let mut touched = std::mem::take(&mut self.commits.statuses);
        for slot in touched.drain(..) {
            let Some(resource) = self.slots.get_mut(slot) else {
                continue;
            };
            let dirty = std::mem::take(&mut resource.listed.status_dirty);
            if dirty && resource.published && resource.life != Life::Gone {
                let uid = resource.row.uid;
                statuses.push(StatusUpdate {
                    uid,
                    status: self.status(slot),
                    no_op: no_ops.remove(slot, uid),
                });
            }
        }
        self.commits.statuses = touched;
        for (slot, run) in no_ops.rest() {
            if self.slots.find(run.uid) == Some(slot) {
                statuses.push(StatusUpdate {
                    uid: run.uid,
                    status: self.status(slot),
                    no_op: Some(run),
                });
            }
        }
        let gone = std::mem::take(&mut self.commits.departed);
        if !(rows.is_empty() && gone.is_empty() && statuses.is_empty()) {
            self.out.push(Effect::Publish(Publish {
                revision: self.commits.durable,
                rows,
                gone,
                statuses,
            }));
        }
    }

    pub(crate) fn status(&self, slot: Slot) -> Status {
        match self.slots[slot].lifecycle.at() {
            At::Settled(why) => Status {
                standing: Standing::Settled(crate::Settled::clone(why)),
                reason: None,
                progress: None,
            },
            At::Pending(pending) => Status {
                standing: Standing::Pending,
                reason: Some(pending.reason.clone()),
                progress: None,
            },
            // Never seen between two inputs.
            At::Concluding => Status {
                standing: Standing::Pending,
                reason: None,
                progress: None,
            },
            At::Running(run) => Status {
                standing: Standing::Running {
                    invocation: run.invocation,
                    phase: run.phase,
                    since: run.started_at,
                    cancelled: run.cancelled != crate::resource::Cancelled::No,
                },
                reason: Some(run.reason.clone()),
                progress: run.progress.clone(),
            },
        }
    }
}
