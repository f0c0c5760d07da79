//! Restoring an output from the trash instead of building it.
//!
//! What is wanted of it is decided by [`fit`].

use watershed_core::{Error, Outcome, Timestamp, Work};
use watershed_drivers::files::FileNow;
use watershed_drivers::olap::{Build, BuildError, Failure, Fate, Location, OutputKind, Step, Tag, Trashed};
use watershed_proto::Message;

use super::{
    Done, Run,
    act::done,
    failures,
    known_output::{self, KnownOutput},
    wanted::{self, Plan},
};
use crate::model::{
    columns::Columns,
    data_tests, failure,
    fit::{self, Candidate, Fit},
    freshness, inputs,
    record::{BuildId, Record, Refreshes, Shape},
    triggers::triggers,
};

/// A trashed output that a model can take back instead of a build.
struct Restorable {
    record: Record,
    fit: Fit,
    /// True if the resource itself trashed the output.
    is_own: bool,
}

impl Run<'_> {
    /// Restores the wanted table from the trash; none if it must be built.
    pub(super) async fn take_back(
        &self,
        plan: &mut Plan,
        known_output: &KnownOutput,
    ) -> Result<Option<Done>, Error> {
        let subject = self.subject;
        if plan.shape != Shape::Table {
            return Ok(None);
        }
        let trash = subject
            .outputs()
            .in_trash(subject.uid(), &plan.table, subject.cancel());
        let trash = trash.await.map_err(|failure| failure::from_failure(&failure))?;
        if trash.is_empty() {
            return Ok(None);
        }
        let files = std::mem::take(&mut plan.files);
        // Their times differ from those of long ago.
        plan.files =
            inputs::with_contents(&subject.model.root, files, plan.looked_at_ns, subject.cancel()).await?;
        for trashed in trash {
            let Some(candidate) = self.candidate(plan, &trashed).await? else {
                continue;
            };
            if let Some(done) = self.restore(plan, candidate, known_output).await? {
                return Ok(Some(done));
            }
        }
        Ok(None)
    }

    /// Compares a trashed output with the wanted one; none if it can't be used.
    async fn candidate(&self, plan: &Plan, trashed: &Trashed) -> Result<Option<Restorable>, Error> {
        let subject = self.subject;
        let is_own = trashed.tag.uid == subject.uid();
        let Some(record) = fit::record(
            trashed,
            is_own,
            known_output::owner(subject, trashed.tag.uid).is_some(),
        ) else {
            return Ok(None);
        };
        let refingerprinted = wanted::refingerprint(subject, plan, &record).await?;
        let triggers = triggers(subject.spec(), &record, subject.context.now());
        let candidate = Candidate {
            record: &record,
            refingerprinted: refingerprinted.as_ref(),
            build: BuildId(trashed.tag.build),
            is_own,
            due: triggers.due,
        };
        let fit = fit::fit(
            &wanted::wanted(subject, plan, &record),
            &candidate,
            plan.approvals,
        );
        Ok(fit.map(|fit| Restorable { record, fit, is_own }))
    }

    /// Moves a trashed output to its place; none if it no longer exists or can't be moved.
    async fn restore(
        &self,
        plan: &Plan,
        candidate: Restorable,
        known_output: &KnownOutput,
    ) -> Result<Option<Done>, Error> {
        let subject = self.subject;
        known_output::refuse_shared_output(subject).await?;
        let tests = subject.tests()?;
        let (record, checks) = match candidate.fit {
            Fit::Same => {
                let seen = |file: &FileNow| inputs::seen(file.clone(), plan.looked_at_ns);
                let record = Record {
                    meaning: plan.meaning.clone(),
                    inputs: plan.inputs.clone(),
                    files: plan.files.iter().map(seen).collect(),
                    made: plan.made.clone(),
                    answered: plan.asked,
                    approvals: plan.approvals,
                    tests: tests.digest.clone(),
                    stale_input: plan.failed.is_some(),
                    ..candidate.record
                };
                (record, tests.checks.clone())
            }
            // The rows are tested when the new ones are there.
            Fit::Base => {
                let record = Record {
                    answered: Refreshes {
                        // Its rows are those of before the full ones that were approvals alone.
                        full: plan.asked.full,
                        plain: match candidate.is_own {
                            true => candidate.record.answered.plain,
                            false => plan.asked.plain,
                        },
                    },
                    approvals: plan.approvals,
                    tests: Vec::new(),
                    ..candidate.record
                };
                (record, Vec::new())
            }
        };
        let record = Record {
            location: Location::named(&plan.table),
            definition: subject.spec().encode_to_vec(),
            ..record
        };
        subject.context.progress("taking it back from the trash");
        let tag = Tag {
            uid: subject.uid(),
            build: record.build.0,
        };
        // What comes back is made by no statement.
        let (table, name) = (OutputKind::Table, record.location.name.as_str());
        let build = Build {
            step: Step::TakeBack(record.build.0),
            checks,
            replaced: Fate::Trash,
            put_columns: record.columns.is_none().then_some(Columns::put),
            ..Build::of_statement(tag, record.encode(), table, name, "")
        };
        let built = match self.send(&build).await {
            Ok(built) => built,
            Err(BuildError::Undone(verdicts)) => {
                failures::keep(subject, &tests, &verdicts).await?;
                let results = tests.results(&verdicts, subject.outputs().secrets());
                let error = data_tests::error(&results, subject.paths());
                self.state.tell_results(results).await?;
                return Err(error.unwrap_or_else(|| failure::from_build(&BuildError::Undone(verdicts)).0));
            }
            Err(BuildError::Failed(Failure::Interrupted)) if subject.context.is_cancelled() => {
                return Err(failure::cancelled());
            }
            // It may have been taken back, or is another owner's.
            Err(BuildError::Failed(failure @ (Failure::Fenced | Failure::Unknown { .. }))) => {
                return Err(failure::from_failure(&failure));
            }
            Err(error) => {
                tracing::warn!(%error, "not taken back from the trash, so it is built");
                return Ok(None);
            }
        };
        failures::keep(subject, &tests, &built.verdicts).await?;
        let results = tests.results(&built.verdicts, subject.outputs().secrets());
        let record = Record {
            rows: built.rows,
            results,
            ..record
        };
        self.state.set(&record).await?;
        subject.outputs().forget_approval(subject.uid());
        if let Some(orphan) = known_output.orphan {
            known_output::drop_orphan(subject, orphan).await?;
        }
        let restored = Done {
            since: freshness::since(&record, subject.context.now()),
            ..Done::at(Timestamp(record.built_at_ms), done(Work::Restored))
        };
        if candidate.fit == Fit::Same {
            return Ok(Some(restored));
        }
        let further = Box::pin(self.converge()).await?;
        let outcome = match further.outcome.work {
            Work::None | Work::Checked => Outcome {
                work: Work::Restored,
                ..further.outcome
            },
            _ => further.outcome,
        };
        Ok(Some(Done { outcome, ..further }))
    }
}
