//! A build by partitions: those that are due come into a stage one by one, and are published together.
//!
//! A run that is cut off goes on where it stood: what is staged for the same purpose counts. Rows are published once, with
//! the tests of the whole output, so that readers see all of a run or nothing of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use futures::{StreamExt as _, stream};
use tokio_util::sync::CancellationToken;
use watershed_compilers::{Scope, render_text};
use watershed_core::Error;
use watershed_drivers::objects::Location;
use watershed_drivers::olap::{
    BuildError, Failure, NewColumns, PARTITION_COLUMN, PartitionPhase, PartitionRun, RUN_COLUMN, StageEnd,
    StageStep, quote_identifier, stage_table,
};
use watershed_proto::{IncrementalStrategy, ModelSpec, PartitionCounts};

use super::{Base, Done, Plan, Run, build::Publication, known_output::KnownOutput};
use crate::{
    asking::Asking,
    model::{
        failure, files, hooks, inputs,
        objects::Objects,
        partitions::{self, Grouping, Listed, MAX_PARTITIONS, Notes, Source, Stamped},
        plan::FileNow,
        statement,
        triggers::adds_rows,
    },
    sync::Unpoisoned as _,
};

/// Partitions that may fail one after another before the rest is left for another run.
const MOST_IN_A_ROW: u64 = 20;
/// The most partitions that are built at once.
const MOST_AT_ONCE: usize = 16;
/// A stage of a whole build that is older is not gone on with: its rows would be of another time.
const RESUMED_WITHIN: Duration = Duration::from_secs(24 * 60 * 60);
/// Time between two messages about how far a run is.
const TOLD_EVERY: Duration = Duration::from_millis(500);

/// The partitions of one run.
struct Agenda {
    stage: String,
    due: Vec<Listed>,
    notes: Notes,
    /// Partitions whose rows are in the stage already.
    staged: u64,
}

/// The partitions of a run that failed.
#[derive(Default)]
struct Failures {
    count: u64,
    in_a_row: u64,
    /// Those that were not tried, after too many failures in a row.
    left: u64,
    first: Option<(Error, String)>,
}

