//! Alerts: questions whose rows people are told of.
//!
//! | module | holds |
//! |---|---|
//! | [`policy`] | when an alert is evaluated and what people are told: pure functions |
//! | [`record`] | the stored state, and the history |
//! | [`snooze`] | the label that holds messages back for a while |
//! | [`trial`] | an evaluation that stores nothing |
//! | `question` | what yields the rows |
//! | `telling` | the messages, and to whom |
//!
//! An evaluation and its messages are stored in one commit. Messages are then handed over one by one, as notifications
//! under their keys, and forgotten when all are there: a crash in between hands over what is missing, and nothing twice.

pub mod policy;
pub mod record;
pub mod snooze;
pub mod trial;

mod question;
mod telling;

#[cfg(test)]
mod year;

use std::time::Duration;

use watershed_controller::{Context, KindOptions, Reconciler, RetryPolicy, Timestamp};
use watershed_core::{Error, Outcome, Parents, Work};
use watershed_delivery::crash;
use watershed_proto::AlertSpec;

use crate::{
    asked::{Seen, Surroundings, failed_ref, instant, keys, watermark},
    intervals::Cut,
    messages::Proto,
    model::{failure, schedule},
    resolvers::Until,
    sending,
};
use policy::{Changes, Settings, Trigger, Verdict};
use question::Asker;
use record::{AlertRecord, CatchUp, Entry, Finding};
use telling::Teller;

pub(crate) use question::versions;

/// The kind's name.
pub const KIND: &str = "alert";

/// Alerts that are evaluated at once.
pub const AT_ONCE: usize = 4;

/// The kind's options.
#[must_use]
pub fn options() -> KindOptions {
    KindOptions::new(KIND)
        .parents(Parents::Changed)
        .concurrency(AT_ONCE)
        // A store that is away for a moment; verdicts are no failures of a run.
        .retry(RetryPolicy::Backoff {
            base: Duration::from_secs(1),
            cap: Duration::from_secs(60),
            attempts: u32::MAX,
            reset_after: Duration::ZERO,
        })
}

/// Evaluates alerts.
pub struct AlertReconciler {
    surroundings: Surroundings,
}

impl AlertReconciler {
    /// Returns one that asks questions in a project.
    #[must_use]
    pub(crate) fn new(surroundings: Surroundings) -> Self {
        Self { surroundings }
    }
}

impl Reconciler for AlertReconciler {
    type Spec = Proto<AlertSpec>;
    type State = AlertRecord;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        if !self.surroundings.outputs.chosen().holds(context.uid()) {
            return Ok(Outcome::passed_over());
        }
        let mut pass = Pass {
            alerts: self,
            context: &context,
            record: context.state().cloned().unwrap_or_default(),
        };
        pass.hand_over().await?;
        let spec = &context.spec().0;
        if let Some(fault) = &spec.fault {
            return Err(failure::from_fault(fault));
        }
        question::check(spec)?;
        pass.run().await
    }

    /// Hands over what is not handed over yet: it was due before the alert went.
    async fn delete(&self, context: Context<Self>) -> Result<Outcome, Error> {
        if let Some(record) = context.state() {
            sending::hand_over(&context.controller(), &record.outbox).await?;
        }
        Ok(Outcome::default())
    }
}

/// One look at an alert.
struct Pass<'a> {
    alerts: &'a AlertReconciler,
    context: &'a Context<AlertReconciler>,
    record: AlertRecord,
}

