//! An observer that turns the changes of a controller into events.
//!
//! Invariants:
//! 1. Every `resource_finished` follows a `resource_started` of the same resource.
//! 2. A `resource_started` follows the `resource_finished` of everything that it reads and that ran before it. Starts
//!    are published at once and ends with their commit, so a start is held while an end is still to be told.
//! 3. A run that ended before this observer began is never told.
//! 4. A run whose end shares its commit with that of a later one is told all the same, from the history.
//! 5. A no-op run, of which no row tells, is told like any other.

mod messages;
mod missed;
mod stories;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use watershed_api::documents::{Ended, Event, LastRun, Outcome, Reason, ResourceName, Time, Work};
use watershed_api::request::Activity;
use watershed_controller::history::{HistoryRow, InvocationId, Repeats};
use watershed_controller::resource::{NoOpRun, Row, Stage};
use watershed_controller::watch::{Changes, Removed, StatusUpdate, Watch};
use watershed_controller::{Event as Seen, Handle, Key, Ref, Select, Uid};

use self::messages::Messages;
use self::missed::{Missed, ReportedRuns};
use self::stories::Stories;
use crate::report::health::own_error;
use crate::report::problems::Problem;
use crate::report::summary::Done;
use crate::report::{Entry, Hidden, kinds, resource};

/// A reader of one controller's changes, which turns them into the events of a command.
pub(crate) struct Observer {
    handle: Handle,
    watch: Watch,
    hidden: Hidden,
    known: HashMap<Uid, Known>,
    by_key: HashMap<Key, Uid>,
    unsettled: BTreeSet<Uid>,
    running: BTreeSet<Uid>,
    /// Start events held back until the end events that must precede them.
    held: BTreeMap<Uid, (BTreeSet<Uid>, Event)>,
    /// A change that was read and not processed yet, kept in case a read of the history is cancelled.
    unread: Option<Seen>,
    done: Done,
    stories: Stories,
    messages: Messages,
    /// Resources that are listed, or were until they were removed, since the count began: the total of the progress.
    shown: HashSet<Uid>,
    /// Listed resources whose runs have ended since the count began.
    ended: HashSet<Uid>,
    /// The problems found since they were last taken.
    problems: Vec<Problem>,
}

/// The last reported state of a resource.
struct Known {
    name: ResourceName,
    key: Key,
    reads: Arc<[Ref]>,
    hidden: bool,
    /// The resource's name before the rename that is under way.
    was: Option<String>,
    declared_as: Option<String>,
    result: Option<serde_json::Value>,
    /// True if the last reported run failed, or left the resource failed.
    failed: bool,
    /// The last run that was reported, or that had ended before.
    told: Option<(u64, InvocationId)>,
    /// The number of runs up to the last one reported.
    runs: u64,
    /// The runs that share the history entry of the last reported run, if later runs may join them; none otherwise.
    repeats: Option<Repeats>,
    /// A run whose start was reported and whose end was not.
    open: Option<Begun>,
    /// A run that began before the end of the previous one was reported.
    ///
    /// Its stage is known at once, its result when that is stored.
    awaited: Option<InvocationId>,
}

struct Begun {
    invocation: InvocationId,
    reason: Option<Reason>,
    at: Time,
    deletes: bool,
}

impl Observer {
    /// Begins to observe; `before` is the catalog when the command began.
    pub(crate) fn new(
        handle: Handle,
        before: &[Entry],
        revision: watershed_controller::resource::Revision,
        hidden: Hidden,
    ) -> Self {
        let watch = handle.watch(revision);
        let known = before
            .iter()
            .map(|entry| (entry.row.uid, Known::from_row(&entry.row)))
            .collect();
        let by_key = before
            .iter()
            .map(|entry| (entry.row.key(), entry.row.uid))
            .collect();
        let listed = before.iter().filter(|entry| entry.is_listed(hidden));
        let shown = listed.map(|entry| entry.row.uid).collect();
        Self {
            handle,
            watch,
            hidden,
            known,
            by_key,
            unsettled: BTreeSet::new(),
            running: BTreeSet::new(),
            held: BTreeMap::new(),
            unread: None,
            done: Done::default(),
            stories: Stories::new(before.iter().map(|entry| entry.row.as_ref())),
            messages: Messages::new(before.iter().map(|entry| entry.row.as_ref())),
            shown,
            ended: HashSet::new(),
            problems: Problem::of_before(before),
        }
    }

