//! Partitions in the engine's file: an output's stage, and notes about the runs of its partitions.
//!
//! Notes are appended and the latest of a key counts, so that a step costs the same however many partitions there are.
//! What is superseded is deleted when a stage is published. Notes of a stage that is given up are deleted with it, and
//! those of before count again.

use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use watershed_dialect::{DuckDb, Quoting as _};

use super::columns::Column;
use super::engine::{Engine, Intent};
use super::failure::not_one;
use super::gate::Company;
use super::hooks;
use super::names::Edit;
use super::schema::{self, count};
use super::step::{self, Staged};
use super::sys::{ColumnValue, Param};
use super::transaction::Work;
use crate::crash::around;
use crate::olap::{
    BuildError, Failure, Hooks, PARTITION_COLUMN, Partition, PartitionPhase, PartitionRun, Partitions,
    RUN_COLUMN, StageEnd, StageStep, Value, sole_statement, stage_table,
};

const KNOWN: &str = "SELECT count(*) FROM duckdb_tables() WHERE database_name = current_database() \
    AND schema_name = '_watershed' AND table_name = 'partitions'";

/// The most characters of a stored error.
const LONGEST_ERROR: usize = 2_000;

impl Partitions for Engine {
    fn runs<'a>(
        &'a self,
        uid: Uuid,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<PartitionRun>, Failure>> {
        self.work_to(Intent::Read, cancel, Company::Others, move |work| {
            read_runs(work, uid)
        })
        .boxed()
    }

    fn stage<'a>(
        &'a self,
        steps: &'a [StageStep],
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<PartitionRun>, BuildError>> {
        stage_partitions(self, steps, cancel).boxed()
    }

    fn note<'a>(
        &'a self,
        uid: Uuid,
        notes: Vec<PartitionRun>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        let engine = self.clone();
        self.work(cancel, Company::Others, move |work| {
            work.transaction(around!("stage"), || {
                forget_noted(work, uid, &notes)?;
                unstage_renewed(work, uid, &notes)?;
                write_notes(work, uid, &notes)
            })?;
            engine.parts.names.apply(vec![Edit::Partitioned(uid)]);
            Ok(())
        })
        .boxed()
    }

    fn give_up<'a>(&'a self, uid: Uuid, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<(), Failure>> {
        let engine = self.clone();
        self.work(cancel, Company::Others, move |work| {
            work.transaction(around!("stage"), || {
                work.run(
                    "DELETE FROM _watershed.partitions WHERE uid = ? AND stage <> ''",
                    &[Param::Text(&uid.to_string())],
                )?;
                drop_stage(work, uid)
            })?;
            engine.parts.names.apply(vec![Edit::Unstaged(uid)]);
            Ok(())
        })
        .boxed()
    }
}

/// Returns the latest note of each partition, by number.
fn read_runs(work: &Work<'_>, uid: Uuid) -> Result<Vec<PartitionRun>, Failure> {
    // A file that is read only may be older than the table.
    let known = match work.lake() {
        Some(_) => schema::is_set_up(work)?,
        None => count(&work.run(KNOWN, &[])?) == Some(1),
    };
    if !known {
        return Ok(Vec::new());
    }
    let rows = work.run(
        "SELECT key, data, watermark, phase, stage, number, at_ms, took_ms, row_count, error \
         FROM _watershed.partitions WHERE uid = ? \
         QUALIFY row_number() OVER (PARTITION BY key ORDER BY number DESC) = 1 ORDER BY number",
        &[Param::Text(&uid.to_string())],
    )?;
    Ok(rows.into_iter().filter_map(run_of).collect())
}

/// Deletes the notes of earlier runs. Requests may arrive during a run, so a number alone does not identify a note.
fn forget_noted(work: &Work<'_>, uid: Uuid, notes: &[PartitionRun]) -> Result<(), Failure> {
    let earlier: Vec<String> = notes
        .iter()
        .map(|note| format!("{} {}", note.number, note.partition.key))
        .collect();
    work.run(
        "DELETE FROM _watershed.partitions WHERE uid = ? \
         AND number || ' ' || key IN (SELECT unnest(string_split(?, chr(10))))",
        &[Param::Text(&uid.to_string()), Param::Text(&earlier.join("\n"))],
    )
    .map(drop)
}

/// Deletes the staged rows of partitions that are to be built anew: what an earlier run has staged of them is old by now.
fn unstage_renewed(work: &Work<'_>, uid: Uuid, notes: &[PartitionRun]) -> Result<(), Failure> {
    let is_renewed =
        |note: &&PartitionRun| matches!(note.phase, PartitionPhase::Failed | PartitionPhase::Asked);
    let keys: Vec<&str> = notes
        .iter()
        .filter(is_renewed)
        .map(|note| note.partition.key.as_str())
        .collect();
    if keys.is_empty() || !stands(work, uid)? {
        return Ok(());
    }
    let delete = format!(
        "DELETE FROM {} WHERE {PARTITION_COLUMN} IN (SELECT unnest(string_split(?, chr(10))))",
        stage_table(uid)
    );
    work.run(&delete, &[Param::Text(&keys.join("\n"))]).map(drop)
}