impl Run<'_> {
    pub(super) async fn build_partitions(
        &self,
        plan: Plan,
        base: Base,
        known_output: KnownOutput,
    ) -> Result<Done, Error> {
        let started = Instant::now();
        let stands = known_output.object.is_some();
        let spec = self.opened_spec()?;
        let scope = self.scope_of_build(&spec, &base).await?;
        let opened = self.model.outputs.open(self.cancel()).await;
        opened.map_err(|failure| failure::from_failure(&failure))?;
        self.refuse_shared_output().await?;
        let stage = self.stage_name(&plan, &base);
        let agenda = self.agenda(&spec, &scope, stage, &base).await?;
        let (done, failures) = self.stage_all(&spec, &scope, &agenda).await?;
        let staged = agenda.staged + done;
        let whole = matches!(base, Base::Nothing { .. });
        // Good rows are not replaced by fewer; where nothing stands, those of an incremental model count by themselves.
        let publishes = failures.count == 0 || !whole || (!stands && adds_rows(&spec) && staged > 0);
        let error = failures.first.map(|(error, data)| {
            failure::failed_partitions(self.name(), failures.count, &data, &error, publishes)
        });
        if !publishes {
            return Err(error.unwrap_or_else(failure::cancelled));
        }
        let published = Publication {
            sql: self.published_sql(&spec, staged > 0),
            end: StageEnd {
                stage: agenda.stage.clone(),
                whole,
            },
            counts: counts(&agenda, whole, staged, failures.count + failures.left),
            brings: staged > 0,
            started,
        };
        let done = self.publish(plan, base, known_output.orphan, published).await?;
        match error {
            Some(error) => Err(error),
            None => Ok(done),
        }
    }

    /// The name of the stage: what is staged under the same name can be published by this run.
    fn stage_name(&self, plan: &Plan, base: &Base) -> String {
        let mut hasher = blake3::Hasher::new_derive_key("watershed 2026 stage of partitions");
        hasher.update(plan.meaning.version.as_bytes());
        hasher.update(&plan.meaning.digest);
        let purpose = match base {
            Base::Rows(_) => "added",
            Base::Nothing { .. } => {
                for input in &plan.inputs {
                    hasher.update(input.build.0.as_bytes());
                }
                for (name, version) in &plan.made.inputs {
                    hasher.update(name.as_bytes());
                    hasher.update(version);
                }
                let asked = plan.asked;
                hasher.update(&asked.full.to_le_bytes());
                hasher.update(&asked.plain.to_le_bytes());
                "whole"
            }
        };
        format!("{purpose} {}", &hasher.finalize().to_hex()[..16])
    }

    /// Lists the partitions and finds those that are due.
    async fn agenda(
        &self,
        spec: &ModelSpec,
        scope: &Scope,
        stage: String,
        base: &Base,
    ) -> Result<Agenda, Error> {
        let adds = matches!(base, Base::Rows(_));
        let mut listed = self.list(spec, scope).await?;
        let mut notes = self.notes().await?;
        let keys: BTreeSet<&str> = listed.iter().map(|one| one.partition.key.as_str()).collect();
        let oldest = self.context.now().0 - i64::try_from(RESUMED_WITHIN.as_millis()).unwrap_or(i64::MAX);
        // Of another purpose, of another time, or of a partition that is gone.
        let is_stale = |run: &PartitionRun| {
            let is_listed = run.phase != PartitionPhase::Staged || keys.contains(run.partition.key.as_str());
            let is_part = adds || run.at_ms >= oldest && is_listed;
            !(run.stage.is_empty() || run.stage == stage && is_part)
        };
        if notes.by_key.values().any(is_stale) {
            let given_up = self
                .model
                .outputs
                .olap()
                .give_stage_up(self.uid(), self.cancel())
                .await;
            given_up.map_err(|failure| failure::from_failure(&failure))?;
            notes = Notes {
                next: notes.next,
                ..self.notes().await?
            };
        }
        self.let_go(&mut notes, &keys).await?;
        if adds {
            let gone = notes
                .asked()
                .into_iter()
                .filter(|run| !keys.contains(run.partition.key.as_str()));
            let gone: Vec<Listed> = gone.map(partitions::from_note).collect();
            listed.extend(gone);
        }
        let looked_at_ns = files::nanos(SystemTime::now());
        let held = listed.into_iter().map(|one| {
            let run = notes.counting(&one.partition.key, &stage, adds);
            let before = run.map(|run| run.partition.watermark.clone());
            (one, before)
        });
        let held = held.collect();
        let stamped = inputs::blocking(&self.model.root, self.cancel(), move |root| {
            partitions::restamp(root, held, looked_at_ns)
        });
        let due = stamped.await?.into_iter().filter(|one| !one.same);
        let due: Vec<Listed> = due.map(|Stamped { listed, .. }| listed).collect();
        let again: BTreeSet<&str> = due.iter().map(|one| one.partition.key.as_str()).collect();
        let staged = notes
            .by_key
            .iter()
            .filter(|(key, run)| run.phase == PartitionPhase::Staged && !again.contains(key.as_str()));
        Ok(Agenda {
            staged: staged.count() as u64,
            stage,
            due,
            notes,
        })
    }

    /// Notes of failed partitions that they are listed no more, so that nothing is left to be built of them.
    async fn let_go(&self, notes: &mut Notes, listed: &BTreeSet<&str>) -> Result<(), Error> {
        let is_gone = |run: &&mut PartitionRun| {
            run.phase == PartitionPhase::Failed && !listed.contains(run.partition.key.as_str())
        };
        let mut gone = Vec::new();
        for run in notes.by_key.values_mut().filter(is_gone) {
            (run.phase, run.number) = (PartitionPhase::Gone, notes.next);
            notes.next += 1;
            gone.push(run.clone());
        }
        if gone.is_empty() {
            return Ok(());
        }
        let olap = self.model.outputs.olap();
        let noted = olap.note_partitions(self.uid(), gone, self.cancel()).await;
        noted.map_err(|failure| failure::from_failure(&failure))
    }

    async fn notes(&self) -> Result<Notes, Error> {
        let runs = self
            .model
            .outputs
            .olap()
            .partitions(self.uid(), self.cancel())
            .await;
        runs.map(Notes::new)
            .map_err(|failure| failure::from_failure(&failure))
    }

    /// The partitions as they are listed now.
    async fn list(&self, spec: &ModelSpec, scope: &Scope) -> Result<Vec<Listed>, Error> {
        let listed = match Source::from_spec(spec, scope)? {
            Source::Query(sql) => self.list_rows(spec, &sql).await?,
            Source::Files(grouping) => {
                let pattern = grouping.pattern.clone();
                let found = inputs::blocking(&self.model.root, self.cancel(), move |root| {
                    files::look(root, &pattern)
                });
                self.grouped(spec, scope, &grouping, found.await?).await?
            }
            Source::Objects(grouping, connector) => {
                let found = self.look_at_store(&connector, &grouping.pattern).await?;
                self.grouped(spec, scope, &grouping, found).await?
            }
        };
        let listed = partitions::distinct(listed);
        match listed.len() {
            0 => Err(failure::no_partitions()),
            n if n > MAX_PARTITIONS => Err(failure::too_many_partitions(MAX_PARTITIONS)),
            _ => Ok(listed),
        }
    }

    /// The objects that match a pattern, as their store tells them now.
    async fn look_at_store(&self, connector: &str, pattern: &str) -> Result<Vec<FileNow>, Error> {
        if self.model.outputs.sandbox().is_some() {
            return Err(failure::confined_store());
        }
        let location = Location::parse(pattern);
        let driver = location.map(|location| location.driver).unwrap_or_default();
        let access = self.access_of(connector, driver)?;
        let objects = Objects {
            access: Some(access),
            driver,
            addresses: vec![pattern.to_owned()],
            cancel: self.cancel(),
        };
        self.context.progress("asking the store for its objects");
        objects.look().await
    }

    async fn grouped(
        &self,
        spec: &ModelSpec,
        scope: &Scope,
        grouping: &Grouping,
        found: Vec<FileNow>,
    ) -> Result<Vec<Listed>, Error> {
        let groups = grouping.group(found);
        let Some(transform) = &grouping.transform else {
            return Ok(groups);
        };
        let scope = Scope {
            table: grouping.as_query(&groups),
            ..scope.clone()
        };
        let sql = render_text(transform, &scope).map_err(|error| failure::from_render(&error))?;
        self.list_rows(spec, &sql).await
    }

    async fn list_rows(&self, spec: &ModelSpec, sql: &str) -> Result<Vec<Listed>, Error> {
        let asking = Asking {
            outputs: &self.model.outputs,
            cancel: self.cancel(),
        };
        let refused = |error| failure::from_partition_query(&error);
        let columns = asking.describe(sql).await?.map_err(refused)?;
        let limited = format!("SELECT * FROM (\n{sql}\n) LIMIT {}", MAX_PARTITIONS + 1);
        let rows = asking.rows(limited).await?.map_err(refused)?;
        let from_row = |row| {
            let names = columns.iter().map(|(name, _)| name.clone());
            partitions::from_row(names.zip(row).collect(), &spec.partitions_watermark_field)
        };
        Ok(rows.into_iter().map(from_row).collect())
    }

    /// Builds all that is due into the stage. Returns how many came there, and what failed.
    async fn stage_all(
        &self,
        spec: &ModelSpec,
        scope: &Scope,
        agenda: &Agenda,
    ) -> Result<(u64, Failures), Error> {
        let limit = self.time_limit();
        let cancel = self.cancel().child_token();
        let work = self.stage_due(spec, scope, agenda, &cancel);
        tokio::pin!(work);
        tokio::select! {
            biased;
            result = &mut work => result,
            () = tokio::time::sleep(limit) => {
                cancel.cancel();
                match work.await {
                    Err(_) if !self.context.is_cancelled() => Err(failure::timeout(limit.as_secs())),
                    result => result,
                }
            }
        }
    }

    async fn stage_due(
        &self,
        spec: &ModelSpec,
        scope: &Scope,
        agenda: &Agenda,
        cancel: &CancellationToken,
    ) -> Result<(u64, Failures), Error> {
        let output = spec.incremental_output.clone().unwrap_or_default();
        // Others wait for a table that gets columns.
        let at_once = match self.columns() {
            NewColumns::Add => 1,
            NewColumns::Refuse | NewColumns::Leave => spec.partitions_concurrency_limit.max(1) as usize,
        };
        let key = match output.strategy() {
            IncrementalStrategy::Merge if spec.incremental => output.unique_key,
            _ => Vec::new(),
        };
        let stager = Stager {
            run: self,
            spec,
            scope,
            agenda,
            key,
            cancel,
            number: AtomicU64::new(agenda.notes.next),
            told: Mutex::new(None),
        };
        let (mut done, mut failures) = (0, Failures::default());
        let mut due = agenda.due.iter().cloned().enumerate();
        // The first makes the table that the others come into.
        if agenda.staged == 0
            && let Some((index, one)) = due.next()
        {
            done += u64::from(failures.take(stager.stage(index, one).await?));
            if let (true, Some((error, data))) = (agenda.notes.by_key.is_empty(), &failures.first) {
                return Err(failure::first_partition(data, error.clone()));
            }
        }
        let ends = stream::iter(due)
            .map(|(index, one)| stager.stage(index, one))
            .buffer_unordered(at_once.min(MOST_AT_ONCE));
        tokio::pin!(ends);
        while let Some(end) = ends.next().await {
            done += u64::from(failures.take(end?));
            if failures.in_a_row >= MOST_IN_A_ROW {
                break;
            }
        }
        failures.left = (agenda.due.len() as u64).saturating_sub(done + failures.count);
        Ok((done, failures))
    }

    /// The fate of columns that only some partitions have.
    fn columns(&self) -> NewColumns {
        let output = self.spec().incremental_output.as_ref();
        output.map_or(NewColumns::Refuse, |output| {
            super::build::new_columns(output.on_schema_change())
        })
    }

    /// The query of the staged rows. Where partitions have rows in common, those of the later run count.
    fn published_sql(&self, spec: &ModelSpec, staged: bool) -> String {
        if !staged {
            return format!("SELECT * FROM {} LIMIT 0", quote_identifier(self.table()));
        }
        let output = spec.incremental_output.clone().unwrap_or_default();
        let names: Vec<String> = output
            .unique_key
            .iter()
            .map(|name| quote_identifier(name))
            .collect();
        let all = format!(
            "SELECT * EXCLUDE ({PARTITION_COLUMN}, {RUN_COLUMN}) FROM {}",
            stage_table(self.uid())
        );
        match output.strategy() {
            _ if !adds_rows(spec) => all,
            IncrementalStrategy::Merge => format!(
                "{all} QUALIFY row_number() OVER (PARTITION BY {} ORDER BY {RUN_COLUMN} DESC) = 1",
                names.join(", ")
            ),
            IncrementalStrategy::PartitionOverwrite if output.partition_by.is_empty() => {
                format!("SELECT * EXCLUDE ({RUN_COLUMN}) FROM {}", stage_table(self.uid()))
            }
            IncrementalStrategy::PartitionOverwrite => format!(
                "{all} QUALIFY {RUN_COLUMN} = max({RUN_COLUMN}) OVER (PARTITION BY ({}))",
                output.partition_by
            ),
            _ => all,
        }
    }
}

