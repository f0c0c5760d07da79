//! What a run does in the engine and writes as state.

use std::time::{Duration, Instant, SystemTime};

use uuid::Uuid;
use watershed_core::{Error, Outcome, Work};
use watershed_drivers::olap::{Build, BuildError, Failure, Rename, RenameError, Tag};
use watershed_proto::{Message, ModelState, TestResult};

use super::{Plan, Run, Standing, kind};
use crate::model::{
    data_tests::{self, Tests},
    failure, files, inputs,
    record::{BuildId, Record, Shape},
    statement,
};
use crate::{messages::Proto, outputs::Found};

/// The longest that a build may take when its spec does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(3 * 60 * 60);

impl Run<'_> {
    /// Nothing to do in the engine; the catalog's copy may be behind the engine's record, or hold old times of files.
    pub(super) async fn keep(&self, plan: Plan, standing: Standing) -> Result<Outcome, Error> {
        let Some(record) = standing.record else {
            return Ok(Outcome::default());
        };
        let looked = plan.files.into_iter().zip(&record.files);
        let files = looked.map(|(now, then)| match now.content {
            // Proven by time and size: as it was.
            None => then.clone(),
            Some(_) => inputs::seen(now, plan.looked_at_ns),
        });
        let record = Record {
            files: files.collect(),
            meaning: plan.meaning,
            made: plan.made,
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
        let verdicts = checked.map_err(|failure| failure::of_failure(&failure))?;
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

    /// Keeps what tests came to beside what is known of the last good output.
    async fn tell_results(&self, results: Vec<TestResult>) -> Result<(), Error> {
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
        standing: Standing,
    ) -> Result<(Outcome, Option<Record>), Error> {
        let (Some(record), Some(orphan)) = (standing.record, standing.orphan) else {
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
        if !adopted.map_err(|failure| failure::of_failure(&failure))? {
            return Err(Error::transient(
                "output-missing",
                "the output that was to be adopted is gone",
            ));
        }
        self.set_state(&record).await?;
        Ok((done(Work::Checked), Some(record)))
    }

    pub(super) async fn build(
        &self,
        plan: Plan,
        kept: Option<BuildId>,
        orphan: Option<Uuid>,
    ) -> Result<Outcome, Error> {
        let spec = self.opened_spec()?;
        let sql = statement::sql(&spec, self.name(), &self.model.environment, self.paths())?;
        let tests = self.tests()?;
        // Outside of the time that a build may take.
        let opened = self.model.outputs.open(self.cancel()).await;
        opened.map_err(|failure| failure::of_failure(&failure))?;
        self.refuse_shared_output().await?;
        let started = Instant::now();
        let files = inputs::hashed(&self.model.root, plan.files, plan.looked_at_ns, self.cancel()).await?;
        let id = match plan.shape {
            Shape::Table => BuildId::fresh(),
            Shape::View => kept.unwrap_or_else(|| {
                BuildId::of_view(&plan.meaning, &plan.inputs, &files, &plan.made, self.asked())
            }),
        };
        let record = Record {
            build: id,
            table: plan.table,
            shape: plan.shape,
            meaning: plan.meaning,
            definition: self.spec().encode_to_vec(),
            inputs: plan.inputs,
            files,
            made: plan.made,
            answered: self.asked(),
            tests: tests.digest.clone(),
            results: Vec::new(),
            rows: None,
            built_at_ms: files::nanos(SystemTime::now()) / 1_000_000,
            took_ms: 0,
        };
        let (rows, results) = self.build_in_engine(&record, &sql, &tests).await?;
        let files = inputs::confirmed(&self.model.root, record.files, self.cancel()).await;
        let took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.set_state(&Record {
            rows,
            results,
            files,
            took_ms,
            ..record
        })
        .await?;
        if let Some(orphan) = orphan {
            let dropped = self.model.outputs.drop_output(orphan, self.cancel()).await;
            dropped.map_err(|failure| failure::of_failure(&failure))?;
        }
        Ok(done(Work::Built))
    }

    /// The number of rows of a table, and what the tests came to.
    async fn build_in_engine(
        &self,
        record: &Record,
        sql: &str,
        tests: &Tests,
    ) -> Result<(Option<u64>, Vec<TestResult>), Error> {
        let build = Build {
            name: record.table.clone(),
            kind: kind(record.shape),
            sql: sql.to_owned(),
            checks: tests.checks.clone(),
            tag: Tag {
                uid: self.uid(),
                build: record.build.0,
            },
            record: record.encode(),
        };
        let seconds = u64::from(self.spec().timeout_seconds);
        let limit = if seconds == 0 {
            DEFAULT_TIMEOUT
        } else {
            Duration::from_secs(seconds)
        };
        let cancel = self.cancel().child_token();
        let result = {
            let work = self.model.outputs.build(&build, &cancel);
            tokio::pin!(work);
            tokio::select! {
                biased;
                result = &mut work => result,
                () = tokio::time::sleep(limit) => {
                    cancel.cancel();
                    work.await
                }
            }
        };
        let secrets = self.model.outputs.secrets();
        match result {
            Ok(built) => Ok((built.rows, tests.results(&built.verdicts, secrets))),
            Err(BuildError::Undone(verdicts)) => {
                let results = tests.results(&verdicts, secrets);
                let error = data_tests::error(&results, self.paths());
                self.tell_results(results).await?;
                Err(error.unwrap_or_else(|| failure::of_build(&BuildError::Undone(verdicts)).0))
            }
            Err(BuildError::Failed(Failure::Interrupted)) if !self.context.is_cancelled() => {
                Err(failure::of_timeout(limit.as_secs()))
            }
            Err(error) => Err(self.placed(&error, sql)),
        }
    }

    pub(super) async fn give_name(&self, standing: Standing) -> Result<(Outcome, Option<Record>), Error> {
        self.refuse_shared_output().await?;
        let to = self.table().to_owned();
        let record = standing.record.map(|record| Record {
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
            Err(error) => return Err(failure::of_rename(&error)),
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
        let held = held.filter(|held| held.build == record.build);
        Ok(held.map(|held| Record {
            definition: held.definition,
            ..record.clone()
        }))
    }

    pub(in crate::model) async fn rename(&self) -> Result<Outcome, Error> {
        let standing = self.standing().await?;
        match &standing.object {
            Some((table, ..)) if standing.orphan.is_none() && table != self.table() => {
                let (outcome, _) = self.give_name(standing).await?;
                Ok(outcome)
            }
            _ => Ok(Outcome::default()),
        }
    }

    pub(in crate::model) async fn delete(&self) -> Result<Outcome, Error> {
        let found = self.model.outputs.find(self.uid(), self.cancel()).await;
        let nothing = match found.map_err(|failure| failure::of_failure(&failure))? {
            Found::AsLeft => self
                .context
                .state()
                .is_none_or(|state| Record::from_state(&state.0).is_none()),
            Found::Listed(output) => output.is_none(),
        };
        if nothing {
            return Ok(Outcome::default());
        }
        let dropped = self.model.outputs.drop_output(self.uid(), self.cancel()).await;
        match dropped.map_err(|failure| failure::of_failure(&failure))? {
            true => Ok(done(Work::Dropped)),
            false => Ok(Outcome::default()),
        }
    }

    async fn set_state(&self, record: &Record) -> Result<(), Error> {
        self.write(record.to_state()).await
    }

    async fn write(&self, state: ModelState) -> Result<(), Error> {
        let state = Proto(state);
        if self.context.state() == Some(&state) {
            return Ok(());
        }
        let written = self.context.set_state(&state).await;
        written.map_err(|error| Error::transient("state", error.to_string()))
    }
}

fn done(work: Work) -> Outcome {
    Outcome::of(work)
}
