//! Group commit, and the order of release: answers, snapshots and events follow the rows that they depend on.

pub(crate) mod no_op;
mod writes;

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::graph::Graph;
use crate::graph::resource::{Life, Resource};
use crate::timers::backoff::backoff;
use crate::timers::{Timer, Timers};
use crate::types::edit::unless_empty;
use crate::types::index::Slot;
use crate::{
    Answer, CallId, Commit, CommitError, CommitId, Effect, Epoch, HistoryRow, Limits, Mono, Publish, Removed,
    Revision, Row, StatusUpdate, StopReason, Write,
};
use no_op::Untold;

/// Wait before the first retry of a failed commit; doubled each time, up to [`RETRY_CAP`].
const RETRY_BASE: Duration = Duration::from_millis(50);
/// Longest wait before the retry of a failed commit: short against the default patience of 30 s.
const RETRY_CAP: Duration = Duration::from_secs(2);

/// A commit handed to the store.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
struct InFlight {
    commit: Commit,
    removed: Vec<Removed>,
    /// Time of the first failure, and the number of failures; none before the first.
    failing: Option<(Mono, u32)>,
    /// True if the store refused the commit at the first try, so that none of it is stored.
    refused: bool,
}

/// Changes that are not durable yet, and everything that waits for them.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Journal {
    epoch: Epoch,
    /// Revision of the catalog, including changes that are not committed yet.
    revision: Revision,
    durable: Revision,
    /// True if the next change is the first of its input, and takes a new revision.
    fresh: bool,
    dirty: Vec<Slot>,
    removed: Vec<Removed>,
    history: Vec<HistoryRow>,
    in_flight: Option<InFlight>,
    last_id: CommitId,
    /// Answers to calls, each with the revision that must be durable first; in order of revision.
    answers: VecDeque<(Revision, CallId, Answer)>,
    /// Resources that wait for a commit, by the revision that must be durable.
    awaiting: BTreeMap<Revision, Vec<Slot>>,
    /// Committed rows to publish with the next flush.
    rows: Vec<Arc<Row>>,
    departed: Vec<Removed>,
    no_ops: Untold,
    /// Backlog of rows and answers at which no calls are accepted.
    limit: usize,
    /// Time for which a commit may keep failing before the core stops.
    patience: Duration,
}

