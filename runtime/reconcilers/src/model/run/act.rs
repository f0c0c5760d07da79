//! Actions of a run: in the engine, and on the state.

use watershed_core::{Error, Outcome, Work};
use watershed_drivers::olap::{Dropped, Guard, KeptRows, Rename, RenameError, Tag, Verdict};
use watershed_locks::Unpoisoned;
use watershed_outputs::Lookup;
use watershed_proto::{ExportState, ModelState, TestResult};

use super::{Plan, Run, known_output::KnownOutput};
use crate::{
    messages::Proto,
    model::{
        data_tests::{self, Tests},
        failure, inputs,
        record::{BuildId, Record},
        triggers::triggers,
    },
};

impl Run<'_> {
    /// Nothing to do in the engine; the catalog's copy may be behind the engine's record, or hold old times of files.
    pub(super) async fn keep(&self, plan: Plan, known_output: KnownOutput) -> Result<Outcome, Error> {
        let Some(record) = known_output.record else {
            return Ok(Outcome::default());
        };
        let triggers = triggers(self.spec(), &record, self.context.now());
        let looked = plan.files.into_iter().zip(&record.files);
        let files = looked.map(|(now, then)| match now.content {
            // Proven by time and size: as it was.
            None => then.clone(),
            Some(_) => inputs::seen(now, plan.looked_at_ns),
        });
        // What it does not follow may have changed: it is recorded as it was read.
        let record = Record {
            files: match triggers.files {
                true => files.collect(),
                false => record.files.clone(),
            },
            meaning: plan.meaning,
            stale_input: false,
            made: match triggers.inputs {
                true => plan.made,
                false => record.made,
            },
            ..record
        };
        self.set_state(&record).await?;
        let tested = self.test(Some(record)).await?;
        Ok(if tested {
            done(Work::Checked)
        } else {
            Outcome::default()
        })
    }

    /// Takes over a definition whose rows come with the next build. The engine's record keeps the one of before: who reads
    /// it there decides the same again.
    pub(super) async fn accept(&self, plan: Plan, known_output: KnownOutput) -> Result<Outcome, Error> {
        let Some(record) = known_output.record else {
            return Ok(Outcome::default());
        };
        let meaning = plan.meaning;
        self.set_state(&Record { meaning, ..record }).await?;
        Ok(done(Work::Checked))
    }

    /// Takes note that a view stands for other rows. The engine's record keeps the build that made it: who reads it there makes
    /// the view again.
    pub(super) async fn follow(&self, plan: Plan, known_output: KnownOutput) -> Result<Outcome, Error> {
        let Some(record) = known_output.record else {
            return Ok(Outcome::default());
        };
        let build = BuildId::for_view(&plan.meaning, &plan.inputs, &record.files, &plan.made, plan.asked);
        self.set_state(&Record {
            build,
            meaning: plan.meaning,
            inputs: plan.inputs,
            made: plan.made,
            built_at_ms: self.context.now().0,
            stale_input: false,
            ..record
        })
        .await?;
        Ok(done(Work::Checked))
    }

    /// Takes what asked for new rows as answered, since the stores have none. The engine's record keeps what was answered
    /// before: who reads it there asks the stores again.
    pub(super) async fn answer(&self, plan: Plan, known_output: KnownOutput) -> Result<Outcome, Error> {
        let Some(record) = known_output.record else {
            return Ok(Outcome::default());
        };
        self.set_state(&Record {
            answered: plan.asked,
            asked_at_ms: self.context.now().0,
            ..record
        })
        .await?;
        Ok(done(Work::Checked))
    }

    /// Runs the tests if what they came to for this output is not known. Says whether there were any to run.
    pub(super) async fn test(&self, record: Option<Record>) -> Result<bool, Error> {
        let tests = self.tests()?;
        let Some(record) = record.filter(|record| !tests.passed_for(record)) else {
            return Ok(false);
        };
        self.context.progress("running its tests");
        let checked = self
            .model
            .outputs
            .olap()
            .check(&tests.checks, self.cancel())
            .await;
        let verdicts = checked.map_err(|failure| failure::from_failure(&failure))?;
        self.keep_failures(&tests, &verdicts).await;
        let results = tests.results(&verdicts, self.model.outputs.secrets());
        if let Some(error) = data_tests::error(&results, self.paths()) {
            self.tell_results(results).await?;
            return Err(Error {
                hint: Some("only the tests were run, because nothing else changed".into()),
                ..error
            });
        }
        let ran = !results.is_empty();
        let tests = tests.digest;
        self.set_state(&Record {
            tests,
            results,
            ..record
        })
        .await?;
        Ok(ran)
    }

    /// Keeps the rows that failed tests, in place of those that failed before. Nothing depends on them, so a run does not
    /// fail because of them.
    pub(super) async fn keep_failures(&self, tests: &Tests, verdicts: &[Verdict]) {
        if tests.store_failures() || self.has_stored_failures() {
            self.store_failures(tests.kept(verdicts)).await;
        }
    }

    fn has_stored_failures(&self) -> bool {
        let state = self.context.state();
        state.is_some_and(|state| state.0.test_results.iter().any(|result| result.stored > 0))
    }

    async fn store_failures(&self, kept: Vec<KeptRows>) {
        let olap = self.model.outputs.olap();
        let stored = olap.keep_failures(self.uid(), self.table(), kept, self.cancel());
        if let Err(error) = stored.await {
            tracing::warn!(%error, "the rows that failed tests were not kept");
        }
    }

    /// Keeps what tests came to beside what is known of the last good output.
    pub(super) async fn tell_results(&self, results: Vec<TestResult>) -> Result<(), Error> {
        let known = self.context.state().map(|state| state.0.clone());
        self.write(ModelState {
            test_results: results,
            ..known.unwrap_or_default()
        })
        .await
    }

    pub(super) async fn adopt(
        &self,
        plan: Plan,
        known_output: KnownOutput,
    ) -> Result<(Outcome, Option<Record>), Error> {
        let (Some(record), Some(orphan)) = (known_output.record, known_output.orphan) else {
            return Ok((Outcome::default(), None));
        };
        let record = Record {
            answered: self.asked(),
            table: plan.table,
            meaning: plan.meaning,
            ..record
        };
        let from = Tag {
            uid: orphan,
            build: record.build.0,
        };
        let to = Tag {
            uid: self.uid(),
            build: record.build.0,
        };
        let adopted = self
            .model
            .outputs
            .adopt(from, to, record.encode(), self.cancel())
            .await;
        if !adopted.map_err(|failure| failure::from_failure(&failure))? {
            return Err(Error::transient(
                "output-missing",
                "the output that was to be adopted is gone",
            ));
        }
        self.set_state(&record).await?;
        Ok((done(Work::Checked), Some(record)))
    }

    pub(super) async fn give_name(
        &self,
        known_output: KnownOutput,
    ) -> Result<(Outcome, Option<Record>), Error> {
        self.refuse_shared_output().await?;
        let to = self.table().to_owned();
        let record = known_output.record.map(|record| Record {
            table: to.clone(),
            ..record
        });
        let encoded = match &record {
            // The catalog's copy lacks the definition, which the engine is to keep.
            Some(record) if record.definition.is_empty() => {
                self.whole(record).await?.map(|whole| whole.encode())
            }
            Some(record) => Some(record.encode()),
            None => None,
        };
        let rename = Rename {
            uid: self.uid(),
            to,
            record: encoded,
        };
        match self.model.outputs.rename(&rename, self.cancel()).await {
            Ok(_) => {}
            Err(RenameError::Absent) => return Ok((Outcome::default(), None)),
            Err(error) => return Err(failure::from_rename(&error)),
        }
        if let Some(record) = &record {
            self.set_state(record).await?;
        }
        Ok((done(Work::Renamed), record))
    }

    /// The record with the definition that the engine holds; none if it holds another build.
    async fn whole(&self, record: &Record) -> Result<Option<Record>, Error> {
        let output = self.look_up().await?;
        let held = output.and_then(|output| Record::decode(&output.record?));
        let held = held.filter(|held| held.tagged == record.tagged);
        Ok(held.map(|held| Record {
            definition: held.definition,
            ..record.clone()
        }))
    }

    pub(in crate::model) async fn rename(&self) -> Result<Outcome, Error> {
        let known_output = self.known_output().await?;
        match &known_output.object {
            Some((table, ..)) if known_output.orphan.is_none() && table != self.table() => {
                let (outcome, _) = self.give_name(known_output).await?;
                Ok(outcome)
            }
            _ => Ok(Outcome::default()),
        }
    }

    pub(in crate::model) async fn delete(&self) -> Result<Outcome, Error> {
        self.remove_all_files().await?;
        let found = self.model.outputs.find(self.uid(), self.cancel()).await;
        let nothing = match found.map_err(|failure| failure::from_failure(&failure))? {
            Lookup::AsLeft => self
                .context
                .state()
                .is_none_or(|state| Record::from_state(&state.0).is_none()),
            Lookup::Listed(output) => output.is_none(),
        };
        if nothing {
            if self.has_stored_failures() {
                // Those of a first build that was undone: there is no output to go with.
                self.store_failures(Vec::new()).await;
            }
            return Ok(Outcome::default());
        }
        let state = self.context.state();
        let is_incremental = state.is_some_and(|state| state.0.incremental);
        let guard = match self.spec().protect.unwrap_or(is_incremental) {
            true => Guard::Held,
            false => Guard::Free,
        };
        let dropped = self.model.outputs.drop_output(self.uid(), guard, self.cancel());
        match dropped.await.map_err(|failure| failure::from_failure(&failure))? {
            Dropped::Done => Ok(done(Work::Dropped)),
            Dropped::Nothing => Ok(Outcome::default()),
            Dropped::NoRoom { needs, room } => Err(failure::held_drop(self.name(), needs, room)),
        }
    }

    pub(super) async fn set_state(&self, record: &Record) -> Result<(), Error> {
        self.write(record.to_state()).await
    }

    async fn write(&self, state: ModelState) -> Result<(), Error> {
        let export = self.state_so_far().export;
        self.write_with(state, export).await
    }

    /// Writes the state with what is known of the files that were written.
    pub(super) async fn write_with(
        &self,
        state: ModelState,
        export: Option<ExportState>,
    ) -> Result<(), Error> {
        let state = ModelState { export, ..state };
        if self.has_state() && self.state_so_far() == state {
            return Ok(());
        }
        let state = Proto(state);
        self.context.set_state(&state).await?;
        *self.written.lock().unpoisoned() = Some(state.0);
        Ok(())
    }

    fn has_state(&self) -> bool {
        self.context.state().is_some() || self.written.lock().unpoisoned().is_some()
    }

    /// The state as this run found it, or as it wrote it since.
    pub(super) fn state_so_far(&self) -> ModelState {
        let written = self.written.lock().unpoisoned().clone();
        let found = || self.context.state().map(|state| state.0.clone());
        written.or_else(found).unwrap_or_default()
    }
}

pub(super) fn done(work: Work) -> Outcome {
    Outcome::from_work(work)
}
