//! A pass over a job: choose the run, start or adopt its process, wait for it, and count its end once.

use std::sync::Arc;

use tokio::time::Instant;
use watershed_controller::message::to_json;
use watershed_controller::resource::Stage as ResourceStage;
use watershed_controller::{Context, Error, Outcome, Timestamp};
use watershed_core::{Attempts, Row};

use super::moments::{left, until, until_moment};
use super::record::{JobRecord, JobStage, JobStop};
use super::{JobReconciler, cancel};
use crate::backend::{Backend, StartId, Stop, Then};
use crate::crash::{self, crash_point};
use crate::policy::exit::{NO_ROOM, StartFailure};
use crate::policy::run_key::{self, Ref, RunKey, Standing, Trigger};
use crate::policy::schedule;
use crate::program::Program;
use crate::replica::backend_error;
use crate::service;
use crate::settings::{self, JobSettings, Stopping};
use crate::shared::{self, Shared};
use crate::transition::{Transition, push};

/// One pass over a job.
pub(super) struct Pass<'a> {
    pub(super) shared: &'a Arc<Shared>,
    pub(super) context: &'a Context<JobReconciler>,
    pub(super) program: Program,
    pub(super) backend: Arc<dyn Backend>,
    pub(super) settings: JobSettings,
    pub(super) uid: String,
    pub(super) record: JobRecord,
    pub(super) is_changed: bool,
}

/// The run that a job should make now.
enum Wanted {
    /// A run that must have happened: its key and trigger.
    Run(RunKey, Trigger),
    /// No run before this time; none if no time is known.
    Idle(Option<Timestamp>),
}

/// The reason why the wait for a process has ended.
enum Waited {
    /// The process has ended.
    Over,
    /// The invocation was cancelled.
    Cancelled,
    /// The timeout has passed.
    TimedOut,
    /// A scheduled time has come.
    Tick,
    /// The backend does not know the start, and the order is repeated at this time.
    Unanswered(Timestamp),
}

impl<'a> Pass<'a> {
    pub(super) fn new(
        shared: &'a Arc<Shared>,
        context: &'a Context<JobReconciler>,
        program: Program,
        backend: Arc<dyn Backend>,
    ) -> Self {
        let mut record = context.state().cloned().unwrap_or_default();
        // Where the clock was set back, nothing waits for longer than it may from now on.
        let now = context.now();
        (record.exits, record.starts) = (record.exits.by_clock(now), record.starts.by_clock(now));
        Self {
            shared,
            context,
            program,
            backend,
            settings: settings::job(&context.spec().0),
            uid: context.uid().to_string(),
            record,
            is_changed: false,
        }
    }

    pub(super) async fn run(mut self) -> Result<Outcome, Error> {
        if self.end_others().await? == Ended::Left {
            return Ok(Outcome::unchanged());
        }
        self.follow_cancel().await?;
        loop {
            let (key, trigger) = match self.wanted() {
                Wanted::Run(key, trigger) => (key, trigger),
                Wanted::Idle(wake) => return self.finish(wake).await,
            };
            let living = self
                .record
                .run
                .filter(|_| self.record.is_open)
                .map(|(key, _)| key);
            match run_key::decide(key, self.record.finished(), living) {
                run_key::Decision::Finished if living.is_none() => {
                    return self.finish(self.next_tick()).await;
                }
                // It was edited, and edited back while the run of the edit went on.
                run_key::Decision::Finished => self.stop_for(JobStop::Replace).await?,
                run_key::Decision::Start => {
                    if let Some(wait) = self.backoff(key) {
                        return self.retry_later(wait);
                    }
                    if let Some(message) = Shared::lack_of_room(&self.program, self.backend.as_ref()) {
                        return self.wait_for_room(key, trigger, message).await;
                    }
                    self.begin(key, trigger).await?;
                }
                run_key::Decision::Replace => self.stop_for(JobStop::Replace).await?,
                run_key::Decision::Adopt => {}
            }
            match self.wait_to_the_end().await? {
                Ended::Left => return Ok(Outcome::unchanged()),
                Ended::Unanswered(next) if self.record.is_open => return self.retry_later(next),
                Ended::Unanswered(_) | Ended::Counted => {}
            }
        }
    }

    /// Stops the process if a person cancelled the previous run.
    async fn follow_cancel(&mut self) -> Result<(), Error> {
        let is_cancelled = self.shared.cancels.take(self.context.uid(), self.record.counter);
        let observed = self.shared.observations.peek(&self.uid);
        let lives =
            observed.is_some_and(|one| one.id.counter() == self.record.counter && one.phase.is_alive());
        match is_cancelled && self.record.is_open && lives {
            true => self.stop_for(JobStop::Cancel).await,
            false => Ok(()),
        }
    }

