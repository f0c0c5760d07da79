//! A build: the rendered statement, sent to the engine with its tests, state query and record.

use std::time::{Duration, Instant};

use uuid::Uuid;
use watershed_core::{Error, Work};
use watershed_drivers::files::FileNow;
use watershed_drivers::olap::{
    Build, BuildError, Built, Failure, Fate, Hooks, Location, Over, StageEnd, StateQuery, Step, Tag,
};
use watershed_proto::{IncrementalStrategy, Message, PartitionCounts, TestResult};

use super::{
    Base, Done, Run, act::done, databases, decoded, dialect, doubts, errors, failures, fetched, kind,
    known_output, statements, subject::new_columns, wanted::Plan,
};
use crate::model::{
    columns::Columns,
    contents::Reading,
    data_tests::{self, Tests},
    failure, hooks, inputs,
    record::{BuildId, Record, Shape, columns_of_view},
    schedule, source, state, statement,
    triggers::adds_rows,
};

/// The staged partitions that a build publishes.
pub(super) struct Publication {
    /// The query of the staged rows.
    pub(super) sql: String,
    pub(super) end: StageEnd,
    pub(super) counts: PartitionCounts,
    /// True if there are staged rows, or partitions that lost all rows.
    pub(super) brings: bool,
    pub(super) started: Instant,
}

