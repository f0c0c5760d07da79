//! A build: the statement as its templates say it now, sent to the engine with its tests, its state and its record.

use std::time::{Duration, Instant};

use uuid::Uuid;
use watershed_compilers::Scope;
use watershed_core::{Error, Work};
use watershed_drivers::files::FileNow;
use watershed_drivers::olap::{
    Build, BuildError, Built, Failure, Fate, Guard, Hooks, NewColumns, Over, SqlError, StageEnd, StateQuery,
    Step, Tag,
};
use watershed_outputs::Asking;
use watershed_proto::{
    IncrementalStrategy, MapValue, Message, ModelSpec, OnSchemaChange, PartitionCounts, TestResult,
};

use super::{Base, Done, Plan, Run, act::done, kind};
use crate::model::{
    columns::Columns,
    contents::Reading,
    data_tests::{self, Tests},
    failure, hooks, inputs,
    record::{BuildId, Record, Shape, columns_of_view},
    sample::Sample,
    schedule, source, state, statement,
    triggers::adds_rows,
};

/// The longest that a build may take when its spec does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(3 * 60 * 60);

/// Staged partitions that a build publishes.
pub(super) struct Publication {
    /// The query of the staged rows.
    pub(super) sql: String,
    pub(super) end: StageEnd,
    pub(super) counts: PartitionCounts,
    /// There are staged rows, or partitions that have none any more.
    pub(super) brings: bool,
    pub(super) started: Instant,
}