    /// Chooses the run that the job should make now (W8).
    fn wanted(&mut self) -> Wanted {
        let refreshes = self.context.refreshes();
        let asked = refreshes.plain.saturating_add(refreshes.full);
        let Some((schedule, concurrency)) = self.settings.schedule.clone() else {
            let trigger = Trigger::Refresh(asked);
            return Wanted::Run(self.key(trigger), trigger);
        };
        let times = self.settings.times.clone();
        if !self.record.schedule.is_empty() && self.record.schedule != times {
            self.record.mark = Some(self.context.now());
        }
        self.record.schedule = times;
        // A run that is under way, or is to be tried again, goes first.
        let unfinished = self.record.run.filter(|(key, _)| {
            let is_retried = self.record.exits.next.is_some() || self.record.starts.next.is_some();
            self.record.finished() != Some(*key) && (self.record.is_open || is_retried)
        });
        if asked != self.record.refreshes {
            let trigger = Trigger::Refresh(asked);
            return Wanted::Run(self.key(trigger), trigger);
        }
        let now = self.context.now();
        let mark = *self.record.mark.get_or_insert(now);
        let is_running = unfinished.is_some();
        match schedule::decide(&schedule, concurrency, mark, is_running, now) {
            schedule::Decision::Run(time) | schedule::Decision::Replace(time) => {
                self.record.mark = Some(time);
                let trigger = Trigger::Scheduled(time);
                return Wanted::Run(self.key(trigger), trigger);
            }
            schedule::Decision::Skip(time) => self.record.mark = Some(time),
            schedule::Decision::Rewound => self.record.mark = Some(now),
            schedule::Decision::Wait(_) | schedule::Decision::Never => {}
        }
        match unfinished {
            Some((key, trigger)) => Wanted::Run(key, trigger),
            None => Wanted::Idle(self.next_tick()),
        }
    }

    fn next_tick(&self) -> Option<Timestamp> {
        let (schedule, concurrency) = self.settings.schedule.as_ref()?;
        let now = self.context.now();
        let mark = self.record.mark.unwrap_or(now);
        match schedule::decide(schedule, *concurrency, mark, false, now) {
            schedule::Decision::Wait(next) => Some(next),
            schedule::Decision::Never => None,
            _ => Some(now),
        }
    }

    /// Returns the run key for a trigger, and aligns the record's older keys with it.
    fn key(&mut self, trigger: Trigger) -> RunKey {
        let key = self.key_of(trigger, |row| standing_of(self.shared, row));
        let before = self.key_of(trigger, |row| Standing::State(row.state_version.0));
        self.record.know_as(before, key);
        key
    }

    fn key_of(&self, trigger: Trigger, standing: impl Fn(&Row) -> Standing) -> RunKey {
        let targets = self.context.refs().iter().filter_map(|view| view.target.as_ref());
        let of = |target: &Arc<Row>| {
            let is_service = target.kind.as_str() == service::KIND;
            (target.uid.to_string(), standing(target), is_service)
        };
        let targets: Vec<(String, Standing, bool)> = targets.map(of).collect();
        let refs: Vec<Ref<'_>> = targets
            .iter()
            .map(|(uid, standing, is_service)| Ref {
                uid: uid.as_bytes(),
                standing,
                is_service: *is_service,
            })
            .collect();
        // Without policies: timeout, retries, codes, schedule and logs make no other run.
        let meaning = to_json(&self.program).unwrap_or_default();
        RunKey::new(&meaning, &refs, trigger)
    }

    /// Returns the time of the next attempt of this run; none if there is no delay.
    fn backoff(&self, key: RunKey) -> Option<Timestamp> {
        let is_same = self.record.run.is_some_and(|(run, _)| run == key);
        let next = self.record.exits.next.max(self.record.starts.next)?;
        (is_same && next > self.context.now()).then_some(next)
    }

    /// Waits until memory is available. No counter is stored, since nothing is ordered.
    async fn wait_for_room(
        mut self,
        key: RunKey,
        trigger: Trigger,
        message: String,
    ) -> Result<Outcome, Error> {
        let failure = StartFailure::InsufficientResources;
        if self.record.reason != failure.as_str() {
            self.record.run = Some((key, trigger));
            self.not_started(failure, message);
            self.store().await?;
        }
        self.retry_later(self.context.now().after(NO_ROOM))
    }