    /// Takes the problems found since the last call.
    pub(crate) fn take_problems(&mut self) -> Vec<Problem> {
        std::mem::take(&mut self.problems)
    }

    /// Returns the next events; none when the controller has stopped. Cancel-safe: changes are kept until they are
    /// reported.
    pub(crate) async fn next(&mut self) -> Option<Vec<Event>> {
        if self.unread.is_none() {
            self.unread = Some(self.watch.next().await?);
        }
        let seen = self.unread.as_ref()?;
        let missed = missed::read(&self.handle, seen, |uid| self.told(uid)).await;
        let seen = self.unread.take()?;
        Some(self.take(seen, &missed))
    }

    /// Returns the events that are available now, without waiting for more.
    pub(crate) async fn rest(&mut self) -> Vec<Event> {
        use futures::FutureExt as _;
        let mut events = Vec::new();
        loop {
            if self.unread.is_none() {
                self.unread = self.watch.next().now_or_never().flatten();
            }
            match self.unread {
                Some(_) => events.extend(self.next().await.unwrap_or_default()),
                None => return events,
            }
        }
    }

    fn told(&self, uid: Uid) -> Option<ReportedRuns> {
        let known = self.known.get(&uid).filter(|known| self.shows(known))?;
        Some(ReportedRuns {
            run: known.told,
            total: known.runs,
            repeats: known.repeats,
        })
    }

    /// Returns the work and outcomes of all runs since the count began.
    pub(crate) fn done(&self) -> &Done {
        &self.done
    }

    /// Resets the count of work and outcomes.
    pub(crate) fn count_anew(&mut self) {
        self.done = Done::default();
        self.ended.clear();
        self.shown.retain(|uid| self.known.contains_key(uid));
    }

    /// Returns true if nothing is pending or running, and the end of every run was reported.
    pub(crate) fn is_settled(&self) -> bool {
        self.unsettled.is_empty()
            && self.held.is_empty()
            && self
                .known
                .values()
                .all(|known| known.open.is_none() && known.awaited.is_none())
    }

    /// Returns the progress of the command.
    pub(crate) fn activity(&self) -> Activity {
        let shown = |uid: &&Uid| self.known.get(uid).is_some_and(|known| self.shows(known));
        let total = self.shown.len() as u64;
        let unsettled = self.unsettled.iter().filter(shown).count() as u64;
        let running = self
            .running
            .iter()
            .filter(shown)
            .filter_map(|uid| self.known.get(uid));
        Activity {
            settled: total.saturating_sub(unsettled),
            total,
            running: running.map(|known| known.name.clone()).collect(),
        }
    }

    fn shows(&self, known: &Known) -> bool {
        self.hidden == Hidden::Show || !known.hidden
    }

    fn take(&mut self, seen: Seen, missed: &Missed) -> Vec<Event> {
        let mut events = Vec::new();
        match seen {
            Seen::Changed(changes) => self.changed(&changes, missed, &mut events),
            Seen::Status(updates) => updates.iter().for_each(|update| self.moved(update, &mut events)),
            Seen::Lagged => self.catch_up(&mut events),
        }
        events
    }

    fn changed(&mut self, changes: &Changes, missed: &Missed, events: &mut Vec<Event>) {
        for row in &changes.rows {
            for run in missed.get(&row.uid).into_iter().flatten() {
                self.missed(run, events);
            }
            self.row(row, events);
        }
        for removed in &changes.removed {
            self.stories.forget(removed.uid);
            self.messages.forget(removed.uid);
            self.removed(removed, events);
        }
    }

