//! A build by partitions: those that are due come into a stage one by one, and are published together.
//!
//! A run that is cut off goes on where it stood: what is staged for the same purpose counts. Rows are published once, with
//! the tests of the whole output, so that readers see all of a run or nothing of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter, mem,
    time::{Duration, Instant},
};

use futures::{StreamExt as _, stream};
use tokio_util::sync::CancellationToken;
use watershed_compilers::{Dialect, Scope, render_sql};
use watershed_core::Error;
use watershed_dialect::ENGINE;
use watershed_drivers::files::FileNow;
use watershed_drivers::objects::Location;
use watershed_drivers::olap::{
    Common, NewColumns, PartitionPhase, PartitionRun, StageEnd, Statement, Statements as _,
};
use watershed_outputs::Asking;
use watershed_proto::{IncrementalStrategy, ModelSpec, PartitionCounts};
use watershed_resolvers::files::{Grouping, UPDATED_ON};

use super::{
    Base, Done, Plan, Run,
    build::Publication,
    known_output::KnownOutput,
    stager::{Agenda, Failures, Stager},
};
use crate::model::{
    failure, inputs,
    objects::Objects,
    partitions::{self, Listed, MAX_PARTITIONS, Notes, Source, Stamped},
    triggers::adds_rows,
};

/// Partitions that may fail one after another before the rest is left for another run.
const MOST_IN_A_ROW: u64 = 20;
/// The most partitions that are built at once.
const MOST_AT_ONCE: usize = 16;
/// A stage of a whole build that is older is not gone on with: its rows would be of another time.
const RESUMED_WITHIN: Duration = Duration::from_secs(24 * 60 * 60);