    /// Stops starts that the record does not know, from an older catalog or from an abandoned request that was carried
    /// out after all. Forgets the ones that have ended.
    async fn end_others(&mut self) -> Result<Ended, Error> {
        let mut changes = self.shared.observations.changes();
        loop {
            changes.mark_unchanged();
            let Some(observed) = self.shared.observations.see(&self.uid) else {
                return Ok(Ended::Counted);
            };
            let counter = observed.id.counter();
            if counter > self.record.counter {
                // Numbers go on from there, so that no start is refused as an old one.
                self.record.counter = counter;
                (self.record.is_open, self.record.stop) = (false, None);
                self.store().await?;
            }
            if self.record.is_open && counter == self.record.counter {
                return Ok(Ended::Counted);
            }
            if !observed.phase.is_alive() {
                let forgotten = self.backend.forget(observed.id, false).await;
                forgotten.map_err(|error| backend_error(&error))?;
                self.shared.observations.forget(&self.uid);
                return Ok(Ended::Counted);
            }
            if !observed.stopping {
                self.stop_other(observed.id).await?;
                continue;
            }
            tokio::select! {
                biased;
                () = self.context.cancellation().cancelled() => return Ok(Ended::Left),
                // The sender lives as long as this pass.
                _ = changes.changed() => {}
            }
        }
    }

    pub(super) async fn stop_other(&self, id: StartId) -> Result<(), Error> {
        let stopping = Stopping::from(self.context.spec().0.stop.as_ref());
        let stop = Stop {
            id,
            signal: stopping.signal,
            grace_ms: stopping.grace_ms,
            then: Then::Forget,
        };
        let stopped = self.backend.stop(stop).await;
        match stopped.map_err(|error| backend_error(&error))? {
            Some(observation) => self.shared.observations.note(observation),
            None => self.shared.observations.forget(&self.uid),
        }
        Ok(())
    }

    pub(super) fn start_id(&self) -> Result<StartId, Error> {
        id_of(&self.uid, &self.record)
    }

    /// Stores the purpose of a stop, then orders the stop.
    async fn stop_for(&mut self, purpose: JobStop) -> Result<(), Error> {
        if self.record.stop.is_none() {
            self.record.stop = Some(purpose);
            let reason = match purpose {
                JobStop::Cancel => "cancelled",
                JobStop::Replace => "replaced",
                JobStop::Timeout => "timeout",
            };
            self.enter(JobStage::Stopping, reason, "");
            self.store().await?;
        }
        let stop = stop_order(self.context, &self.record, Then::Keep)?;
        crash_point(crash::STOP_BEFORE);
        let stopped = self.backend.stop(stop).await;
        crash_point(crash::STOP_AFTER);
        match stopped {
            Ok(Some(observation)) => self.shared.observations.note(observation),
            Ok(None) => self.shared.observations.forget(&self.uid),
            Err(error) => return Err(backend_error(&error)),
        }
        Ok(())
    }

    /// Waits until the record's process has ended, and counts its end. Leaves the process alone if the invocation is
    /// cancelled.
    async fn wait_to_the_end(&mut self) -> Result<Ended, Error> {
        loop {
            match self.wait().await? {
                Waited::Over => {
                    self.count_end().await?;
                    return Ok(Ended::Counted);
                }
                Waited::Unanswered(next) => return Ok(Ended::Unanswered(next)),
                Waited::TimedOut => self.stop_for(JobStop::Timeout).await?,
                Waited::Tick => {
                    let (schedule, concurrency) = match self.settings.schedule.clone() {
                        Some(found) => found,
                        None => continue,
                    };
                    let mark = self.record.mark.unwrap_or_default();
                    match schedule::decide(&schedule, concurrency, mark, true, self.context.now()) {
                        schedule::Decision::Replace(_) => self.stop_for(JobStop::Replace).await?,
                        schedule::Decision::Skip(time) => {
                            self.record.mark = Some(time);
                            self.enter(
                                self.record.stage,
                                "skipped",
                                "a scheduled time came during the run",
                            );
                        }
                        _ => {}
                    }
                }
                Waited::Cancelled => {
                    if !self.is_for_the_next() {
                        if self.has_moving_refs() {
                            // What it reads must not change while it runs.
                            self.stop_for(JobStop::Replace).await?;
                        } else {
                            if self.context.is_cancelled_by_caller() {
                                // Nobody may look at the job for long: it may be paused.
                                self.stop_for(JobStop::Cancel).await?;
                            }
                            cancel::follow(self.shared, self.context, self.record.counter);
                        }
                    }
                    return Ok(Ended::Left);
                }
            }
        }
    }

    /// Returns true if the next invocation decides about the process: the program is leaving, or the job was edited or
    /// deleted.
    fn is_for_the_next(&self) -> bool {
        if self.shared.leaving.is_cancelled() {
            return true;
        }
        let now = self.context.controller().get(self.context.uid());
        now.is_ok_and(|now| {
            now.row.spec_version != self.context.row().spec_version || now.row.intents.is_deleted()
        })
    }