    /// Reads all resources again after missed changes, and reports what their rows say.
    fn catch_up(&mut self, events: &mut Vec<Event>) {
        let listing = self.handle.list(Select::all());
        self.watch = self.handle.watch(listing.revision);
        let there: BTreeSet<Uid> = listing
            .resources
            .iter()
            .map(|resource| resource.row.uid)
            .collect();
        self.known.retain(|uid, _| there.contains(uid));
        self.shown.retain(|uid| there.contains(uid));
        self.unsettled.clear();
        self.running.clear();
        self.known.values_mut().for_each(|known| known.awaited = None);
        events.extend(
            std::mem::take(&mut self.held)
                .into_values()
                .map(|(_, start)| start),
        );
        for resource in listing.resources {
            self.row(&resource.row, events);
            self.stand(resource.row.uid, &resource.status.stage);
        }
    }

    fn row(&mut self, row: &Row, events: &mut Vec<Event>) {
        match row.hidden && self.hidden == Hidden::Leave {
            true => self.shown.remove(&row.uid),
            false => self.shown.insert(row.uid),
        };
        self.problems.extend(Problem::in_files(row));
        let known = self.known.entry(row.uid).or_insert_with(|| Known::unrun(row));
        let name = ResourceName::new(row.kind.as_str(), row.name.as_str());
        if known.name != name {
            known.was = Some(std::mem::replace(&mut known.name, name).name);
        }
        known.reads = Arc::clone(&row.refs);
        known.hidden = row.hidden;
        if known.key != row.key() {
            if self.by_key.get(&known.key) == Some(&row.uid) {
                self.by_key.remove(&known.key);
            }
            known.key = row.key();
        }
        self.by_key.insert(row.key(), row.uid);
        events.extend(self.stories.of(row));
        events.extend(self.messages.of(row));
        let Some(run) = &row.last_run else { return };
        let id = (run.epoch.0, run.id);
        if known.told == Some(id) {
            return;
        }
        known.told = Some(id);
        known.awaited.take_if(|awaited| *awaited <= run.id);
        known.runs = row.runs_total;
        known.repeats = run.repeats;
        let name = known.name.clone();
        let told = resource::last_run(run, &row.key(), row.error.as_ref());
        let work = resource::work(run.result, row.error.as_deref());
        let is_failed = told.outcome == Outcome::Failed;
        // A rename is followed by a look, which says whether what had failed still does.
        let was = known.was.take();
        let had_failed = match was {
            Some(_) => false,
            None => std::mem::replace(&mut known.failed, own_error(row).is_some()),
        };
        known.declared_as = kinds::declared_as(row);
        known.result = kinds::result(row);
        let about = Ended {
            fixed: had_failed && row.error.is_none(),
            was: was.filter(|_| work == Work::Renamed),
            ..known.about()
        };
        // A run that was cancelled found nothing: an error that stands is of a run before, perhaps of another text.
        if !row.hidden && told.outcome != Outcome::Cancelled {
            self.problems.extend(Problem::after_run(row));
        }
        let error = row.error.as_ref().filter(|_| is_failed);
        let finished = Event::ResourceFinished {
            at: Time::from_millis(run.ended_at.0),
            resource: name,
            work,
            error: error.map(|error| resource::failure(error)),
            run: told,
            about,
        };
        self.done.add(row);
        self.finished(row.uid, finished, events);
    }

    /// Reports a no-op run, which leaves no change in its row.
    fn no_op(&mut self, run: &NoOpRun, events: &mut Vec<Event>) {
        let id = (run.epoch.0, run.id);
        // Of a resource that came or went meanwhile, or seen in its row already.
        let is_news = |known: &&mut Known| known.told < Some(id);
        let Some(known) = self.known.get_mut(&run.uid).filter(is_news) else {
            return;
        };
        known.told = Some(id);
        known.awaited.take_if(|awaited| *awaited <= run.id);
        known.runs = run.runs_total;
        let last = run.as_last_run(None, watershed_controller::resource::StateVersion::default());
        let finished = Event::ResourceFinished {
            at: Time::from_millis(last.ended_at.0),
            resource: known.name.clone(),
            work: resource::work(last.result, None),
            error: None,
            run: resource::last_run(&last, &known.key, None),
            about: known.about(),
        };
        self.done.add_run(run.uid, last.result, None);
        self.finished(run.uid, finished, events);
    }