/// Builds partitions into the stage of their output, in one transaction. Returns the notes of the built partitions.
async fn stage_partitions(
    engine: &Engine,
    steps: &[StageStep],
    cancel: &CancellationToken,
) -> Result<Vec<PartitionRun>, BuildError> {
    let hooks = match steps {
        [] => return Ok(Vec::new()),
        [step] => step.hooks.clone(),
        several => {
            debug_assert!(several.iter().all(|step| step.hooks.is_empty()));
            Hooks::default()
        }
    };
    for step in steps {
        sole_statement(&step.sql).map_err(not_one)?;
    }
    let (this, steps) = (engine.clone(), steps.to_vec());
    let turn = engine.parts.gate.turn_of(&hooks, cancel).await?;
    engine
        .work(cancel, Company::Others, move |work| {
            let _turn = turn;
            let done = hooks::around(&this, work, &hooks, || {
                let (notes, edits) = work.transaction(around!("stage"), || stage_all(&this, work, &steps))?;
                this.parts.names.apply(edits);
                Ok(notes)
            });
            if let Err(BuildError::After { build: None, .. }) = &done {
                work.transaction(around!("stage"), || {
                    steps.iter().try_for_each(|step| unstage(work, step))
                })?;
            }
            done
        })
        .await
}

/// Stages partitions in sequence while they are brief, and writes their notes. Returns the notes and the changes of the
/// known schema.
fn stage_all(
    engine: &Engine,
    work: &Work<'_>,
    steps: &[StageStep],
) -> Result<(Vec<PartitionRun>, Vec<Edit>), BuildError> {
    let started = Instant::now();
    let mut notes = Vec::with_capacity(steps.len());
    let Some(StageStep { uid, .. }) = steps.first() else {
        return Ok((notes, Vec::new()));
    };
    let mut known = engine.names().staged(*uid);
    for step in steps {
        let (note, columns) = stage(work, step, known)?;
        known = Some(columns);
        notes.push(note);
        if started.elapsed() >= StageStep::BRIEF {
            break;
        }
    }
    write_notes(work, *uid, &notes)?;
    let staged = known.map(|columns| Edit::Staged(*uid, columns));
    Ok((
        notes,
        staged.into_iter().chain([Edit::Partitioned(*uid)]).collect(),
    ))
}

/// Inserts the rows of a partition into its stage. Returns the note to write, and the columns of the stage.
fn stage(
    work: &Work<'_>,
    step: &StageStep,
    known: Option<Arc<[Column]>>,
) -> Result<(PartitionRun, Arc<[Column]>), BuildError> {
    let started = Instant::now();
    let table = stage_table(step.uid);
    let key = DuckDb.text(&step.note.partition.key);
    let sql = sole_statement(&step.sql).map_err(not_one)?;
    let number = step.note.number;
    let ours = format!("{key} AS {PARTITION_COLUMN}, {number}::UBIGINT AS {RUN_COLUMN}");
    let stands = match known {
        Some(columns) => Some(columns),
        None if stands(work, step.uid)? => Some(step::columns_of_stage(work, &table)?),
        None => None,
    };
    let delete = format!("DELETE FROM {table} WHERE {PARTITION_COLUMN} = {key}");
    let staged = Staged {
        sql,
        ours: &ours,
        stage: &table,
        stands,
        policy: step.columns,
        delete: step.again.then_some(delete),
    };
    let (rows, columns) = step::stage_rows(work, staged)?;
    if !step.key.is_empty() {
        let those = format!("(SELECT * FROM {table} WHERE {RUN_COLUMN} = {number})");
        step::refuse_same_key(work, &step.key, &those)?;
    }
    let note = PartitionRun {
        took_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        rows: Some(rows),
        ..step.note.clone()
    };
    Ok((note, columns))
}

/// Removes the rows and the note of a partition from the stage.
fn unstage(work: &Work<'_>, step: &StageStep) -> Result<(), Failure> {
    let note = &step.note;
    let key = DuckDb.text(&note.partition.key);
    let delete = format!(
        "DELETE FROM {} WHERE {PARTITION_COLUMN} = {key}",
        stage_table(step.uid)
    );
    work.run(&delete, &[])?;
    let forget = format!(
        "DELETE FROM _watershed.partitions WHERE uid = ? AND key = {key} AND number = {}",
        note.number
    );
    work.run(&forget, &[Param::Text(&step.uid.to_string())]).map(drop)
}

fn stands(work: &Work<'_>, uid: Uuid) -> Result<bool, Failure> {
    let table = format!("stage_{}", uid.simple());
    if let Some(lake) = work.lake() {
        let tables = lake.own_tables(work.connection());
        return Ok(tables.map_err(|raw| work.fail(&raw, None))?.contains(&table));
    }
    let rows = work.run(
        "SELECT count(*) FROM duckdb_tables() WHERE database_name = current_database() \
         AND schema_name = '_watershed' AND table_name = ?",
        &[Param::Text(&table)],
    )?;
    Ok(count(&rows) == Some(1))
}