    /// Returns true if a ref is about to change, or has changed.
    fn has_moving_refs(&self) -> bool {
        let controller = self.context.controller();
        self.context.refs().iter().any(|view| {
            let standing = |row: &Row| (row.uid, standing_of(self.shared, row));
            let before = view.target.as_deref().map(standing);
            let now = controller.get(view.reference.key()).ok();
            let after = now.as_ref().map(|now| standing(&now.row));
            let is_settled = now.is_none_or(|now| matches!(now.status.stage, ResourceStage::Settled(_)));
            before != after || !is_settled
        })
    }

    async fn wait(&mut self) -> Result<Waited, Error> {
        let mut changes = self.shared.observations.changes();
        // The moment at which the process has had its time, by a clock that is never set back.
        let mut deadline: Option<Instant> = None;
        loop {
            changes.mark_unchanged();
            let observed = self.shared.observations.see(&self.uid);
            let current = observed.filter(|one| one.id.counter() == self.record.counter);
            match &current {
                Some(observation) if observation.phase.is_alive() => {
                    self.record.backend_id.clone_from(&observation.backend_id);
                    self.record.started = observation.started;
                    if self.record.stage == JobStage::Pending {
                        // The order without an answer was carried out.
                        (self.record.starts, self.record.failed_start) = (Attempts::default(), None);
                        self.enter(JobStage::Running, "start", "");
                        self.store().await?;
                    }
                    if let Some(purpose) = self.record.stop.filter(|_| !observation.stopping) {
                        // The order was stored, and lost on its way.
                        self.stop_for(purpose).await?;
                        continue;
                    }
                }
                // The order was stored and not made.
                None if self.record.backend_id.is_none() && self.record.stop.is_none() => {
                    match self.record.starts.next {
                        _ if !self.record.is_open => return Ok(Waited::Unanswered(self.context.now())),
                        Some(next) if next > self.context.now() => return Ok(Waited::Unanswered(next)),
                        _ => self.order().await?,
                    }
                    continue;
                }
                _ => return Ok(Waited::Over),
            }
            let timeout = self.settings.timeout.filter(|_| self.record.stop.is_none());
            let left = timeout.map(|timeout| left(self.record.started, timeout, self.context.now()));
            // One that lies beyond all moments never comes.
            deadline = deadline.or_else(|| Instant::now().checked_add(left?));
            let deadline = deadline.filter(|_| timeout.is_some());
            let tick = match self.record.stop {
                None => self.next_tick(),
                Some(_) => None,
            };
            tokio::select! {
                biased;
                () = self.context.cancellation().cancelled() => return Ok(Waited::Cancelled),
                () = until_moment(deadline) => return Ok(Waited::TimedOut),
                () = until(self.context.now(), tick) => return Ok(Waited::Tick),
                // The sender lives as long as this pass.
                _ = changes.changed() => {}
            }
        }
    }

    pub(super) async fn store(&mut self) -> Result<(), Error> {
        self.is_changed = true;
        crash_point(crash::RECORD_BEFORE);
        let stored = shared::store(self.context, &self.record).await;
        crash_point(crash::RECORD_AFTER);
        stored
    }

    pub(super) fn enter(&mut self, stage: JobStage, reason: &str, detail: &str) {
        let now = self.context.now();
        let transition = Transition {
            from: self.record.stage.as_str().to_owned(),
            to: stage.as_str().to_owned(),
            at: now,
            reason: reason.to_owned(),
            detail: detail.to_owned(),
            invocation: self.context.invocation(),
            epoch: self.context.epoch().0,
        };
        push(&mut self.record.transitions, transition);
        if self.record.stage != stage {
            self.record.since = now;
        }
        self.record.stage = stage;
        reason.clone_into(&mut self.record.reason);
    }
}

/// Returns the standing of a resource that a job refers to: the identity of its last build or run where known, else its
/// state version.
fn standing_of(shared: &Shared, row: &Row) -> Standing {
    let made = match row.kind.as_str() {
        super::KIND => super::last_run(row).map(|key| key.to_bytes().to_vec()),
        _ => (shared.made)(row),
    };
    made.map_or(Standing::State(row.state_version.0), Standing::Made)
}

/// The result of waiting for a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// The process has ended, and its end is counted.
    Counted,
    /// The invocation ended first.
    Left,
    /// The order was not answered, and is repeated at this time.
    Unanswered(Timestamp),
}

fn id_of(uid: &str, record: &JobRecord) -> Result<StartId, Error> {
    StartId::new(uid, record.counter).map_err(|error| Error::permanent("internal", error.to_string()))
}

/// Returns the order to stop the record's start.
pub(super) fn stop_order(
    context: &Context<JobReconciler>,
    record: &JobRecord,
    then: Then,
) -> Result<Stop, Error> {
    let stopping = Stopping::from(context.spec().0.stop.as_ref());
    Ok(Stop {
        id: id_of(&context.uid().to_string(), record)?,
        signal: stopping.signal,
        grace_ms: stopping.grace_ms,
        then,
    })
}
