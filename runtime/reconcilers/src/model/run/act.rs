//! The actions of a run, in the engine and on the state.

use watershed_core::{Error, Outcome, Work};
use watershed_drivers::olap::{Dropped, Guard, Location, Rename, RenameError, Tag};
use watershed_outputs::Lookup;

use super::{
    Run, failures,
    known_output::{self, KnownOutput},
    wanted::Plan,
};
use crate::model::{
    data_tests, failure, inputs,
    record::{BuildId, Record},
    triggers::triggers,
};

impl Run<'_> {
    /// Leaves the output as it is, and updates the catalog's copy of the record and the times of files.
    pub(super) async fn keep(&self, plan: Plan, known_output: KnownOutput) -> Result<Outcome, Error> {
        let Some(record) = known_output.record else {
            return Ok(Outcome::default());
        };
        let triggers = triggers(self.subject.spec(), &record, self.subject.context.now());
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
        self.state.set(&record).await?;
        let tested = self.test(Some(record)).await?;
        Ok(if tested {
            done(Work::Checked)
        } else {
            Outcome::default()
        })
    }

    /// Adopts a definition whose rows come with the next build. The engine's record keeps the old definition, from
    /// which the same decision follows again.
    pub(super) async fn accept(&self, plan: Plan, known_output: KnownOutput) -> Result<Outcome, Error> {
        let Some(record) = known_output.record else {
            return Ok(Outcome::default());
        };
        let meaning = plan.meaning;
        self.state.set(&Record { meaning, ..record }).await?;
        Ok(done(Work::Checked))
    }

    /// Records that an unchanged view now has other rows. The engine's record keeps the build that created it, from
    /// which a later run creates the view again.
    pub(super) async fn follow(&self, plan: Plan, known_output: KnownOutput) -> Result<Outcome, Error> {
        let Some(record) = known_output.record else {
            return Ok(Outcome::default());
        };
        let build = BuildId::for_view(&plan.meaning, &plan.inputs, &record.files, &plan.made, plan.asked);
        self.state
            .set(&Record {
                build,
                meaning: plan.meaning,
                inputs: plan.inputs,
                made: plan.made,
                built_at_ms: self.subject.context.now().0,
                stale_input: false,
                ..record
            })
            .await?;
        Ok(done(Work::Checked))
    }

    /// Records that a request for new rows is answered, as the stores have none. The engine's record is unchanged, so
    /// that a run which knows only that asks the stores again.
    pub(super) async fn answer(&self, plan: Plan, known_output: KnownOutput) -> Result<Outcome, Error> {
        let Some(record) = known_output.record else {
            return Ok(Outcome::default());
        };
        self.state
            .set(&Record {
                answered: plan.asked,
                asked_at_ms: self.subject.context.now().0,
                ..record
            })
            .await?;
        Ok(done(Work::Checked))
    }

    /// Runs the tests, unless their results for the output are known. Returns true if any ran.
    pub(super) async fn test(&self, record: Option<Record>) -> Result<bool, Error> {
        let subject = self.subject;
        let tests = subject.tests()?;
        let Some(record) = record.filter(|record| !tests.passed_for(record)) else {
            return Ok(false);
        };
        subject.context.progress("running its tests");
        let checked = subject
            .outputs()
            .olap()
            .check(&tests.checks, subject.cancel())
            .await;
        let verdicts = checked.map_err(|failure| failure::from_failure(&failure))?;
        failures::keep(subject, &tests, &verdicts).await?;
        let results = tests.results(&verdicts, subject.outputs().secrets());
        if let Some(error) = data_tests::error(&results, subject.paths()) {
            self.state.tell_results(results).await?;
            return Err(Error {
                hint: Some("only the tests were run, because nothing else changed".into()),
                ..error
            });
        }
        let ran = !results.is_empty();
        let tests = tests.digest;
        self.state
            .set(&Record {
                tests,
                results,
                ..record
            })
            .await?;
        Ok(ran)
    }

    pub(super) async fn adopt(
        &self,
        plan: Plan,
        known_output: KnownOutput,
    ) -> Result<(Outcome, Option<Record>), Error> {
        let subject = self.subject;
        let (Some(record), Some(orphan)) = (known_output.record, known_output.orphan) else {
            return Ok((Outcome::default(), None));
        };
        let record = Record {
            answered: subject.asked(),
            location: Location::named(plan.table),
            meaning: plan.meaning,
            ..record
        };
        let from = Tag {
            uid: orphan,
            build: record.build.0,
        };
        let to = Tag {
            uid: subject.uid(),
            build: record.build.0,
        };
        let adopted = subject
            .outputs()
            .adopt(from, to, record.encode(), subject.cancel())
            .await;
        if !adopted.map_err(|failure| failure::from_failure(&failure))? {
            return Err(Error::transient(
                "output-missing",
                "the output that was to be adopted is gone",
            ));
        }
        self.state.set(&record).await?;
        Ok((done(Work::Checked), Some(record)))
    }

    pub(super) async fn give_name(
        &self,
        known_output: KnownOutput,
    ) -> Result<(Outcome, Option<Record>), Error> {
        let subject = self.subject;
        known_output::refuse_shared_output(subject).await?;
        let to = subject.table().to_owned();
        let record = known_output.record.map(|record| Record {
            location: Location::named(&to),
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
            uid: subject.uid(),
            to,
            record: encoded,
        };
        match subject.outputs().rename(&rename, subject.cancel()).await {
            Ok(_) => {}
            Err(RenameError::Absent) => return Ok((Outcome::default(), None)),
            Err(error) => return Err(failure::from_rename(&error)),
        }
        if let Some(record) = &record {
            self.state.set(record).await?;
        }
        Ok((done(Work::Renamed), record))
    }

    /// Returns the record with the definition from the engine; none if the engine holds another build.
    async fn whole(&self, record: &Record) -> Result<Option<Record>, Error> {
        let output = known_output::look_up(self.subject).await?;
        let held = output.and_then(|output| Record::decode(&output.record?));
        let held = held.filter(|held| held.tagged == record.tagged);
        Ok(held.map(|held| Record {
            definition: held.definition,
            ..record.clone()
        }))
    }

    pub(in crate::model) async fn rename(&self) -> Result<Outcome, Error> {
        let known_output = known_output::find(self.subject).await?;
        match &known_output.object {
            Some((table, ..)) if known_output.orphan.is_none() && table != self.subject.table() => {
                let (outcome, _) = self.give_name(known_output).await?;
                Ok(outcome)
            }
            _ => Ok(Outcome::default()),
        }
    }

    pub(in crate::model) async fn delete(&self) -> Result<Outcome, Error> {
        let subject = self.subject;
        self.exporter().remove_all_files().await?;
        let found = subject.outputs().find(subject.uid(), subject.cancel()).await;
        let nothing = match found.map_err(|failure| failure::from_failure(&failure))? {
            Lookup::AsLeft => subject
                .context
                .state()
                .is_none_or(|state| Record::from_state(&state.0).is_none()),
            Lookup::Listed(output) => output.is_none(),
        };
        if nothing {
            if failures::are_stored(subject) {
                // Those of a first build that was undone: there is no output to go with.
                failures::store(subject, Vec::new()).await?;
            }
            return Ok(Outcome::default());
        }
        let state = subject.context.state();
        let is_incremental = state.is_some_and(|state| state.0.incremental);
        let guard = match subject.spec().protect.unwrap_or(is_incremental) {
            true => Guard::Held,
            false => Guard::Free,
        };
        let dropped = subject
            .outputs()
            .drop_output(subject.uid(), guard, subject.cancel());
        match dropped.await.map_err(|failure| failure::from_failure(&failure))? {
            Dropped::Done => Ok(done(Work::Dropped)),
            Dropped::Nothing => Ok(Outcome::default()),
            Dropped::NoRoom { needs, room } => Err(failure::held_drop(subject.name(), needs, room)),
        }
    }
}

pub(super) fn done(work: Work) -> Outcome {
    Outcome::from_work(work)
}
