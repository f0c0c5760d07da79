//! Alerts: questions whose rows people are told of.
//!
//! | module | holds |
//! |---|---|
//! | [`policy`] | when an alert is evaluated and what people are told: pure functions |
//! | [`record`] | the stored state, and the history |
//! | `question` | what yields the rows |
//! | `telling` | the messages, and to whom |
//!
//! An evaluation and its messages are stored in one commit. Messages are then handed over one by one, as notifications
//! under their keys, and forgotten when all are there: a crash in between hands over what is missing, and nothing twice.

pub mod policy;
pub mod record;

mod question;
mod telling;

use std::{sync::Arc, time::Duration};

use watershed_controller::{Context, EditError, KindOptions, Reconciler, RetryPolicy};
use watershed_core::{Error, Outcome, Parents, Refusal, Work};
use watershed_proto::AlertSpec;

use crate::{
    messages::Proto,
    model::{failure, schedule},
    outputs::Outputs,
};
use policy::{Changes, Settings, Verdict};
use question::Asker;
use record::{AlertRecord, Entry};
use telling::Teller;

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
    outputs: Arc<Outputs>,
    environment: String,
    project: String,
}

impl AlertReconciler {
    /// One that asks the engine of `outputs`, tells templates that they run in `environment`, and people of `project`.
    #[must_use]
    pub fn new(outputs: Arc<Outputs>, environment: impl Into<String>, project: impl Into<String>) -> Self {
        Self {
            outputs,
            environment: environment.into(),
            project: project.into(),
        }
    }
}

impl Reconciler for AlertReconciler {
    type Spec = Proto<AlertSpec>;
    type State = AlertRecord;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        if !self.outputs.chosen().holds(context.uid()) {
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
        // What could not be asked is asked again when what it reads has changed: that may have been the reason.
        let follows =
            said.is_some_and(|said| said.ref_update) || self.record.memory.last == Some(Verdict::Error);
        let changes = Changes {
            requested: refreshes != self.record.refreshes,
            question: question != self.record.question,
            refs: follows && versions != self.record.refs,
        };
        let Some(trigger) = policy::trigger(schedule.as_ref(), self.record.mark, changes, now) else {
            return self.outcome(schedule.as_ref(), Work::None);
        };
        let moment = trigger.moment(now);
        let found = self.asker(spec).ask().await?;
        if changes.question {
            self.record.memory = policy::Memory::default();
        }
        let settings = Settings::from(spec);
        let (memory, telling) = policy::decide(&settings, self.record.memory, found.verdict, now);
        let teller = Teller {
            spec,
            name: context.name().as_str(),
            uid: context.uid(),
            project: &self.alerts.project,
            moment,
            telling,
            found: &found,
        };
        let messages = teller.messages(self.record.order);
        self.record.order += u64::from(!messages.is_empty());
        self.record.note(Entry {
            at: now,
            moment,
            verdict: found.verdict,
            rows: found.rows.clone(),
            error: found
                .error
                .map(|error| error.message.to_string())
                .unwrap_or_default(),
            told: messages.iter().map(|one| one.message.key.clone()).collect(),
        });
        self.record.memory = memory;
        (self.record.question, self.record.refs) = (question, versions);
        self.record.refreshes = refreshes;
        self.record.mark = moment.max(now);
        self.record.outbox = messages;
        self.store().await?;
        self.hand_over().await?;
        self.outcome(schedule.as_ref(), Work::Checked)
    }

    fn asker<'a>(&'a self, spec: &'a AlertSpec) -> Asker<'a> {
        Asker {
            outputs: &self.alerts.outputs,
            environment: &self.alerts.environment,
            spec,
            own: self.context.row().key(),
            refs: self.context.refs(),
            handle: self.context.controller(),
            cancel: self.context.cancellation(),
        }
    }

    /// Creates the notifications that are missing, then forgets their messages (N6).
    async fn hand_over(&mut self) -> Result<(), Error> {
        if self.record.outbox.is_empty() {
            return Ok(());
        }
        for one in &self.record.outbox {
            let new = one
                .declare()
                .map_err(|error| Error::permanent("internal", error.to_string()))?;
            match self.context.controller().create(new).await {
                // It was created before a crash.
                Ok(_) | Err(EditError::Refused(Refusal::NameTaken { .. })) => {}
                Err(error) => return Err(Error::transient("edit", error.to_string())),
            }
        }
        self.record.outbox.clear();
        self.store().await
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
        let last = self.record.history.first();
        if let Some(last) = last.filter(|last| last.verdict == Verdict::Error) {
            return Err(Error {
                retrigger: next,
                ..Error::permanent("alert-error", last.error.as_str())
            });
        }
        Ok(Outcome {
            retrigger: next,
            ..Outcome::from_work(work)
        })
    }
}