impl Run<'_> {
    pub(super) async fn build_partitions(
        &self,
        mut plan: Plan,
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
        let files = mem::take(&mut plan.partition_files);
        let listed = self.list(&spec, &scope, files).await?;
        // Where rows are added to, nothing new is no mistake of the author.
        if listed.is_empty() && !matches!(base, Base::Rows(_)) {
            return Err(failure::no_partitions());
        }
        let agenda = self.agenda(&plan, listed, stage, &base).await?;
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

    /// Finds the partitions that are due.
    async fn agenda(
        &self,
        plan: &Plan,
        mut listed: Vec<Listed>,
        stage: String,
        base: &Base,
    ) -> Result<Agenda, Error> {
        let adds = matches!(base, Base::Rows(_));
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
        let looked_at_ns = plan.looked_at_ns;
        let held = listed.into_iter().map(|one| {
            let run = notes.counting(&one.partition.key, &stage, adds);
            let before = run.map(|run| run.partition.watermark.clone());
            (one, before)
        });
        let held = held.collect();
        let stamped = inputs::blocking(&self.model.root, self.cancel(), move |root| {
            partitions::restamp(root, held, looked_at_ns)
        });
        let (same, due): (Vec<Stamped>, Vec<Stamped>) = stamped.await?.into_iter().partition(|one| one.same);
        self.settle(&notes, same).await?;
        let due: Vec<Listed> = due.into_iter().map(|one| one.listed).collect();
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

    /// Notes the new watermarks of partitions that are the ones of before: files that had just been written when they were hashed, or
    /// that were merely touched, are not hashed again by the next run.
    async fn settle(&self, notes: &Notes, same: Vec<Stamped>) -> Result<(), Error> {
        let settled = same.into_iter().filter_map(|Stamped { listed, .. }| {
            let run = notes.by_key.get(&listed.partition.key)?;
            let is_new = run.partition.watermark != listed.partition.watermark;
            (run.phase == PartitionPhase::Done && is_new).then(|| PartitionRun {
                partition: listed.partition,
                ..run.clone()
            })
        });
        self.note(settled.collect()).await
    }

    async fn note(&self, notes: Vec<PartitionRun>) -> Result<(), Error> {
        if notes.is_empty() {
            return Ok(());
        }
        let olap = self.model.outputs.olap();
        let noted = olap.note_partitions(self.uid(), notes, self.cancel()).await;
        noted.map_err(|failure| failure::from_failure(&failure))
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
        self.note(gone).await
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

    /// The partitions as they are listed now, and local files as they were found: the record is of those.
    async fn list(&self, spec: &ModelSpec, scope: &Scope, files: Vec<FileNow>) -> Result<Vec<Listed>, Error> {
        let listed = match Source::from_spec(spec, scope)? {
            Source::Query(sql) => self.list_rows(spec, &sql).await?,
            Source::Files(grouping) => self.grouped(spec, scope, &grouping, files).await?,
            Source::Objects(grouping, connector) => {
                let found = self.look_at_store(&connector, &grouping.pattern).await?;
                self.grouped(spec, scope, &grouping, found).await?
            }
        };
        let listed = partitions::distinct(listed);
        match listed.len() > MAX_PARTITIONS {
            true => Err(failure::too_many_partitions(MAX_PARTITIONS)),
            false => Ok(listed),
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
            return Ok(groups.into_iter().map(Listed::from).collect());
        };
        let scope = Scope {
            table: grouping.as_query(&groups),
            ..scope.clone()
        };
        let sql =
            render_sql(transform, &scope, Dialect::Engine).map_err(|error| failure::from_render(&error))?;
        let rows = self.list_rows(spec, &sql).await?;
        Ok(match spec.partitions_watermark_field == UPDATED_ON {
            true => partitions::with_files(rows, groups),
            false => rows,
        })
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
        let stager = Stager::new(self, spec, scope, agenda, key, cancel);
        let (mut done, mut failures) = (0, Failures::default());
        let mut due = agenda.due.iter().cloned().enumerate();
        // The first makes the table that the others come into.
        if agenda.staged == 0
            && let Some(first) = due.next()
        {
            for end in stager.stage(vec![first]).await? {
                done += u64::from(failures.take(end));
            }
            if let (true, Some((error, data))) = (agenda.notes.by_key.is_empty(), &failures.first) {
                return Err(failure::first_partition(data, error.clone()));
            }
        }
        let batches = iter::from_fn(|| stager.next_batch(&mut due));
        let ends = stream::iter(batches)
            .map(|batch| stager.stage(batch))
            .buffer_unordered(at_once.min(MOST_AT_ONCE));
        tokio::pin!(ends);
        while let Some(batch) = ends.next().await {
            for end in batch? {
                done += u64::from(failures.take(end));
            }
            if failures.in_a_row >= MOST_IN_A_ROW {
                break;
            }
        }
        failures.left = (agenda.due.len() as u64).saturating_sub(done + failures.count);
        Ok((done, failures))
    }

    /// The fate of columns that only some partitions have.
    pub(super) fn columns(&self) -> NewColumns {
        let output = self.spec().incremental_output.as_ref();
        output.map_or(NewColumns::Refuse, |output| {
            super::build::new_columns(output.on_schema_change())
        })
    }

    /// The query of the staged rows. Where partitions have rows in common, those of the later run count.
    fn published_sql(&self, spec: &ModelSpec, staged: bool) -> String {
        if !staged {
            return ENGINE.write(&Statement::Empty(self.table()));
        }
        let output = spec.incremental_output.clone().unwrap_or_default();
        let common = match output.strategy() {
            _ if !adds_rows(spec) => Common::None,
            IncrementalStrategy::Merge => Common::Key(&output.unique_key),
            IncrementalStrategy::PartitionOverwrite if output.partition_by.is_empty() => Common::ByPartition,
            IncrementalStrategy::PartitionOverwrite => Common::Expressions(&output.partition_by),
            _ => Common::None,
        };
        let uid = self.uid();
        ENGINE.write(&Statement::Staged { uid, common })
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
