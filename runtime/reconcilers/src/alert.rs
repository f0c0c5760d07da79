//! Alerts: queries whose rows people are notified of.
//!
//! | module | holds |
//! |---|---|
//! | [`policy`] | when an alert is evaluated and what people are told: pure functions |
//! | [`news`] | evaluations that people are told of together |
//! | [`record`] | the stored state, and the history |
//! | [`snooze`] | the label that holds messages back for a while |
//! | [`trial`] | an evaluation that stores nothing |
//! | `question` | what yields the rows |
//! | `telling` | the messages, and to whom |
//!
//! An evaluation and its messages are stored in one commit. Messages are then handed over one by one, as notifications
//! under their keys, and forgotten when all are there: a crash in between hands over what is missing, and nothing twice.

pub mod news;
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
use watershed_core::{Error, ErrorKind, Outcome, Parents, Work};
use watershed_delivery::crash;
use watershed_outputs::failure;
use watershed_proto::AlertSpec;
use watershed_resolvers::{Resources as _, Until, status};

use crate::{
    dispatch,
    intervals::Cut,
    messages::Proto,
    model::{freshness, schedule},
    surroundings::{Seen, Surroundings, failed_ref, instant, keys, watermark},
};
use news::Circumstances;
use policy::{Changes, Settings, Trigger, Verdict};
use question::Asker;
use record::{AlertRecord, Entry, Finding};
use telling::Teller;

pub(crate) use question::{hash, versions};

/// The kind by which the controller knows alerts.
pub const KIND: &str = "alert";

/// The largest number of alerts that are evaluated at once.
pub const AT_ONCE: usize = 4;

/// Returns the options with which the kind is registered.
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

/// The reconciler of alerts, which evaluates them and creates their messages.
pub struct AlertReconciler {
    surroundings: Surroundings,
}

impl AlertReconciler {
    /// Creates the reconciler of the alerts of a project.
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

    /// Hands over the stored messages, which were due before the alert was deleted.
    async fn delete(&self, context: Context<Self>) -> Result<Outcome, Error> {
        if let Some(record) = context.state() {
            dispatch::hand_over(&context.controller(), &record.outbox).await?;
        }
        Ok(Outcome::default())
    }
}

/// An invocation for an alert.
struct Pass<'a> {
    alerts: &'a AlertReconciler,
    context: &'a Context<AlertReconciler>,
    record: AlertRecord,
}

/// The moment to evaluate, with the reason why the query can't run, if that is already known.
struct Moment {
    at: Timestamp,
    unasked: Option<Finding>,
}