fn drop_stage(work: &Work<'_>, uid: Uuid) -> Result<(), Failure> {
    work.run(&format!("DROP TABLE IF EXISTS {}", stage_table(uid)), &[])
        .map(drop)
}

fn write_notes(work: &Work<'_>, uid: Uuid, notes: &[PartitionRun]) -> Result<(), Failure> {
    let uid = uid.to_string();
    let errors = notes.iter().map(|note| {
        let error = note.error.as_ref();
        error.map(|error| error.chars().take(LONGEST_ERROR).collect::<String>())
    });
    let errors: Vec<Option<String>> = errors.collect();
    let rows = notes.iter().zip(&errors).map(|(note, error)| {
        [
            ColumnValue::Text(&uid),
            ColumnValue::Text(&note.partition.key),
            ColumnValue::Text(&note.partition.data),
            ColumnValue::text(note.partition.watermark.as_deref()),
            ColumnValue::Text(note.phase.as_str()),
            ColumnValue::Text(&note.stage),
            ColumnValue::number(Some(note.number)),
            ColumnValue::Number(note.at_ms),
            ColumnValue::number(Some(note.took_ms)),
            ColumnValue::number(note.rows),
            ColumnValue::text(error.as_deref()),
        ]
    });
    let rows: Vec<_> = rows.collect();
    work.append("partitions", rows.iter().map(<[_; 11]>::as_slice))
}

/// Publishes the notes of a stage whose rows are now in the output, and drops the stage.
pub(super) fn publish(work: &Work<'_>, uid: Uuid, end: &StageEnd) -> Result<(), Failure> {
    let owner = uid.to_string();
    let own = [Param::Text(&owner)];
    let stage = DuckDb.text(&end.stage);
    if end.whole {
        work.run(
            &format!("DELETE FROM _watershed.partitions WHERE uid = ? AND stage <> {stage}"),
            &own,
        )?;
    }
    work.run(
        &format!(
            "UPDATE _watershed.partitions SET stage = '', \
             phase = CASE phase WHEN 'staged' THEN 'done' ELSE phase END WHERE uid = ? AND stage = {stage}"
        ),
        &own,
    )?;
    work.run(
        "DELETE FROM _watershed.partitions WHERE uid = ? AND (key, number) NOT IN \
         (SELECT (key, max(number)) FROM _watershed.partitions WHERE uid = ? GROUP BY key)",
        &[Param::Text(&owner), Param::Text(&owner)],
    )?;
    drop_stage(work, uid)
}

/// Removes the notes and the stage of an owner.
pub(super) fn forget(work: &Work<'_>, uid: Uuid) -> Result<(), Failure> {
    work.run(
        "DELETE FROM _watershed.partitions WHERE uid = ?",
        &[Param::Text(&uid.to_string())],
    )?;
    drop_stage(work, uid)
}

/// Transfers the published notes of an owner to a build that moves to the trash. The stage stays.
pub(super) fn lay_aside(work: &Work<'_>, from: Uuid, build: Uuid) -> Result<(), Failure> {
    let (from, build) = (from.to_string(), build.to_string());
    work.run(
        "UPDATE _watershed.partitions SET uid = ? WHERE uid = ? AND stage = ''",
        &[Param::Text(&build), Param::Text(&from)],
    )
    .map(drop)
}

/// Transfers the notes of an owner to another, except for staged ones.
pub(super) fn give(work: &Work<'_>, from: Uuid, to: Uuid) -> Result<(), Failure> {
    let (old, new) = (from.to_string(), to.to_string());
    work.run(
        "DELETE FROM _watershed.partitions WHERE uid = ? AND stage <> ''",
        &[Param::Text(&old)],
    )?;
    work.run(
        "UPDATE _watershed.partitions SET uid = ? WHERE uid = ?",
        &[Param::Text(&new), Param::Text(&old)],
    )?;
    drop_stage(work, from)
}

fn run_of(row: Vec<Value>) -> Option<PartitionRun> {
    let [
        Value::Text(key),
        Value::Text(data),
        watermark,
        Value::Text(phase),
        Value::Text(stage),
        number,
        at,
        took,
        rows,
        error,
    ] = <[Value; 10]>::try_from(row).ok()?
    else {
        return None;
    };
    let text = |value: Value| match value {
        Value::Text(text) => Some(text),
        _ => None,
    };
    let whole = |value: &Value| match value {
        Value::Integer(value) => Some(*value),
        _ => None,
    };
    let count = |value: &Value| whole(value).and_then(|value| u64::try_from(value).ok());
    Some(PartitionRun {
        partition: Partition {
            key,
            data,
            watermark: text(watermark),
        },
        phase: PartitionPhase::ALL
            .into_iter()
            .find(|known| known.as_str() == phase)?,
        stage,
        number: count(&number)?,
        at_ms: whole(&at).and_then(|at| i64::try_from(at).ok())?,
        took_ms: count(&took)?,
        rows: count(&rows),
        error: text(error),
    })
}