impl Journal {
    /// Creates the journal of a catalog that is durable up to this revision.
    pub(crate) fn new(limits: &Limits, epoch: Epoch, revision: Revision) -> Self {
        Self {
            epoch,
            revision,
            durable: revision,
            fresh: true,
            dirty: Vec::new(),
            removed: Vec::new(),
            history: Vec::new(),
            in_flight: None,
            last_id: CommitId::default(),
            answers: VecDeque::new(),
            awaiting: BTreeMap::new(),
            rows: Vec::new(),
            departed: Vec::new(),
            no_ops: Untold::default(),
            limit: limits.backlog,
            patience: limits.commit_patience,
        }
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Returns the catalog's revision, including changes that are not committed yet.
    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    /// Makes a resource wait until this revision is durable, and then evaluates it.
    pub(crate) fn await_commit(&mut self, revision: Revision, slot: Slot) {
        self.awaiting.entry(revision).or_default().push(slot);
    }

    /// Returns the resources that wait for a commit, by revision.
    pub(crate) fn awaiting(&self) -> &BTreeMap<Revision, Vec<Slot>> {
        &self.awaiting
    }

    /// Returns true if the backlog is below its limit.
    pub(crate) fn has_room(&self) -> bool {
        self.backlog() < self.limit
    }

    pub(crate) fn durable(&self) -> Revision {
        self.durable
    }

    /// Returns the revision last handed to the store, durable or not.
    pub(crate) fn handed_out(&self) -> Revision {
        let in_flight = self.in_flight.as_ref().map(|flight| flight.commit.revision);
        in_flight.unwrap_or(self.durable)
    }

    /// Returns the changed resources that are not handed to the store yet.
    pub(crate) fn dirty_slots(&self) -> HashSet<Slot> {
        self.dirty.iter().copied().collect()
    }

    pub(crate) fn begin_input(&mut self) {
        self.fresh = true;
    }

    pub(crate) fn backlog(&self) -> usize {
        self.dirty.len() + self.removed.len() + self.answers.len() + self.no_ops.len()
    }

    /// Returns true if everything is durable, published and answered.
    pub(crate) fn is_clean(&self) -> bool {
        let is_told = self.answers.is_empty() && self.rows.is_empty() && self.no_ops.len() == 0;
        self.in_flight.is_none() && !self.has_changes() && is_told
    }

    fn has_changes(&self) -> bool {
        !(self.dirty.is_empty() && self.removed.is_empty() && self.history.is_empty())
    }

    /// Takes the calls of all open answers, each with true if its changes may be committed nevertheless: the end of
    /// their commit is unknown.
    pub(crate) fn take_answers(&mut self) -> Vec<(CallId, bool)> {
        let doubtful = self.in_flight.as_ref().filter(|flight| !flight.refused);
        let doubt = doubtful.map(|flight| flight.commit.revision);
        self.answers
            .drain(..)
            .map(|(revision, call, _)| (call, doubt.is_some_and(|doubt| revision <= doubt)))
            .collect()
    }

    /// Answers a call once all changes so far are durable.
    pub(crate) fn answer(&mut self, call: CallId, answer: Answer) {
        // Refusals as well: a name that is taken may be taken by a row that is not durable yet.
        self.answers.push_back((self.revision, call, answer));
    }

    /// Lists the answers that wait for this revision to be durable: right after its commit is emitted, the calls in
    /// that commit.
    pub(crate) fn answers_through(&self, revision: Revision) -> impl Iterator<Item = (CallId, &Answer)> {
        let answers = self.answers.iter();
        answers
            .take_while(move |(of, _, _)| *of <= revision)
            .map(|(_, call, answer)| (*call, answer))
    }

    /// Returns how many answers the next flush releases.
    pub(crate) fn answers_to_release(&self) -> usize {
        self.answers_through(self.durable).count()
    }

    /// Returns how many rows the next flush hands to the store; 0 while the store is busy.
    pub(crate) fn to_commit(&self) -> usize {
        if self.in_flight.is_some() {
            return 0;
        }
        self.dirty.len() + self.removed.len() + self.history.len()
    }

    pub(crate) fn release_answers(&mut self, out: &mut Vec<Effect>) {
        // In the order of the calls: a caller that made two must not hear of the second first.
        while let Some((revision, _, _)) = self.answers.front() {
            if *revision > self.durable {
                break;
            }
            if let Some((_, call, answer)) = self.answers.pop_front() {
                out.push(Effect::Answer { call, answer });
            }
        }
    }

    /// Hands all changes to the store, unless a commit is in flight.
    pub(crate) fn start_commit(&mut self, graph: &mut Graph, out: &mut Vec<Effect>) {
        if self.in_flight.is_some() || !self.has_changes() {
            return;
        }
        let mut writes: Vec<Write> = Vec::with_capacity(self.dirty.len() + self.removed.len());
        for slot in self.dirty.drain(..) {
            let Some(resource) = graph.get_mut(slot) else {
                continue;
            };
            if resource.take_row_dirty() && resource.life() != Life::Gone {
                resource.set_stored();
                writes.push(Write::Put(resource.row().clone()));
            }
        }
        let removed = std::mem::take(&mut self.removed);
        writes.extend(removed.iter().map(|removed| Write::Remove(removed.uid)));
        self.last_id = self.last_id.next();
        let commit = Commit {
            id: self.last_id,
            epoch: self.epoch,
            revision: self.revision,
            writes: writes.into(),
            history: unless_empty(std::mem::take(&mut self.history).into()),
        };
        out.push(Effect::Commit(commit.clone()));
        self.in_flight = Some(InFlight {
            commit,
            removed,
            failing: None,
            refused: false,
        });
    }

    /// Marks a commit as durable, and evaluates everything that waited for it.
    pub(crate) fn committed(&mut self, graph: &mut Graph, id: CommitId) {
        let Some(done) = self.in_flight.take_if(|flight| flight.commit.id == id) else {
            return;
        };
        self.durable = done.commit.revision;
        for write in done.commit.writes.iter() {
            // The row as it was committed. That in the graph may be newer already, and a crash could take it back.
            if let Write::Put(row) = write {
                self.rows.push(row.clone());
            }
        }
        self.departed.extend(done.removed);
        while let Some(first) = self.awaiting.first_entry()
            && *first.key() <= self.durable
        {
            for slot in first.remove() {
                if graph.get(slot).is_some() {
                    graph.enqueue(slot);
                }
            }
        }
    }

    /// Handles a failed commit: schedules a retry, or returns the reason why the core must stop.
    pub(crate) fn commit_failed(
        &mut self,
        timers: &mut Timers,
        now: Mono,
        (id, error): (CommitId, CommitError),
    ) -> Option<StopReason> {
        let flight = self.in_flight.as_mut().filter(|flight| flight.commit.id == id)?;
        let message = match error {
            CommitError::Failed(message) => message,
            // Another try makes no room.
            CommitError::Full(message) => return Some(StopReason::StoreFull(message)),
            CommitError::LeaseLost => {
                // Refused at the first try, it is certainly not in the store; at a later one the first may be.
                flight.refused = flight.failing.is_none();
                return Some(StopReason::LeaseLost);
            }
        };
        let (since, failures) = flight.failing.unwrap_or((now, 0));
        flight.failing = Some((since, failures + 1));
        if now.since(since) >= self.patience {
            return Some(StopReason::StoreFailed(message));
        }
        let wait = backoff(RETRY_BASE, RETRY_CAP, failures + 1);
        timers.set(Timer::CommitRetry, now.after(wait));
        None
    }

    /// Hands a failed commit to the store again.
    pub(crate) fn retry_commit(&self, out: &mut Vec<Effect>) {
        if let Some(flight) = &self.in_flight {
            out.push(Effect::Commit(flight.commit.clone()));
        }
    }

    /// Publishes the committed rows, and the statuses of resources that readers know.
    pub(crate) fn publish(&mut self, graph: &mut Graph, out: &mut Vec<Effect>) {
        let mut rows = std::mem::take(&mut self.rows);
        // A watcher goes on from the last revision that it saw, so revisions must rise within the log.
        rows.sort_by_key(|row| row.revision);
        for row in &rows {
            let slot = graph.find(row.uid);
            if let Some(slot) = slot
                && graph[slot].publish()
            {
                graph.touch_status(slot);
            }
        }
        let mut touched = graph.take_touched();
        let mut statuses = Vec::with_capacity(touched.len());
        let mut no_ops = self.no_ops.take(self.durable);
        for slot in touched.drain(..) {
            let Some(resource) = graph.get_mut(slot) else {
                continue;
            };
            let dirty = resource.take_status_dirty();
            // A new resource shows with its row, once that is durable; its status alone would name something that nobody
            // knows.
            if dirty && is_known(resource) {
                let uid = resource.row().uid;
                statuses.push(StatusUpdate {
                    uid,
                    status: graph.status(slot),
                    no_op: no_ops.remove(slot, uid),
                });
            }
        }
        graph.give_back_touched(touched);
        for (slot, run) in no_ops.rest() {
            if graph.find(run.uid) == Some(slot) && is_known(&graph[slot]) {
                statuses.push(StatusUpdate {
                    uid: run.uid,
                    status: graph.status(slot),
                    no_op: Some(run),
                });
            }
        }
        let removed = std::mem::take(&mut self.departed);
        if !(rows.is_empty() && removed.is_empty() && statuses.is_empty()) {
            out.push(Effect::Publish(Publish {
                revision: self.durable,
                rows,
                removed,
                statuses,
            }));
        }
    }
}

/// Returns true if readers know the resource and it is not gone.
fn is_known(resource: &Resource) -> bool {
    resource.is_published() && resource.life() != Life::Gone
}

#[cfg(test)]
impl Journal {
    pub(crate) fn plant_revision(&mut self, revision: Revision) {
        self.revision = revision;
    }
}