    /// Reports the end of a resource's last run, after its start and before the starts that waited for it.
    fn finished(&mut self, uid: Uid, mut finished: Event, events: &mut Vec<Event>) {
        self.count(uid, &mut finished);
        let held = self.held.remove(&uid).map(|(_, start)| start);
        let begun = self.known.get_mut(&uid).and_then(|known| known.open.take());
        if self.known.get(&uid).is_some_and(|known| self.shows(known)) {
            events.extend(held);
            if begun.is_none()
                && let Event::ResourceFinished { resource, run, .. } = &finished
            {
                events.push(started(resource, Some(run.reason), run.started_at));
            }
            events.push(finished);
        }
        self.release(uid, events);
    }

    /// Adds the progress of the command to the end of a run.
    fn count(&mut self, uid: Uid, finished: &mut Event) {
        if self.shown.contains(&uid) {
            self.ended.insert(uid);
        }
        if let Event::ResourceFinished { about, .. } = finished {
            about.ended = self.ended.len() as u64;
            about.resources = self.shown.len().max(self.ended.len()) as u64;
        }
    }

    /// Reports a past run of a resource that has run again since.
    fn missed(&mut self, run: &HistoryRow, events: &mut Vec<Event>) {
        self.done.add_run(run.uid, run.result, run.error.as_deref());
        events.extend(self.held.remove(&run.uid).map(|(_, start)| start));
        let mut finished = missed::finished(run);
        if let (
            Some(known),
            Event::ResourceFinished {
                about,
                resource,
                work,
                ..
            },
        ) = (self.known.get(&run.uid), &mut finished)
        {
            // The edit may have been seen before the runs that followed it, or together with them.
            let was = known.was.as_ref().unwrap_or(&known.name.name);
            let was = Some(was).filter(|was| **was != resource.name);
            *about = Ended {
                was: was.filter(|_| *work == Work::Renamed).cloned(),
                ..known.about()
            };
        }
        self.count(run.uid, &mut finished);
        let begun = self.known.get_mut(&run.uid).and_then(|known| known.open.take());
        if begun.is_none()
            && let Event::ResourceFinished { resource, run, .. } = &finished
        {
            events.push(started(resource, Some(run.reason), run.started_at));
        }
        events.push(finished);
    }

    /// Reports the starts that waited for this run's end alone.
    fn release(&mut self, ended: Uid, events: &mut Vec<Event>) {
        self.held.values_mut().for_each(|(awaited, _)| {
            awaited.remove(&ended);
        });
        let free: Vec<Uid> = self
            .held
            .iter()
            .filter(|(_, (awaited, _))| awaited.is_empty())
            .map(|(uid, _)| *uid)
            .collect();
        events.extend(
            free.iter()
                .filter_map(|uid| self.held.remove(uid))
                .map(|(_, start)| start),
        );
    }

    /// Lists the resources that this one reads whose ended runs are not reported yet.
    fn untold(&self, known: &Known) -> BTreeSet<Uid> {
        let targets = known
            .reads
            .iter()
            .filter_map(|reference| self.by_key.get(&reference.key()).copied());
        let ended = |uid: &Uid| {
            !self.running.contains(uid) && self.known.get(uid).is_some_and(|known| known.open.is_some())
        };
        targets.filter(ended).collect()
    }