impl Pass<'_> {
    async fn run(mut self) -> Result<Outcome, Error> {
        let context = self.context;
        let spec = &context.spec().0;
        let now = context.now();
        let said = spec.refresh_schedule.as_ref();
        let schedule = schedule::read(said);
        let question = question::fingerprint(spec);
        let versions = question::versions(context.refs());
        let asked = context.refreshes();
        let refreshes = asked.plain.saturating_add(asked.full);
        let snoozed_until = snooze::end(&context.row().labels).filter(|until| *until > now);
        // What could not be asked is asked again when what it reads has changed: that may have been the reason.
        let follows =
            said.is_some_and(|said| said.ref_update) || self.record.memory.last == Some(Verdict::Error);
        let changes = Changes {
            requested: refreshes != self.record.refreshes,
            question: question != self.record.question,
            refs: follows && versions != self.record.refs,
            snooze: self.record.snoozed_until.is_some() && snoozed_until.is_none(),
        };
        // Intervals that a crash or an edit kept from being told are gone on with.
        let resumed = self.record.catch_up.is_some().then_some(Trigger::Resumed);
        let trigger = policy::trigger(schedule.as_ref(), self.record.mark, changes, now).or(resumed);
        let unchanged = self.record.snoozed_until == snoozed_until;
        self.record.snoozed_until = snoozed_until;
        let Some(trigger) = trigger else {
            if !unchanged {
                self.store().await?;
            }
            return self.outcome(schedule.as_ref(), Work::None);
        };
        if changes.question {
            self.record.memory = policy::Memory::default();
            (self.record.interval, self.record.catch_up) = (None, None);
        }
        let moment = self.moment(spec, trigger.moment(now)).await?;
        (self.record.question, self.record.refs) = (question, versions);
        self.record.refreshes = refreshes;
        self.record.mark = trigger.moment(now).max(now);
        let is_wanted = matches!(trigger, Trigger::Request | Trigger::Question | Trigger::SnoozeEnd);
        let is_new = !spec.watermark_inherit || self.record.watermark != moment;
        match moment {
            // What it reads is where it was.
            Some(_) if !is_wanted && !is_new && self.record.catch_up.is_none() => {
                self.store().await?;
                return self.outcome(schedule.as_ref(), Work::None);
            }
            Some(moment) => {
                self.record.watermark = spec.watermark_inherit.then_some(moment);
                self.evaluate(spec, moment, is_wanted).await?;
            }
            // Nothing that it reads has data.
            None => self.store().await?,
        }
        self.hand_over().await?;
        self.outcome(schedule.as_ref(), Work::Checked)
    }

    /// Returns the moment that is evaluated (N2); none while what it reads has no watermark.
    async fn moment(&self, spec: &AlertSpec, triggered: Timestamp) -> Result<Option<Timestamp>, Error> {
        if !spec.watermark_inherit || failed_ref(self.context.refs()).is_some() {
            return Ok(Some(triggered));
        }
        let seen = Seen {
            handle: self.context.controller(),
            refs: self.context.refs(),
        };
        let resolvers = self.alerts.surroundings.resolvers(&seen);
        tokio::select! {
            found = watermark(&resolvers, keys(self.context.refs()), self.context.now()) => found,
            () = self.context.cancellation().cancelled() => Err(failure::cancelled()),
        }
    }

    /// Evaluates a moment, or each interval that has closed by it, and stores what people are told.
    async fn evaluate(&mut self, spec: &AlertSpec, moment: Timestamp, is_wanted: bool) -> Result<(), Error> {
        let seen = Seen {
            handle: self.context.controller(),
            refs: self.context.refs(),
        };
        let Some(intervals) = &spec.intervals else {
            let until = spec.watermark_inherit.then(|| Until::moment(instant(moment)));
            let finding = self.asker(spec, &seen).ask(until).await?;
            crash::point(crash::EVALUATED);
            self.record.note(self.entry(moment, &finding, 0));
            self.record.catch_up = Some(CatchUp::with(None, finding, moment));
            return self.tell(spec).await;
        };
        let resolvers = self.alerts.surroundings.resolvers(&seen);
        let cut = Cut::of(
            intervals,
            spec.refresh_schedule.as_ref(),
            spec.data.as_ref(),
            &resolvers,
        )?;
        let closed = cut.due(self.record.interval, moment, is_wanted);
        for (place, end) in closed.ends.iter().enumerate() {
            let finding = self.asker(spec, &seen).ask(Some(end.until())).await?;
            crash::point(crash::EVALUATED);
            let left_out = if place == 0 { closed.left_out } else { 0 };
            self.record.note(self.entry(end.at, &finding, left_out));
            let before = self.record.catch_up.take();
            self.record.catch_up = Some(CatchUp::with(before, finding, end.at));
            // One that could not be asked is asked again, and with it those after it.
            let is_error = self
                .record
                .history
                .first()
                .is_some_and(|entry| entry.verdict == Verdict::Error);
            if end.is_closed && !is_error {
                self.record.interval = Some(end.at);
            }
            // Each is stored before the next, so that a crash asks no question twice.
            self.store().await?;
            if is_error {
                break;
            }
        }
        match self.record.catch_up.is_some() {
            true => self.tell(spec).await,
            false => self.store().await,
        }
    }

    /// Decides whether people are told of what was evaluated, and stores that with the messages.
    async fn tell(&mut self, spec: &AlertSpec) -> Result<(), Error> {
        let Some(found) = self.record.catch_up.take() else {
            return Ok(());
        };
        let context = self.context;
        let is_snoozed = self.record.snoozed_until.is_some();
        let verdict = found.finding.verdict;
        let settings = Settings::from(spec);
        let (memory, telling) =
            policy::decide(&settings, self.record.memory, verdict, is_snoozed, context.now());
        let teller = Teller {
            spec,
            name: context.name().as_str(),
            uid: context.uid(),
            project: &self.alerts.surroundings.project,
            moment: found.moment,
            telling,
            found: &found.finding,
            failed_intervals: found.failed,
            tried: None,
        };
        let messages = teller.messages(self.record.order);
        self.record.order += u64::from(!messages.is_empty());
        if let Some(entry) = self.record.history.first_mut() {
            entry.told = messages.iter().map(|one| one.message.key.clone()).collect();
        }
        self.record.memory = memory;
        self.record.outbox = messages;
        self.store().await?;
        crash::point(crash::RECORDED);
        Ok(())
    }

    fn entry(&self, moment: Timestamp, finding: &Finding, left_out: u64) -> Entry {
        Entry {
            at: self.context.now(),
            moment,
            verdict: finding.verdict,
            rows: finding.rows.clone(),
            error: finding.reason().to_owned(),
            hint: finding.hint.clone(),
            left_out,
            told: Vec::new(),
        }
    }

    fn asker<'a>(&'a self, spec: &'a AlertSpec, seen: &'a Seen<'a>) -> Asker<'a> {
        Asker {
            resolvers: self.alerts.surroundings.resolvers(seen),
            spec,
            own: self.context.row().key(),
            refs: self.context.refs(),
            cancel: self.context.cancellation(),
            now: self.context.now(),
        }
    }

    /// Creates the notifications that are missing, then forgets their messages (N6).
    async fn hand_over(&mut self) -> Result<(), Error> {
        if self.record.outbox.is_empty() {
            return Ok(());
        }
        sending::hand_over(&self.context.controller(), &self.record.outbox).await?;
        self.record.outbox.clear();
        self.store().await?;
        crash::point(crash::HANDED_OVER);
        Ok(())
    }

    async fn store(&self) -> Result<(), Error> {
        let stored = async {
            self.context.set_state(&self.record).await?;
            self.context.committed().await
        };
        stored
            .await
            .map_err(|error| Error::transient("state", error.to_string()))
    }

    /// The outcome: an alert that can't be evaluated has failed, one whose question has rows has not.
    fn outcome(&self, schedule: Option<&watershed_schedule::Schedule>, work: Work) -> Result<Outcome, Error> {
        let next = policy::next(schedule, self.record.mark, self.context.now());
        let next = match (next, self.record.snoozed_until) {
            (Some(next), Some(until)) => Some(next.min(until)),
            (one, other) => one.or(other),
        };
        let last = self.record.history.first();
        if let Some(last) = last.filter(|last| last.verdict == Verdict::Error) {
            return Err(Error {
                retrigger: next,
                hint: Some(last.hint.as_str())
                    .filter(|hint| !hint.is_empty())
                    .map(Into::into),
                ..Error::permanent("alert-error", last.error.as_str())
            });
        }
        Ok(Outcome {
            retrigger: next,
            ..Outcome::from_work(work)
        })
    }
}