/// Builds partitions into the stage of a run.
struct Stager<'a> {
    run: &'a Run<'a>,
    spec: &'a ModelSpec,
    scope: &'a Scope,
    agenda: &'a Agenda,
    /// Columns of which no two rows of a partition have the same values.
    key: Vec<String>,
    cancel: &'a CancellationToken,
    number: AtomicU64,
    /// The time of the last message about how far the run is.
    told: Mutex<Option<Instant>>,
}

/// The end of one partition's build: an error comes with the data of the partition.
type End = Result<(), (Error, String)>;

impl Stager<'_> {
    /// Builds one partition. What is wrong with it is noted; what is wrong with the engine ends the run.
    async fn stage(&self, index: usize, one: Listed) -> Result<End, Error> {
        self.tell(index);
        let run = self.run;
        let olap = run.model.outputs.olap();
        let note = PartitionRun {
            phase: PartitionPhase::Staged,
            stage: self.agenda.stage.clone(),
            number: self.number.fetch_add(1, Ordering::Relaxed),
            at_ms: run.context.now().0,
            took_ms: 0,
            rows: None,
            error: None,
            partition: one.partition,
        };
        let scope = Scope {
            partition: one.data,
            ..self.scope.clone()
        };
        let sql = match statement::sql_in(self.spec, &scope, run.paths()) {
            Ok(sql) => run.sampled(sql).await,
            Err(error) => Err(error),
        };
        let hooks = hooks::hooks(self.spec, &scope, run.paths());
        let error = match sql.and_then(|sql| Ok((sql, hooks?))) {
            Err(error) => error,
            Ok((sql, hooks)) => {
                let earlier = self.agenda.notes.by_key.get(&note.partition.key);
                let step = StageStep {
                    uid: run.uid(),
                    sql,
                    hooks,
                    columns: run.columns(),
                    key: self.key.clone(),
                    again: earlier.is_some_and(|run| run.phase == PartitionPhase::Staged),
                    note: note.clone(),
                };
                match olap.stage(&step, self.cancel).await {
                    Ok(_) => return Ok(Ok(())),
                    Err(error) => match engine_failure(&error) {
                        Some(failure) => return Err(failure::from_failure(failure)),
                        None => run.placed(&error, &step.sql, &step.hooks),
                    },
                }
            }
        };
        let data = note.partition.data.clone();
        let message = run.model.outputs.secrets().redact(&error.message).into_owned();
        let note = PartitionRun {
            phase: PartitionPhase::Failed,
            error: Some(message),
            ..note
        };
        let noted = olap.note_partitions(run.uid(), vec![note], self.cancel).await;
        noted.map_err(|failure| failure::from_failure(&failure))?;
        Ok(Err((error, data)))
    }

    fn tell(&self, index: usize) {
        let mut told = self.told.lock().unpoisoned();
        if told.is_none_or(|last| last.elapsed() >= TOLD_EVERY) {
            *told = Some(Instant::now());
            let (nth, total) = (index + 1, self.agenda.due.len());
            self.run.context.progress(format!("partition {nth} of {total}"));
        }
    }
}

