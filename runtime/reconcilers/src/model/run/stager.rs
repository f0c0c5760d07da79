//! Partitions on their way into the stage of a run: small ones share a transaction, and one that fails there is built
//! again by itself.

use std::sync::{
    Mutex,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use watershed_compilers::{Scope, sql::with_literal_paths};
use watershed_core::Error;
use watershed_drivers::files;
use watershed_drivers::olap::{
    BuildError, Failure, Hooks, NewColumns, PartitionPhase, PartitionRun, StageStep,
};
use watershed_proto::ModelSpec;

use super::{agenda::Agenda, dialect, errors, statements, subject::Subject};
use crate::model::{contents::Reading, failure, hooks, inputs, partitions::Listed, source, statement};
use watershed_locks::Unpoisoned as _;

/// Time between two messages about how far a run is.
const TOLD_EVERY: Duration = Duration::from_millis(500);
/// The most partitions that share a transaction: what a commit costs each of them is then little beside its statement.
const LARGEST_BATCH: usize = 16;

/// The partitions of a run that failed.
#[derive(Default)]
pub(super) struct Failures {
    pub(super) count: u64,
    pub(super) in_a_row: u64,
    /// Those that were not tried, after too many failures in a row.
    pub(super) left: u64,
    pub(super) first: Option<(Error, String)>,
}

impl Failures {
    /// Takes note of how a partition ended. Returns whether it came into the stage.
    pub(super) fn take(&mut self, end: End) -> bool {
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

/// Builds partitions into the stage of a run.
pub(super) struct Stager<'a> {
    subject: Subject<'a>,
    spec: &'a ModelSpec,
    scope: &'a Scope,
    agenda: &'a Agenda,
    /// Columns of which no two rows of a partition have the same values.
    key: Vec<String>,
    cancel: &'a CancellationToken,
    /// Partitions need nothing around their statements: a table that gets columns is looked at between two of them.
    may_share: bool,
    number: AtomicU64,
    /// Partitions that share a transaction next, by the time that those before took.
    batch: AtomicUsize,
    /// The time of the last message about how far the run is.
    told: Mutex<Option<Instant>>,
}

/// The end of one partition's build: an error comes with the data of the partition.
type End = Result<(), (Error, String)>;

/// A partition with its place among those that are due.
type Due = (usize, Listed);

impl<'a> Stager<'a> {
    pub(super) fn new(
        subject: Subject<'a>,
        spec: &'a ModelSpec,
        scope: &'a Scope,
        agenda: &'a Agenda,
        key: Vec<String>,
        cancel: &'a CancellationToken,
    ) -> Self {
        let hooks = hooks::hooks(spec, scope, subject.paths());
        Self {
            subject,
            spec,
            scope,
            agenda,
            key,
            cancel,
            may_share: subject.columns() == NewColumns::Refuse && hooks.is_ok_and(|hooks| hooks.is_empty()),
            number: AtomicU64::new(agenda.notes.next),
            batch: AtomicUsize::new(1),
            told: Mutex::new(None),
        }
    }

    /// Takes the partitions out that are built together next, until there are none.
    pub(super) fn next_batch(&self, due: &mut impl Iterator<Item = Due>) -> Option<Vec<Due>> {
        let size = match self.may_share {
            true => self.batch.load(Ordering::Relaxed),
            false => 1,
        };
        let batch: Vec<Due> = due.take(size).collect();
        (!batch.is_empty()).then_some(batch)
    }

    /// Builds partitions. What is wrong with one is noted; what is wrong with the engine ends the run.
    pub(super) async fn stage(&self, mut batch: Vec<Due>) -> Result<Vec<End>, Error> {
        if let Some((index, _)) = batch.first() {
            self.tell(*index);
        }
        let mut ends = Vec::with_capacity(batch.len());
        while !batch.is_empty() {
            let started = Instant::now();
            let staged = match batch.len() {
                1 => 0,
                _ => self.stage_together(&batch).await?,
            };
            ends.extend(batch.drain(..staged).map(|_| Ok(())));
            if staged > 0 {
                self.learn(staged, started.elapsed());
                continue;
            }
            if batch.len() > 1 {
                // One of them fails: together they would be built twice.
                self.batch.store(1, Ordering::Relaxed);
            }
            for (_, one) in batch.drain(..) {
                let started = Instant::now();
                ends.push(self.stage_alone(one).await?);
                self.learn(1, started.elapsed());
            }
        }
        Ok(ends)
    }

    /// Makes the next batch larger where this one was brief, and smaller where it was not.
    fn learn(&self, size: usize, took: Duration) {
        let next = match took {
            took if took <= StageStep::BRIEF / 4 => (size * 2).min(LARGEST_BATCH),
            took if took <= StageStep::BRIEF => size,
            _ => (size / 2).max(1),
        };
        self.batch.store(next, Ordering::Relaxed);
    }

    /// Builds partitions in one transaction, from the first on for as long as they are brief. Returns the number of those that are
    /// built; 0 if each is to be built by itself.
    async fn stage_together(&self, batch: &[Due]) -> Result<usize, Error> {
        let mut steps = Vec::with_capacity(batch.len());
        for (_, one) in batch {
            match self.step(one).await {
                (_, Ok(step)) if step.hooks.is_empty() => steps.push(step),
                _ => return Ok(0),
            }
        }
        match self.subject.stages()?.stage(&steps, self.cancel).await {
            Ok(notes) => Ok(notes.len()),
            Err(error) => match engine_failure(&error) {
                Some(failure) => Err(failure::from_failure(failure)),
                None => Ok(0),
            },
        }
    }

    async fn stage_alone(&self, one: Listed) -> Result<End, Error> {
        let subject = self.subject;
        let stages = subject.stages()?;
        let (note, step) = self.step(&one).await;
        let error = match step {
            Err(error) => error,
            Ok(step) => match stages.stage(std::slice::from_ref(&step), self.cancel).await {
                Ok(_) => return Ok(Ok(())),
                Err(error) => match engine_failure(&error) {
                    Some(failure) => return Err(failure::from_failure(failure)),
                    None => errors::placed(subject, &error, &step.sql, &step.hooks),
                },
            },
        };
        let data = note.partition.data.clone();
        let message = subject.outputs().secrets().redact(&error.message).into_owned();
        let note = PartitionRun {
            phase: PartitionPhase::Failed,
            error: Some(message),
            ..note
        };
        let noted = stages.note(subject.uid(), vec![note], self.cancel).await;
        noted.map_err(|failure| failure::from_failure(&failure))?;
        Ok(Err((error, data)))
    }

    /// Returns the note of a partition's run, and what the engine is to do, unless a template can't be executed.
    async fn step(&self, one: &Listed) -> (PartitionRun, Result<StageStep, Error>) {
        let subject = self.subject;
        let note = PartitionRun {
            phase: PartitionPhase::Staged,
            stage: self.agenda.stage.clone(),
            number: self.number.fetch_add(1, Ordering::Relaxed),
            at_ms: subject.context.now().0,
            took_ms: 0,
            rows: None,
            error: None,
            partition: one.partition.clone(),
        };
        let scope = Scope {
            partition: one.data.clone(),
            ..self.scope.clone()
        };
        let literal = self.literal_paths(one).await;
        let sql = match &literal {
            Ok(literal) => self.statement(one, &scope, literal).await,
            Err(error) => Err(error.clone()),
        };
        let literal = literal.unwrap_or_default();
        let literally = |texts: Vec<String>| -> Vec<String> {
            let texts = texts.iter();
            texts
                .map(|text| with_literal_paths(text, &literal).into_owned())
                .collect()
        };
        let hooks = hooks::hooks(self.spec, &scope, subject.paths());
        let hooks = hooks.map(|hooks| Hooks {
            before: literally(hooks.before),
            after: literally(hooks.after),
        });
        let earlier = self.agenda.notes.by_key.get(&note.partition.key);
        let step = sql.and_then(|sql| {
            Ok(StageStep {
                uid: subject.uid(),
                sql,
                hooks: hooks?,
                columns: subject.columns(),
                key: self.key.clone(),
                again: earlier.is_some_and(|run| run.phase == PartitionPhase::Staged),
                note: note.clone(),
            })
        });
        (note, step)
    }

    /// Returns the paths in the row of a partition that are no patterns, whatever they look like.
    async fn literal_paths(&self, one: &Listed) -> Result<Vec<String>, Error> {
        if !one.partition.data.contains(['*', '?', '[', '{']) {
            return Ok(Vec::new());
        }
        let one = one.clone();
        inputs::blocking(&self.subject.model.root, self.cancel, move |root| {
            Ok(one.literal_paths(root))
        })
        .await
    }

    /// Returns the statement that reads a partition.
    async fn statement(&self, one: &Listed, scope: &Scope, literal: &[String]) -> Result<String, Error> {
        let subject = self.subject;
        self.refuse_contents(one, scope, literal).await?;
        let mut files: Vec<&str> = one.files.iter().map(|file| file.path.as_str()).collect();
        if files.is_empty() {
            files.extend(literal.iter().map(String::as_str));
        }
        let told = dialect::with_dialect(subject, self.spec.clone(), scope, &files).await?;
        let sql = statement::sql_in(&told, scope, subject.paths())?;
        statements::sampled(subject, with_literal_paths(&sql, literal).into_owned()).await
    }

    /// Refuses a partition whose files have nothing in them, or nothing that can be read.
    async fn refuse_contents(&self, one: &Listed, scope: &Scope, literal: &[String]) -> Result<(), Error> {
        let Some(reading) = Reading::from_spec(self.spec, scope) else {
            return Ok(());
        };
        let mut files = one.files.clone();
        let patterns = match files.is_empty() {
            true => source::local_paths(self.spec, scope),
            false => Vec::new(),
        };
        if files.is_empty() && patterns.is_empty() {
            return Ok(());
        }
        let sandbox = self.subject.outputs().sandbox().cloned();
        let literal = literal.to_vec();
        inputs::blocking(&self.subject.model.root, self.cancel, move |root| {
            for pattern in patterns {
                if let Some(sandbox) = &sandbox {
                    files::refuse_outside(sandbox, root, &pattern)?;
                }
                match literal.contains(&pattern) {
                    true => files.push(files::look_at(root, &pattern)?),
                    false => files.extend(files::look(root, &pattern)?),
                }
            }
            reading.refuse(root, &files, None)
        })
        .await
    }

    fn tell(&self, index: usize) {
        let mut told = self.told.lock().unpoisoned();
        if told.is_none_or(|last| last.elapsed() >= TOLD_EVERY) {
            *told = Some(Instant::now());
            let (nth, total) = (index + 1, self.agenda.due.len());
            self.subject
                .context
                .progress(format!("partition {nth} of {total}"));
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
