//! Building of partitions into a stage: small ones share a transaction, and after a failure each is built by itself.

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

/// The interval between two progress messages.
const TOLD_EVERY: Duration = Duration::from_millis(500);
/// The most partitions in a transaction: enough to make the cost of commits negligible.
const LARGEST_BATCH: usize = 16;

/// The failures among the partitions of a run.
#[derive(Default)]
pub(super) struct Failures {
    pub(super) count: u64,
    pub(super) in_a_row: u64,
    /// The number of partitions not tried, after too many consecutive failures.
    pub(super) left: u64,
    pub(super) first: Option<(Error, String)>,
}

impl Failures {
    /// Records the end of a partition's build. Returns true if the partition was staged.
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

/// The builder of partitions into the stage of a run.
pub(super) struct Stager<'a> {
    subject: Subject<'a>,
    spec: &'a ModelSpec,
    scope: &'a Scope,
    agenda: &'a Agenda,
    /// The columns whose values are unique within a partition.
    key: Vec<String>,
    cancel: &'a CancellationToken,
    /// True if partitions may share a transaction: no hooks run around their statements, and no columns can be added
    /// between them.
    may_share: bool,
    number: AtomicU64,
    /// The number of partitions in the next transaction, adapted to the time of previous ones.
    batch: AtomicUsize,
    /// The time of the last progress message; none before the first.
    told: Mutex<Option<Instant>>,
}

/// The end of a partition's build; an error comes with the data of the partition.
type End = Result<(), (Error, String)>;

/// A partition with its index among the due ones.
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

    /// Takes the next partitions to be built together; none if there are no more.
    pub(super) fn next_batch(&self, due: &mut impl Iterator<Item = Due>) -> Option<Vec<Due>> {
        let size = match self.may_share {
            true => self.batch.load(Ordering::Relaxed),
            false => 1,
        };
        let batch: Vec<Due> = due.take(size).collect();
        (!batch.is_empty()).then_some(batch)
    }

    /// Builds partitions. Errors of a single partition are returned for it; errors of the engine end the run.
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

    /// Adapts the size of the next batch: larger after a brief batch, smaller after a long one.
    fn learn(&self, size: usize, took: Duration) {
        let next = match took {
            took if took <= StageStep::BRIEF / 4 => (size * 2).min(LARGEST_BATCH),
            took if took <= StageStep::BRIEF => size,
            _ => (size / 2).max(1),
        };
        self.batch.store(next, Ordering::Relaxed);
    }

    /// Builds partitions in one transaction, from the first on while they are brief. Returns the number of built
    /// partitions; 0 if each must be built by itself.
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

    /// Returns the note of a partition's run, and the step for the engine or the error of a template.
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
                again: earlier.is_some_and(|run| !run.stage.is_empty()),
                note: note.clone(),
            })
        });
        (note, step)
    }

    /// Returns the paths in a partition's row that exist, so that they must not be read as patterns.
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

    /// Returns an error for a partition whose files are empty or unreadable.
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

/// Returns the failure if it concerns the engine rather than the partition, so that other partitions would fail too.
fn engine_failure(error: &BuildError) -> Option<&Failure> {
    match error.build_error() {
        BuildError::Failed(Failure::Sql(_) | Failure::OutOfMemory { .. }) => None,
        BuildError::Failed(failure) => Some(failure),
        _ => None,
    }
}