impl Pass<'_> {
    async fn run(mut self) -> Result<Outcome, Error> {
        let context = self.context;
        let spec = &context.spec().0;
        let now = context.now();
        let said = spec.refresh_schedule.as_ref();
        let schedule = schedule::read(said);
        let question = question::fingerprint(spec);
        let reported = self.reported(spec);
        let versions = match &reported {
            Some(reported) => question::hash(reported.as_bytes()),
            None => question::versions(context.refs()),
        };
        // Rows get too old without a run of anything.
        let looks = reported.as_ref().and_then(|_| self.next_bound());
        let asked = context.refreshes();
        let refreshes = asked.plain.saturating_add(asked.full);
        let snoozed_until = snooze::end(&context.row().labels, now).filter(|until| *until > now);
        let could_not_be_asked = self.record.memory.last == Some(Verdict::Error);
        // What could not be asked is asked again when what it reads has changed: that may have been the reason. What reports
        // of resources is asked whenever the report is another one.
        let follows = said.is_some_and(|said| said.ref_update) || could_not_be_asked || reported.is_some();
        let changes = Changes {
            requested: refreshes != self.record.refreshes,
            question: question != self.record.question,
            refs: follows && versions != self.record.refs,
            snooze: self.record.snoozed_until.is_some() && snoozed_until.is_none(),
        };
        let is_counted_anew = self.count_anew(schedule::fingerprint(said), now);
        // Intervals that a crash or an edit kept from being told are gone on with.
        let is_unfinished = self.record.is_unfinished || self.record.catch_up.is_some();
        let resumed = is_unfinished.then_some(Trigger::Resumed);
        let trigger = policy::trigger(schedule.as_ref(), self.record.mark, changes, now).or(resumed);
        let unchanged = self.record.snoozed_until == snoozed_until && !is_counted_anew;
        self.record.snoozed_until = snoozed_until;
        let Some(trigger) = trigger else {
            if !unchanged {
                self.store().await?;
            }
            return self.outcome(schedule.as_ref(), looks, Work::None);
        };
        if changes.question {
            self.tell(spec);
            self.record.memory = policy::Memory::default();
            (self.record.interval, self.record.is_unfinished) = (None, false);
        }
        let moment = self.moment(spec, trigger.moment(now), reported.is_some()).await?;
        (self.record.question, self.record.refs) = (question, versions);
        self.record.refreshes = refreshes;
        self.record.mark = trigger.moment(now).max(now);
        let is_wanted = matches!(trigger, Trigger::Request | Trigger::Question | Trigger::SnoozeEnd);
        match moment {
            // Nothing that it reads has data.
            None => self.conclude(spec).await?,
            Some(moment) => {
                let is_new = !spec.watermark_inherit || self.record.watermark != Some(moment.at);
                let is_again = is_wanted || could_not_be_asked || moment.unasked.is_some();
                // What it reads is where it was.
                if !is_again && !is_new && !is_unfinished {
                    self.store().await?;
                    return self.outcome(schedule.as_ref(), looks, Work::None);
                }
                if spec.watermark_inherit && moment.unasked.is_none() {
                    self.record.watermark = Some(moment.at);
                }
                self.evaluate(spec, moment, is_again).await?;
            }
        }
        self.hand_over().await?;
        self.outcome(schedule.as_ref(), looks, Work::Checked)
    }

    /// Returns a report about other resources, if the alert's query is about their status.
    fn reported(&self, spec: &AlertSpec) -> Option<String> {
        let (data, seen) = (spec.data.as_ref()?, self.seen());
        let views = self.alerts.surroundings.resolvers(&seen).views;
        status::reported(data, &views, &self.context.row().key(), self.context.now())
    }

    /// Returns the time at which the rows of the next resource will be too old.
    fn next_bound(&self) -> Option<Timestamp> {
        let (rows, now) = (self.seen().rows(), self.context.now());
        let bounds = rows.iter().filter_map(|row| freshness::next_bound(row, now));
        bounds.min()
    }

    /// Restarts the schedule from now if it was edited or ran by a clock that was ahead. Returns true if the record
    /// changed.
    fn count_anew(&mut self, schedule: String, now: Timestamp) -> bool {
        let is_edited = !self.record.schedule.is_empty() && self.record.schedule != schedule;
        let mark = match is_edited {
            true => now,
            false => schedule::trusted(self.record.mark, now),
        };
        let is_other = (mark, &schedule) != (self.record.mark, &self.record.schedule);
        (self.record.mark, self.record.schedule) = (mark, schedule);
        is_other
    }

    fn seen(&self) -> Seen<'_> {
        Seen {
            handle: self.context.controller(),
            refs: self.context.refs(),
        }
    }

    /// Returns the moment to evaluate (N2); none while the refs have no watermark.
    async fn moment(
        &self,
        spec: &AlertSpec,
        triggered: Timestamp,
        reports: bool,
    ) -> Result<Option<Moment>, Error> {
        // The failures of what it reports are what it is about.
        let failed = failed_ref(self.context.refs()).filter(|_| !reports);
        let known = |unasked| -> Result<Option<Moment>, Error> {
            let at = self.record.watermark.filter(|_| spec.watermark_inherit);
            Ok(Some(Moment {
                at: at.unwrap_or(triggered),
                unasked: Some(unasked),
            }))
        };
        if let Some(error) = failed {
            return known(Finding::failed(&error));
        }
        let at = |at| Moment { at, unasked: None };
        if !spec.watermark_inherit {
            return Ok(Some(at(triggered)));
        }
        let seen = self.seen();
        let resolvers = self.alerts.surroundings.resolvers(&seen);
        let read = tokio::select! {
            read = watermark(&resolvers, keys(self.context.refs()), self.context.now()) => read,
            () = self.context.cancellation().cancelled() => return Err(failure::cancelled()),
        };
        match read {
            Ok(found) => Ok(found.map(at)),
            // The engine's words may quote rows.
            Err(error) if error.kind == ErrorKind::Permanent => {
                known(question::no_watermark().because_of(&error))
            }
            Err(error) => Err(error),
        }
    }

    /// Evaluates a moment, or each interval closed by then, and stores the resulting messages.
    async fn evaluate(&mut self, spec: &AlertSpec, moment: Moment, is_again: bool) -> Result<(), Error> {
        let now = self.context.now();
        let Some(intervals) = &spec.intervals else {
            let until = spec.watermark_inherit.then(|| Until::moment(instant(moment.at)));
            let finding = self.ask(spec, until, moment.unasked).await?;
            crash::point(crash::EVALUATED);
            self.follow(spec, finding, (moment.at, 0), now);
            return self.conclude(spec).await;
        };
        let due = {
            let seen = self.seen();
            let resolvers = self.alerts.surroundings.resolvers(&seen);
            let (said, data) = (spec.refresh_schedule.as_ref(), spec.data.as_ref());
            let cut = Cut::of(intervals, said, data, &resolvers)?;
            let last = self.record.interval;
            // One that lies ahead of both is of a clock or of rows that were wrong.
            let last = last.filter(|last| schedule::trusted(*last, now.max(moment.at)) == *last);
            cut.due(last, moment.at, is_again)
        };
        self.record.is_unfinished = true;
        for (place, end) in due.ends.iter().enumerate() {
            let finding = self.ask(spec, Some(end.until()), moment.unasked.clone()).await?;
            crash::point(crash::EVALUATED);
            let left_out = if place == 0 { due.left_out } else { 0 };
            // One that could not be asked is asked again, and with it those after it.
            let is_error = finding.verdict == Verdict::Error;
            // Told as if each had been looked at when it closed: how often the program looks decides nothing.
            self.follow(spec, finding, (end.at, left_out), end.at);
            if end.is_closed && !is_error {
                self.record.interval = Some(end.at);
            }
            if is_error {
                break;
            }
            // Each is stored before the next, so that a crash asks no question twice.
            self.store().await?;
        }
        self.conclude(spec).await
    }

    /// Runs the query, unless it is known that it can't run.
    async fn ask(
        &self,
        spec: &AlertSpec,
        until: Option<Until>,
        unasked: Option<Finding>,
    ) -> Result<Finding, Error> {
        if let Some(unasked) = unasked {
            return Ok(unasked);
        }
        let seen = self.seen();
        let asker = Asker {
            resolvers: self.alerts.surroundings.resolvers(&seen),
            spec,
            own: self.context.row().key(),
            cancel: self.context.cancellation(),
            now: self.context.now(),
        };
        asker.ask(until).await
    }

    /// Decides whether people are notified of a finding about a moment; `clock` is the time of the decision.
    fn follow(
        &mut self,
        spec: &AlertSpec,
        finding: Finding,
        (moment, left_out): (Timestamp, u64),
        clock: Timestamp,
    ) {
        let around = Circumstances {
            settings: &Settings::from(spec),
            is_snoozed: self.record.snoozed_until.is_some(),
            clock,
        };
        let entry = self.entry(moment, &finding, left_out);
        // An earlier version decided at the end.
        if self
            .record
            .catch_up
            .as_ref()
            .is_some_and(|news| news.telling.is_none())
        {
            self.tell(spec);
        }
        let before = self.record.catch_up.take();
        let (done, next) = news::follow(around, &mut self.record.memory, before, finding, entry);
        self.record.catch_up = done;
        self.tell(spec);
        self.record.catch_up = Some(next);
    }

    /// Creates the pending messages, and adds their entries to the history.
    fn tell(&mut self, spec: &AlertSpec) {
        let Some(mut news) = self.record.catch_up.take() else {
            return;
        };
        let context = self.context;
        let telling = news.telling.unwrap_or_else(|| {
            let (settings, is_snoozed) = (Settings::from(spec), self.record.snoozed_until.is_some());
            let verdict = news.finding.verdict;
            let (memory, telling) =
                policy::decide(&settings, self.record.memory, verdict, is_snoozed, context.now());
            self.record.memory = memory;
            telling
        });
        let teller = Teller {
            spec,
            name: context.name().as_str(),
            uid: context.uid(),
            project: &self.alerts.surroundings.project,
            moment: news.moment,
            telling,
            found: &news.finding,
            failed_intervals: news.failed,
            tried: None,
        };
        let messages = teller.messages(self.record.order);
        self.record.order += u64::from(!messages.is_empty());
        if let Some(entry) = news.entries.last_mut() {
            entry.told = messages.iter().map(|one| one.message.key.clone()).collect();
        }
        for entry in news.entries {
            self.record.note(entry);
        }
        self.record.outbox.extend(messages);
    }

    /// Stores the end of an evaluation with its messages.
    async fn conclude(&mut self, spec: &AlertSpec) -> Result<(), Error> {
        self.tell(spec);
        self.record.is_unfinished = false;
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

    /// Creates the notifications that are missing, then removes their messages from the outbox (N6).
    async fn hand_over(&mut self) -> Result<(), Error> {
        if self.record.outbox.is_empty() {
            return Ok(());
        }
        dispatch::hand_over(&self.context.controller(), &self.record.outbox).await?;
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

    /// Returns the outcome: failure if the query could not run, success even if it has rows. `looks` is the time at which
    /// what it reports may be another.
    fn outcome(
        &self,
        schedule: Option<&watershed_schedule::Schedule>,
        looks: Option<Timestamp>,
        work: Work,
    ) -> Result<Outcome, Error> {
        let next = policy::next(schedule, self.record.mark, self.context.now());
        let next = [next, self.record.snoozed_until, looks]
            .into_iter()
            .flatten()
            .min();
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
