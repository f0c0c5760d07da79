//! One invocation for a model: compare the wanted and the existing output, decide, act.
//!
//! Each effect in the engine is one transaction with its record, and the state is written after it. So a run may be
//! cut off anywhere: the next one finds the record and writes the state.

mod act;
mod agenda;
mod build;
mod databases;
mod decoded;
mod dialect;
mod doubts;
mod errors;
mod export;
mod failures;
mod fetched;
mod known_output;
mod lake;
mod listing;
mod objects_now;
mod partitions;
mod passed_over;
mod stager;
mod state;
mod statements;
mod stores;
mod subject;
mod table;
mod take_back;
mod upload;
mod wanted;

use watershed_controller::Context;
use watershed_core::{Error, Outcome, Ref, Timestamp};
use watershed_drivers::olap::{Fate, OutputKind};

use crate::away;

use super::{
    ModelReconciler, failure, freshness, inputs,
    plan::{self, Again, BuildReason, Decision},
    record::{BuildId, Record, Shape},
    retries, schedule,
    triggers::adds_rows,
};
use export::Exporter;
use known_output::KnownOutput;
use state::State;
use subject::Subject;
use wanted::Plan;

/// An invocation for a model.
pub(super) struct Run<'a> {
    subject: Subject<'a>,
    state: State<'a>,
}

/// The result of a successful run.
struct Done {
    outcome: Outcome,
    /// The time of the last build, from which the schedule counts.
    mark: Timestamp,
    /// The time when the present rows came.
    since: Timestamp,
}

/// The existing rows that a build starts from.
enum Base {
    /// The build makes all rows.
    Nothing {
        /// The build id for the output; a new or derived one if none.
        kept: Option<BuildId>,
        /// The fate of the existing rows.
        replaced: Fate,
    },
    /// The build adds rows to the output of this record.
    Rows(Box<Record>),
}

impl<'a> Run<'a> {
    pub(super) fn new(model: &'a ModelReconciler, context: &'a Context<ModelReconciler>) -> Self {
        let subject = Subject { model, context };
        Self {
            subject,
            state: State::new(subject),
        }
    }

    pub(super) async fn reconcile(&self) -> Result<Outcome, Error> {
        let subject = self.subject;
        if !subject.outputs().chosen().holds(subject.context.uid()) {
            return Ok(Box::pin(passed_over::follow_names(self)).await);
        }
        let result = self.converge_with_files().await;
        let schedule = schedule::from_spec(subject.spec());
        let now = subject.context.now();
        let next = |mark| schedule.as_ref().and_then(|it| schedule::next(it, mark, now));
        // Nothing is built when a bound is passed: whoever watches learns of it.
        let bound = |since| {
            let freshness = subject.spec().freshness.as_ref()?;
            freshness::next(freshness, since, now)
        };
        match result {
            Ok(Done { outcome, mark, since }) => Ok(Outcome {
                retrigger: next(mark).into_iter().chain(bound(since)).min(),
                ..outcome
            }),
            // The next time is another chance, whatever becomes of retries.
            Err(error) => {
                let error = Error {
                    retrigger: next(now),
                    ..retries::judged(subject.spec(), errors::tell_what_stays(subject, error))
                };
                Err(away::run_again(subject.outputs(), subject.context, error))
            }
        }
    }