impl Run<'_> {
    /// Drops the output of a lost catalog that another one has taken the place of.
    pub(super) async fn drop_orphan(&self, orphan: Uuid) -> Result<(), Error> {
        let outputs = &self.model.outputs;
        let dropped = outputs.drop_output(orphan, Guard::Free, self.cancel()).await;
        dropped
            .map(drop)
            .map_err(|failure| failure::from_failure(&failure))
    }

    pub(super) async fn build(&self, plan: Plan, base: Base, orphan: Option<Uuid>) -> Result<Done, Error> {
        self.build_from(plan, base, orphan, None).await
    }

    /// Builds from partitions that are staged.
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
        let spec = self.opened_spec()?;
        let now = self.context.now();
        let scope = self.scope_of_build(&spec, &base).await?;
        let databases = self.databases(&spec)?;
        let reading = Reading::from_spec(&spec, &scope);
        if let (Some(reading), None) = (reading, &staged) {
            self.refuse_contents(reading, &plan).await?;
        }
        let sql = match &staged {
            Some(staged) => staged.sql.clone(),
            None => {
                let read: Vec<&str> = plan.files.iter().map(|file| file.path.as_str()).collect();
                let told = self.with_dialect(spec.clone(), &scope, &read).await?;
                self.sampled(statement::sql_in(&told, &scope, self.paths())?)
                    .await?
            }
        };
        // Those of partitions were run with each of them.
        let hooks = match &staged {
            Some(_) => Hooks::default(),
            None => hooks::hooks(&spec, &scope, self.paths())?,
        };
        let order_by = match plan.shape {
            Shape::Table => hooks::order_by(&spec, &scope, self.paths())?,
            Shape::View => None,
        };
        let (tests, state) = (self.tests()?, state::query(&spec, &scope)?);
        // Outside of the time that a build may take.
        let opened = self.model.outputs.open(self.cancel()).await;
        opened.map_err(|failure| failure::from_failure(&failure))?;
        self.refuse_shared_output().await?;
        let started = staged.as_ref().map_or_else(Instant::now, |staged| staged.started);
        let files = inputs::hashed(&self.model.root, plan.files, plan.looked_at_ns, self.cancel()).await?;
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
            table: plan.table,
            shape: plan.shape,
            meaning: plan.meaning,
            definition: self.spec().encode_to_vec(),
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
            schedule: schedule::fingerprint(self.spec().refresh_schedule.as_ref()),
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
        let (record, results) = self.build_in_engine(&build, record, &tests).await?;
        let took_ms = before_ms.saturating_add(record.took_ms);
        let record = self.finish(record).await?;
        let brought = record.build == id;
        if brought && build.stage.is_none() {
            self.tell_doubts(&spec, &scope, &build.name, &record.files).await;
        }
        let files = inputs::confirmed(&self.model.root, record.files, self.cancel()).await;
        self.set_state(&Record {
            results,
            files,
            took_ms,
            total_ms: record.total_ms.saturating_add(took_ms),
            ..record
        })
        .await?;
        self.model.outputs.forget_approval(self.uid());
        if let Some(orphan) = orphan {
            self.drop_orphan(orphan).await?;
        }
        let work = if brought { Work::Built } else { Work::Checked };
        Ok(Done::at(now, done(work)))
    }

    /// Refuses files from which no rows are to be made, before the engine reads them.
    async fn refuse_contents(&self, reading: Reading, plan: &Plan) -> Result<(), Error> {
        let files: Vec<FileNow> = plan.files.iter().chain(&plan.others).cloned().collect();
        if files.is_empty() {
            return Ok(());
        }
        let last = Record::from_state(&self.state_so_far());
        inputs::blocking(&self.model.root, self.cancel(), move |root| {
            reading.refuse(root, &files, last.as_ref())
        })
        .await
        .map_err(|error| Error {
            place: self.place_of_encoding(&error, "").or_else(|| error.place.clone()),
            ..error
        })
    }

    /// Notes in the engine that the statements after a build were run too.
    async fn finish(&self, record: Record) -> Result<Record, Error> {
        if !record.unfinished {
            return Ok(record);
        }
        let record = Record {
            unfinished: false,
            ..record
        };
        let tag = Tag {
            uid: self.uid(),
            build: record.build.0,
        };
        let outputs = &self.model.outputs;
        let noted = outputs.note(tag, record.encode(), self.cancel()).await;
        match noted.map_err(|failure| failure::from_failure(&failure))? {
            true => Ok(record),
            false => Err(Error::transient("output-missing", "the output is gone")),
        }
    }

    /// Writes the state of an output whose last statements failed as the engine's record has it.
    async fn tell_unfinished(&self) -> Result<(), Error> {
        let output = self.look_up().await?;
        let record = output.and_then(|output| {
            let record = Record::decode(output.record.as_deref()?)?;
            Some(Record {
                rows: output.rows,
                ..record
            })
        });
        match record {
            Some(record) => self.set_state(&record).await,
            None => Ok(()),
        }
    }

    /// Returns the values that the templates of a build see.
    pub(super) async fn scope_of_build(&self, spec: &ModelSpec, base: &Base) -> Result<Scope, Error> {
        let mut scope = statement::scope(spec.variables.clone(), self.name(), &self.model.environment);
        let Base::Rows(onto) = base else {
            return Ok(scope);
        };
        scope.incremental = true;
        let state = match &onto.state {
            Some(state) => Some(state.clone()),
            None => self.state_now(spec, &scope).await?,
        };
        scope.state = state.unwrap_or_default().fields;
        Ok(scope)
    }

    /// The state as its query has it now: no build has left one, for there was no such query then.
    async fn state_now(&self, spec: &ModelSpec, scope: &Scope) -> Result<Option<MapValue>, Error> {
        if state::asks_input(spec) {
            return self.state_of_database().await;
        }
        let Some(StateQuery { sql, .. }) = state::query(spec, scope)? else {
            return Ok(None);
        };
        let asking = Asking {
            outputs: &self.model.outputs,
            cancel: self.cancel(),
        };
        let refused = |error: SqlError| failure::from_build(&BuildError::State(error)).0;
        let columns = asking.describe(&sql).await?.map_err(refused)?;
        let rows = asking.rows(sql).await?.map_err(refused)?;
        let names = columns.into_iter().map(|(name, _)| name);
        Ok(rows
            .into_iter()
            .next()
            .map(|row| state::map(names.zip(row).collect())))
    }

    /// Returns the statement for the part of the rows that a sample has, where there is one to be taken.
    pub(super) async fn sampled(&self, sql: String) -> Result<String, Error> {
        let Some(sample) = self.model.sample.filter(|_| Sample::is_of(self.spec())) else {
            return Ok(sql);
        };
        let asking = Asking {
            outputs: &self.model.outputs,
            cancel: self.cancel(),
        };
        // What can't be described is told by the build, at its place; what another database yields is not there yet.
        let columns = asking.describe(&sql).await?;
        Ok(columns.map_or_else(|_| sql.clone(), |columns| sample.limited(&sql, &columns)))
    }

    /// Returns the build that the engine is asked for.
    fn build_of(
        &self,
        base: &Base,
        record: &Record,
        (sql, state): (String, Option<StateQuery>),
        tests: &Tests,
    ) -> Build {
        let output = self.spec().incremental_output.clone().unwrap_or_default();
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
            name: record.table.clone(),
            kind: kind(record.shape),
            sql,
            order_by: None,
            hooks: Hooks::default(),
            databases: Vec::new(),
            step: match onto {
                Some(_) => Step::Into { over, columns },
                None => Step::Replace,
            },
            is_brief: self.is_brief(),
            key,
            checks: tests.checks.clone(),
            state,
            tag: Tag {
                uid: self.uid(),
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

    /// Returns whether the engine is to say which columns an output has. For a view it looks at whatever that reads once more. So
    /// what they follow from has to do for one that is new, which nothing is known to fit, and for one over files.
    fn may_tell_columns(&self, record: &Record) -> bool {
        let over_models = record.files.is_empty() && !record.inputs.is_empty();
        let was_view = |known: Record| known.shape == Shape::View;
        record.shape == Shape::Table
            || over_models && Record::from_state(&self.state_so_far()).is_some_and(was_view)
    }

    /// Returns true unless the last build is known to have taken long.
    fn is_brief(&self) -> bool {
        let record = Record::from_state(&self.state_so_far());
        record.is_none_or(|record| Duration::from_millis(record.took_ms) <= Build::BRIEF)
    }

    /// Returns the longest that the engine may take for the statements of the model.
    pub(super) fn time_limit(&self) -> Duration {
        match self.spec().timeout_seconds {
            0 => DEFAULT_TIMEOUT,
            seconds => Duration::from_secs(seconds.into()),
        }
    }

    /// Has the engine carry out a build, within the time that it may take.
    pub(super) async fn send(&self, build: &Build) -> Result<Built, BuildError> {
        let cancel = self.cancel().child_token();
        let work = self.model.outputs.build(build, &cancel);
        tokio::pin!(work);
        tokio::select! {
            biased;
            result = &mut work => result,
            () = tokio::time::sleep(self.time_limit()) => {
                cancel.cancel();
                work.await
            }
        }
    }

    /// The record of what stands there now, and what the tests came to.
    async fn build_in_engine(
        &self,
        build: &Build,
        asked: Record,
        tests: &Tests,
    ) -> Result<(Record, Vec<TestResult>), Error> {
        let secrets = self.model.outputs.secrets();
        match self.send(build).await {
            Ok(built) => {
                // What it asked for may have been written otherwise: with the state, or under the build of before.
                let record = Record::decode(&built.record).unwrap_or(asked);
                let record = Record {
                    rows: built.rows,
                    took_ms: millis(built.took),
                    ..record
                };
                self.keep_failures(tests, &built.verdicts).await;
                Ok((record, tests.results(&built.verdicts, secrets)))
            }
            Err(BuildError::Failed(Failure::Interrupted)) if !self.context.is_cancelled() => {
                Err(failure::timeout(self.time_limit().as_secs()))
            }
            Err(error) => {
                if let BuildError::After { build: None, .. } = &error {
                    self.tell_unfinished().await?;
                }
                let BuildError::Undone(verdicts) = error.build_error() else {
                    return Err(self.placed(&error, &build.sql, &build.hooks));
                };
                self.keep_failures(tests, verdicts).await;
                let results = tests.results(verdicts, secrets);
                let undone = data_tests::error(&results, self.paths());
                self.tell_results(results).await?;
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

/// Returns what the engine is to do with columns that the table does not have.
pub(super) fn new_columns(said: OnSchemaChange) -> NewColumns {
    match said {
        OnSchemaChange::Fail => NewColumns::Refuse,
        OnSchemaChange::Ignore => NewColumns::Leave,
        OnSchemaChange::AppendNewColumns => NewColumns::Add,
    }
}

impl Publication {
    /// Has a build take its rows from the stage.
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