impl Run<'_> {
    pub(super) async fn build(&self, plan: Plan, base: Base, orphan: Option<Uuid>) -> Result<Done, Error> {
        self.build_from(plan, base, orphan, None).await
    }

    /// Builds the output from staged partitions.
    pub(super) async fn publish(
        &self,
        plan: Plan,
        base: Base,
        orphan: Option<Uuid>,
        staged: Publication,
    ) -> Result<Done, Error> {
        self.build_from(plan, base, orphan, Some(staged)).await
    }

    async fn build_from(
        &self,
        plan: Plan,
        base: Base,
        orphan: Option<Uuid>,
        staged: Option<Publication>,
    ) -> Result<Done, Error> {
        let subject = self.subject;
        let spec = subject.opened_spec()?;
        let now = subject.context.now();
        let scope = statements::scope_of_build(subject, &spec, &base).await?;
        let databases = databases::databases(subject, &spec).await?;
        let reading = Reading::from_spec(&spec, &scope);
        let fetched = match &staged {
            Some(_) => None,
            None => fetched::fetch(subject, &spec, &scope).await?,
        };
        let found = fetched.as_ref().map_or(&plan.files, |fetched| &fetched.files);
        if let (Some(reading), None) = (reading, &staged) {
            self.refuse_contents(reading, found.iter().chain(&plan.others).cloned().collect())
                .await?;
        }
        let decoded = match &staged {
            Some(_) => None,
            None => decoded::decode(subject, &spec, &scope, found).await?,
        };
        let found = decoded.as_ref().map_or(found, |decoded| &decoded.written.files);
        let of_files = match &decoded {
            Some(decoded) => Some(decoded.reading(&spec)),
            None => fetched.as_ref().map(|fetched| fetched.reading(&spec)),
        };
        let read_by = of_files.as_ref().unwrap_or(&spec);
        let sql = match &staged {
            Some(staged) => staged.sql.clone(),
            None => {
                let read: Vec<&str> = found.iter().map(|file| file.path.as_str()).collect();
                let told = dialect::with_dialect(subject, read_by.clone(), &scope, &read).await?;
                statements::sampled(subject, statement::sql_in(&told, &scope, subject.paths())?).await?
            }
        };
        // Those of partitions were run with each of them.
        let hooks = match &staged {
            Some(_) => Hooks::default(),
            None => hooks::hooks(&spec, &scope, subject.paths())?,
        };
        let order_by = match plan.shape {
            Shape::Table => hooks::order_by(&spec, &scope, subject.paths())?,
            Shape::View => None,
        };
        let (tests, state) = (subject.tests()?, state::query(&spec, &scope)?);
        // Outside of the time that a build may take.
        let opened = subject.outputs().open(subject.cancel()).await;
        opened.map_err(|failure| failure::from_failure(&failure))?;
        known_output::refuse_shared_output(subject).await?;
        let started = staged.as_ref().map_or_else(Instant::now, |staged| staged.started);
        let files = inputs::hashed(
            &subject.model.root,
            plan.files,
            plan.looked_at_ns,
            subject.cancel(),
        )
        .await?;
        let guessed = match &staged {
            Some(_) => Vec::new(),
            None => {
                doubts::guessed_columns(
                    subject,
                    &spec,
                    &scope,
                    Record::from_state(&self.state.so_far()).as_ref(),
                )
                .await
            }
        };
        let id = match (&base, plan.shape) {
            (Base::Rows(_), _) | (_, Shape::Table) => BuildId::fresh(),
            (Base::Nothing { kept, .. }, Shape::View) => kept.unwrap_or_else(|| {
                BuildId::for_view(&plan.meaning, &plan.inputs, &files, &plan.made, plan.asked)
            }),
        };
        let columns = match plan.shape {
            Shape::View => columns_of_view(&plan.meaning, &plan.inputs, &files, &plan.made),
            // The engine says so.
            Shape::Table => None,
        };
        let record = Record {
            build: id,
            tagged: id,
            columns,
            location: Location::named(plan.table),
            shape: plan.shape,
            meaning: plan.meaning,
            definition: subject.spec().encode_to_vec(),
            inputs: plan.inputs,
            files,
            made: plan.made,
            answered: plan.asked,
            approvals: plan.approvals,
            tests: tests.digest.clone(),
            results: Vec::new(),
            rows: None,
            built_at_ms: now.0,
            took_ms: 0,
            total_ms: base.total_ms(),
            incremental: adds_rows(&spec),
            steps: base.steps(),
            partitions: staged.as_ref().map(|staged| staged.counts),
            unfinished: !hooks.after.is_empty(),
            stale_input: plan.failed.is_some(),
            asked_at_ms: 0,
            schedule: schedule::fingerprint(subject.spec().refresh_schedule.as_ref()),
            counts_from_ms: 0,
            state: None,
        };
        let reads = source::form(&spec, &scope).filter(|_| spec.sql.is_none() && staged.is_none());
        let names_columns = reading.is_some_and(Reading::names_columns);
        let mut build = Build {
            reads: reads.filter(|_| !names_columns),
            order_by,
            hooks,
            databases,
            ..self.build_of(&base, &record, (sql, state), &tests)
        };
        if let Some(staged) = staged {
            staged.put_into(&mut build);
        }
        // Without the time that it waits for others.
        let before_ms = millis(started.elapsed());
        let built = self.build_in_engine(&build, record, &tests).await;
        let (record, results) = built.map_err(|error| match &decoded {
            Some(decoded) => decoded.renamed(error),
            None => error,
        })?;
        let took_ms = before_ms.saturating_add(record.took_ms);
        let record = self.finish(record).await?;
        let brought = record.build == id;
        // The engine can't look at objects of a confined project again.
        if brought && build.stage.is_none() && fetched.is_none() && decoded.is_none() {
            doubts::tell_doubts(subject, &spec, &scope, &build.name, &record.files).await;
        }
        if brought {
            doubts::tell_changed_guesses(subject, reads, &build.name, &guessed).await;
        }
        let files = inputs::confirmed(&subject.model.root, record.files, subject.cancel()).await;
        self.state
            .set(&Record {
                results,
                files,
                took_ms,
                total_ms: record.total_ms.saturating_add(took_ms),
                ..record
            })
            .await?;
        subject.outputs().forget_approval(subject.uid());
        if let Some(orphan) = orphan {
            known_output::drop_orphan(subject, orphan).await?;
        }
        let work = if brought { Work::Built } else { Work::Checked };
        Ok(Done::at(now, done(work)))
    }

    /// Returns an error for files that must not be read, before the engine reads them.
    async fn refuse_contents(&self, reading: Reading, files: Vec<FileNow>) -> Result<(), Error> {
        let subject = self.subject;
        if files.is_empty() {
            return Ok(());
        }
        let last = Record::from_state(&self.state.so_far());
        inputs::blocking(&subject.model.root, subject.cancel(), move |root| {
            reading.refuse(root, &files, last.as_ref())
        })
        .await
        .map_err(|error| Error {
            place: dialect::place_of_encoding(subject, &error, "").or_else(|| error.place.clone()),
            ..error
        })
    }

    /// Records in the engine that the statements after a build have run.
    async fn finish(&self, record: Record) -> Result<Record, Error> {
        let subject = self.subject;
        if !record.unfinished {
            return Ok(record);
        }
        let record = Record {
            unfinished: false,
            ..record
        };
        let tag = Tag {
            uid: subject.uid(),
            build: record.build.0,
        };
        let outputs = subject.outputs();
        let noted = outputs.note(tag, record.encode(), subject.cancel()).await;
        match noted.map_err(|failure| failure::from_failure(&failure))? {
            true => Ok(record),
            false => Err(Error::transient("output-missing", "the output is gone")),
        }
    }

    /// Stores the state of an output whose statements after the build failed, as the engine's record has it.
    async fn tell_unfinished(&self) -> Result<(), Error> {
        let output = known_output::look_up(self.subject).await?;
        let record = output.and_then(|output| {
            let record = Record::decode(output.record.as_deref()?)?;
            Some(Record {
                rows: output.rows,
                ..record
            })
        });
        match record {
            Some(record) => self.state.set(&record).await,
            None => Ok(()),
        }
    }

    /// Returns the build to request from the engine.
    fn build_of(
        &self,
        base: &Base,
        record: &Record,
        (sql, state): (String, Option<StateQuery>),
        tests: &Tests,
    ) -> Build {
        let output = self.subject.spec().incremental_output.clone().unwrap_or_default();
        let strategy = output.strategy();
        let key = match strategy {
            IncrementalStrategy::Merge => output.unique_key.clone(),
            _ => Vec::new(),
        };
        let onto = match base {
            Base::Rows(onto) if strategy != IncrementalStrategy::Overwrite => Some(onto),
            _ => None,
        };
        let columns = new_columns(output.on_schema_change());
        let over = match strategy {
            IncrementalStrategy::Merge => Over::SameKey,
            // Without an expression they go by the partitions of the model.
            IncrementalStrategy::PartitionOverwrite if output.partition_by.is_empty() => Over::Partitions,
            IncrementalStrategy::PartitionOverwrite => Over::SameValue(output.partition_by),
            _ => Over::Nothing,
        };
        // Without new rows the build of before stands, looked at again.
        let unless_rows = onto.map(|onto| {
            let same = Record {
                build: onto.build,
                tagged: onto.tagged,
                steps: onto.steps,
                ..record.clone()
            };
            (onto.build.0, same.encode())
        });
        Build {
            name: record.location.name.clone(),
            kind: kind(record.shape),
            sql,
            order_by: None,
            hooks: Hooks::default(),
            databases: Vec::new(),
            step: match onto {
                Some(_) => Step::Into { over, columns },
                None => Step::Replace,
            },
            took: self.last_took(),
            key,
            checks: tests.checks.clone(),
            state,
            tag: Tag {
                uid: self.subject.uid(),
                build: record.build.0,
            },
            record: record.encode(),
            replaced: match base {
                Base::Nothing { replaced, .. } => *replaced,
                Base::Rows(_) => Fate::Gone,
            },
            stage: None,
            unless_rows,
            put_columns: self.may_tell_columns(record).then_some(Columns::put),
            reads: None,
        }
    }

    /// Returns true if the engine may be asked for the columns of an output. For a new view, or one over files, that
    /// would read its inputs again.
    fn may_tell_columns(&self, record: &Record) -> bool {
        let over_models = record.files.is_empty() && !record.inputs.is_empty();
        let was_view = |known: Record| known.shape == Shape::View;
        record.shape == Shape::Table
            || over_models && Record::from_state(&self.state.so_far()).is_some_and(was_view)
    }

    /// Returns the duration of the last build; none if there was none.
    fn last_took(&self) -> Option<Duration> {
        let record = Record::from_state(&self.state.so_far());
        record.map(|record| Duration::from_millis(record.took_ms))
    }

    /// Sends a build to the engine, within the time limit.
    pub(super) async fn send(&self, build: &Build) -> Result<Built, BuildError> {
        let subject = self.subject;
        let work = |cancel| async move { subject.outputs().build(build, &cancel).await };
        subject.within_limit(work).await.0
    }

    /// Runs a build, and returns the record of the resulting output and the test results.
    async fn build_in_engine(
        &self,
        build: &Build,
        asked: Record,
        tests: &Tests,
    ) -> Result<(Record, Vec<TestResult>), Error> {
        let subject = self.subject;
        let secrets = subject.outputs().secrets();
        match self.send(build).await {
            Ok(built) => {
                // What it asked for may have been written otherwise: with the state, or under the build of before.
                let record = Record::decode(&built.record).unwrap_or(asked);
                let record = Record {
                    rows: built.rows,
                    took_ms: millis(built.took),
                    ..record
                };
                failures::keep(subject, tests, &built.verdicts).await?;
                Ok((record, tests.results(&built.verdicts, secrets)))
            }
            Err(BuildError::Failed(Failure::Interrupted)) if !subject.context.is_cancelled() => {
                Err(failure::timeout(subject.time_limit().as_secs()))
            }
            Err(error) => {
                if let BuildError::After { build: None, .. } = &error {
                    self.tell_unfinished().await?;
                }
                let BuildError::Undone(verdicts) = error.build_error() else {
                    return Err(errors::placed(subject, &error, &build.sql, &build.hooks));
                };
                failures::keep(subject, tests, verdicts).await?;
                let results = tests.results(verdicts, secrets);
                let undone = data_tests::error(&results, subject.paths());
                self.state.tell_results(results).await?;
                let undone = undone.unwrap_or_else(|| failure::from_build(&error).0);
                Err(match &error {
                    BuildError::After { hook, .. } => hooks::joined(undone, hook),
                    _ => undone,
                })
            }
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Publication {
    /// Makes a build take its rows from the stage.
    fn put_into(self, build: &mut Build) {
        if self.brings {
            build.unless_rows = None;
        }
        build.stage = Some(self.end);
    }
}

impl Base {
    fn total_ms(&self) -> u64 {
        match self {
            Self::Nothing { .. } => 0,
            Self::Rows(onto) => onto.total_ms,
        }
    }

    fn steps(&self) -> u64 {
        match self {
            Self::Nothing { .. } => 0,
            Self::Rows(onto) => onto.steps.saturating_add(1),
        }
    }
}