/// Returns the failure of an engine that no other partition will do better with.
fn engine_failure(error: &BuildError) -> Option<&Failure> {
    match error.build_error() {
        BuildError::Failed(Failure::Sql(_) | Failure::OutOfMemory { .. }) => None,
        BuildError::Failed(failure) => Some(failure),
        _ => None,
    }
}

impl Failures {
    /// Takes note of how a partition ended. Returns whether it came into the stage.
    fn take(&mut self, end: End) -> bool {
        match end {
            Ok(()) => self.in_a_row = 0,
            Err(first) => {
                self.count += 1;
                self.in_a_row += 1;
                self.first.get_or_insert(first);
                return false;
            }
        }
        true
    }
}

/// The partitions of the output once the run is published.
fn counts(agenda: &Agenda, whole: bool, staged: u64, failed: u64) -> PartitionCounts {
    if whole {
        return PartitionCounts { done: staged, failed };
    }
    let known = agenda.notes.by_key.iter();
    let mut keys: BTreeMap<&str, bool> = known
        .filter(|(_, run)| run.phase != PartitionPhase::Gone)
        .map(|(key, run)| (key.as_str(), run.phase != PartitionPhase::Failed))
        .collect();
    for one in &agenda.due {
        keys.insert(&one.partition.key, true);
    }
    let left = keys.values().filter(|good| !**good).count() as u64;
    let failed = failed + left;
    PartitionCounts {
        done: (keys.len() as u64).saturating_sub(failed),
        failed,
    }
}