    /// Reports the end of a delete, which leaves no row.
    fn removed(&mut self, removed: &Removed, events: &mut Vec<Event>) {
        self.unsettled.remove(&removed.uid);
        self.running.remove(&removed.uid);
        let Some(known) = self.known.remove(&removed.uid) else {
            return;
        };
        if self.by_key.get(&known.key) == Some(&removed.uid) {
            self.by_key.remove(&known.key);
        }
        events.extend(self.held.remove(&removed.uid).map(|(_, start)| start));
        self.release(removed.uid, events);
        let Some(begun) = known.open.as_ref().filter(|begun| begun.deletes && !known.hidden) else {
            self.shown.remove(&removed.uid);
            return;
        };
        let at = Time::now();
        let run = LastRun {
            id: format!("revision-{}", removed.revision),
            reason: begun.reason.unwrap_or(Reason::Deleted),
            cause: Vec::new(),
            chain: Vec::new(),
            started_at: begun.at,
            duration_ms: at.since_ms(begun.at),
            outcome: Outcome::Done,
        };
        let mut finished = Event::ResourceFinished {
            at,
            resource: known.name.clone(),
            work: Work::Dropped,
            run,
            error: None,
            about: Ended {
                result: None,
                ..known.about()
            },
        };
        self.count(removed.uid, &mut finished);
        events.push(finished);
    }

    fn moved(&mut self, update: &StatusUpdate, events: &mut Vec<Event>) {
        let uid = update.uid;
        self.stand(uid, &update.status.stage);
        if let Some(run) = &update.no_op {
            self.no_op(run, events);
        }
        let Stage::Running {
            invocation,
            phase,
            since,
            ..
        } = &update.status.stage
        else {
            return;
        };
        if let Some(known) = self.known.get_mut(&uid)
            && known
                .open
                .as_ref()
                .is_some_and(|open| open.invocation != *invocation)
        {
            known.awaited = Some(*invocation);
        }
        let Some(known) = self.known.get(&uid).filter(|known| known.open.is_none()) else {
            return;
        };
        let reason = update
            .status
            .reason
            .as_ref()
            .map(|reason| crate::report::resource::reason_of(reason.trigger));
        let at = Time::from_millis(since.0);
        let start = started(&known.name, reason, at);
        let (shows, untold) = (self.shows(known), self.untold(known));
        if shows && untold.is_empty() {
            events.push(start);
        } else if shows {
            self.held.insert(uid, (untold, start));
        }
        if let Some(known) = self.known.get_mut(&uid) {
            known.open = Some(Begun {
                invocation: *invocation,
                reason,
                at,
                deletes: *phase == watershed_controller::reconciler::Phase::Delete,
            });
        }
    }

    fn stand(&mut self, uid: Uid, stage: &Stage) {
        let (unsettled, running) = match stage {
            Stage::Settled(_) => (false, false),
            Stage::Pending => (true, false),
            Stage::Running { .. } => (true, true),
        };
        set(&mut self.unsettled, uid, unsettled);
        set(&mut self.running, uid, running);
    }
}

impl Known {
    fn from_row(row: &Row) -> Self {
        let told = row.last_run.as_ref().map(|run| (run.epoch.0, run.id));
        Self {
            told,
            runs: row.runs_total,
            repeats: row.last_run.as_ref().and_then(|run| run.repeats),
            failed: own_error(row).is_some(),
            ..Self::unrun(row)
        }
    }

    /// Returns the state of a resource that was created while it was observed: all its runs are news.
    fn unrun(row: &Row) -> Self {
        let name = ResourceName::new(row.kind.as_str(), row.name.as_str());
        let (key, reads) = (row.key(), Arc::clone(&row.refs));
        Self {
            name,
            key,
            reads,
            hidden: row.hidden,
            was: None,
            declared_as: kinds::declared_as(row),
            result: kinds::result(row),
            failed: false,
            told: None,
            runs: 0,
            repeats: None,
            open: None,
            awaited: None,
        }
    }
}

impl Known {
    fn about(&self) -> Ended {
        Ended {
            declared_as: self.declared_as.clone(),
            result: self.result.clone(),
            ..Ended::default()
        }
    }
}

fn set(all: &mut BTreeSet<Uid>, uid: Uid, there: bool) {
    if there {
        all.insert(uid);
    } else {
        all.remove(&uid);
    }
}

fn started(resource: &ResourceName, reason: Option<Reason>, at: Time) -> Event {
    Event::ResourceStarted {
        at,
        resource: resource.clone(),
        reason,
    }
}