    /// Returns the exporter of the model's rows to files and other databases.
    fn exporter(&self) -> Exporter<'_> {
        Exporter {
            subject: self.subject,
            state: &self.state,
        }
    }

    /// Brings the output up to date, and then the exported files.
    async fn converge_with_files(&self) -> Result<Done, Error> {
        let done = self.converge().await?;
        let outcome = Box::pin(self.exporter().write_files(done.outcome)).await?;
        Ok(Done { outcome, ..done })
    }

    async fn converge(&self) -> Result<Done, Error> {
        let subject = self.subject;
        if let Some(fault) = &subject.spec().fault {
            return Err(failure::from_fault(fault));
        }
        let inputs = inputs::from_refs(subject.spec(), subject.context.refs(), subject.outputs().chosen())?;
        databases::refuse_other_database(subject)?;
        let now = subject.context.now();
        let mut known_output = known_output::find(subject).await?;
        if let Some(record) = &mut known_output.record {
            let times = schedule::fingerprint(subject.spec().refresh_schedule.as_ref());
            record.count_anew(times, now);
        }
        let plan = wanted::plan_now(subject, inputs, known_output.record.as_ref()).await?;
        let decision = wanted::decide(subject, &plan, &known_output).await?;
        tracing::debug!(?decision, "decided");
        if let Some(failed) = plan.failed.clone() {
            return Err(Box::pin(self.act_on_stale(&failed, decision, plan, known_output)).await);
        }
        let (mark, since) = (known_output.mark(now), known_output.since(now));
        match decision {
            Decision::Nothing => Ok(Done {
                since,
                ..Done::at(mark, self.keep(plan, known_output).await?)
            }),
            // Beside what most runs do, a look: its future is made anew for each, and moved.
            decision => Box::pin(self.act(decision, plan, known_output)).await,
        }
    }

    /// Carries out an edit while a ref has failed. The model stays blocked by the ref, so that its dependents and
    /// schedule wait for good rows.
    async fn act_on_stale(
        &self,
        failed: &Ref,
        decision: Decision,
        plan: Plan,
        known_output: KnownOutput,
    ) -> Error {
        if !plan::is_for_edit(&decision) {
            return failure::failed_ref(failed);
        }
        match self.act(decision, plan, known_output).await {
            Ok(_) => failure::built_on_stale(failed),
            Err(error) => failure::unbuilt_on_stale(failed, error),
        }
    }

    /// Carries out a decision.
    async fn act(&self, decision: Decision, plan: Plan, known_output: KnownOutput) -> Result<Done, Error> {
        let subject = self.subject;
        let now = subject.context.now();
        let mark = known_output.mark(now);
        match decision {
            Decision::Nothing => Ok(Done::at(mark, self.keep(plan, known_output).await?)),
            Decision::Accept => Ok(Done::at(mark, self.accept(plan, known_output).await?)),
            Decision::Unchanged => {
                let since = known_output.since(now);
                let outcome = self.answer(plan, known_output).await?;
                Ok(Done {
                    since,
                    ..Done::at(now, outcome)
                })
            }
            Decision::Rename { .. } => {
                let (outcome, record) = self.give_name(known_output).await?;
                self.test(record).await?;
                Ok(Done::at(mark, outcome))
            }
            Decision::Adopt => {
                let (outcome, record) = self.adopt(plan, known_output).await?;
                if adds_rows(subject.spec()) {
                    // New rows may be waiting: they are put into what is its own now.
                    return Box::pin(self.converge()).await;
                }
                self.test(record).await?;
                Ok(Done::at(mark, outcome))
            }
            Decision::MakeViewAgain(again) => {
                let kept = (again == Again::InputRenamed)
                    .then_some(known_output.record.as_ref())
                    .flatten();
                let id = kept.map(|record| record.build);
                subject.context.progress("making the view again");
                let base = Base::Nothing {
                    kept: id,
                    replaced: Fate::Gone,
                };
                self.build(plan, base, known_output.orphan).await
            }
            Decision::Follow(_) => {
                let outcome = self.follow(plan, known_output).await?;
                Ok(Done::at(subject.context.now(), outcome))
            }
            Decision::Build(reason) => {
                let mut plan = plan;
                if let Some(done) = self.take_back(&mut plan, &known_output).await? {
                    return Ok(done);
                }
                let why = plan.told(&reason);
                subject.context.progress(format!("building, because {why}"));
                let base = Base::Nothing {
                    // A view that is made by time stands for other rows than before.
                    kept: (reason == BuildReason::Scheduled).then(BuildId::fresh),
                    replaced: wanted::fate(subject.spec(), &reason),
                };
                self.build_all(plan, base, known_output).await
            }
            Decision::Add(reason) => {
                let why = plan.told(&reason);
                subject.context.progress(format!("adding rows, because {why}"));
                let named = self.named(known_output).await?;
                let base = Base::Rows(Box::new(named));
                self.build_all(plan, base, KnownOutput::default()).await
            }
            Decision::Hold(reason) => Err(errors::held(subject, &reason).await),
        }
    }

    /// Builds the output, in partitions if the model has any.
    async fn build_all(&self, plan: Plan, base: Base, known_output: KnownOutput) -> Result<Done, Error> {
        match &self.subject.spec().partitions {
            Some(_) => self.build_partitions(plan, base, known_output).await,
            None => self.build(plan, base, known_output.orphan).await,
        }
    }

    /// Returns the record of the output, after renaming it if necessary.
    async fn named(&self, known_output: KnownOutput) -> Result<Record, Error> {
        let gone = || Error::transient("output-missing", "the output is gone");
        let record = known_output.record.clone().ok_or_else(gone)?;
        match &known_output.object {
            Some((table, ..)) if table != self.subject.table() => {
                let (_, renamed) = self.give_name(known_output).await?;
                renamed.ok_or_else(gone)
            }
            _ => Ok(record),
        }
    }
}

impl Done {
    fn at(mark: Timestamp, outcome: Outcome) -> Self {
        Self {
            outcome,
            mark,
            since: mark,
        }
    }
}

pub(super) fn kind(shape: Shape) -> OutputKind {
    match shape {
        Shape::View => OutputKind::View,
        Shape::Table => OutputKind::Table,
    }
}
