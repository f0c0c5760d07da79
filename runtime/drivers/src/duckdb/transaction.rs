//! Units of work on a connection: statements, and the transaction around them.

use std::cell::Cell;
use std::path::Path;

use super::confine;
use super::failure::{Aftermath, Source, classify};
use super::lake::{self, Begun, Lake, Stop};
use super::options::Options;
use super::running::Running;
use super::sys::{Answer, ColumnValue, Connection, Param, RawError};
use crate::crash::{self, Around};
use crate::olap::{Failure, NamedRow, OpenError, STATEMENTS, Value, leading_words, without_values};
use crate::sandbox::{Sandbox, WorkingFolder};
use crate::volume::Volume;

/// A unit of work on a connection.
pub(super) struct Work<'a> {
    connection: &'a Connection,
    /// Running work to interrupt; `None` for work that can't be interrupted.
    running: Option<&'a Running>,
    aftermath: Cell<Aftermath>,
    /// The empty folder in which the process works, if it runs several projects.
    working_folder: Option<&'a WorkingFolder>,
    /// The folders to which the engine is confined, if it is.
    sandbox: Option<&'a Sandbox>,
    /// The lake in which the engine builds; none for a file.
    lake: Option<&'a Lake>,
    /// Number of the next record in the open transaction of a lake.
    next_number: Cell<i64>,
}

impl<'a> Work<'a> {
    /// Creates a unit of work that can be interrupted.
    pub(super) fn new(connection: &'a Connection, running: &'a Running) -> Self {
        Self {
            connection,
            running: Some(running),
            aftermath: Cell::new(Aftermath::Usable),
            working_folder: None,
            sandbox: None,
            lake: None,
            next_number: Cell::new(0),
        }
    }

    /// Creates a unit of work that can't be interrupted.
    pub(super) fn uninterrupted(connection: &'a Connection) -> Self {
        Self {
            connection,
            running: None,
            aftermath: Cell::new(Aftermath::Usable),
            working_folder: None,
            sandbox: None,
            lake: None,
            next_number: Cell::new(0),
        }
    }

    /// Has changes made in a lake.
    pub(super) fn in_lake(mut self, lake: Option<&'a Lake>) -> Self {
        self.lake = lake;
        self
    }

    /// Makes this work a part of other work's transaction.
    pub(super) fn in_transaction_of(mut self, whole: &'a Work<'_>) -> Self {
        self.lake = whole.lake;
        self
    }

    /// Returns the lake in which the engine builds; none for a file.
    pub(super) fn lake(&self) -> Option<&'a Lake> {
        self.lake
    }

    /// Returns the number of another record in the open transaction of a lake.
    pub(super) fn next_number(&self) -> i64 {
        let number = self.next_number.get();
        self.next_number.set(number + 1);
        number
    }

    /// Has the folder that the process works in cleared behind each statement of an author.
    pub(super) fn confined(mut self, options: &'a Options) -> Self {
        self.working_folder = options.working_folder.as_ref();
        self.sandbox = options.sandbox.as_ref();
        self
    }

    /// Returns the empty folder in which the process works, if it runs several projects.
    pub(super) fn working_folder(&self) -> Option<&'a WorkingFolder> {
        self.working_folder
    }

    /// Returns the folders to which the engine is confined, if it is.
    pub(super) fn sandbox(&self) -> Option<&'a Sandbox> {
        self.sandbox
    }

    /// Marks the connection as unusable after this work.
    pub(super) fn spend(&self) {
        if self.aftermath.get() == Aftermath::Usable {
            self.aftermath.set(Aftermath::Spent);
        }
    }

    /// Returns the state in which this work leaves the engine.
    pub(super) fn aftermath(&self) -> Aftermath {
        self.aftermath.get()
    }

    pub(super) fn connection(&self) -> &'a Connection {
        self.connection
    }

    /// Returns the span of an author's or a caller's statement.
    pub(super) fn span(sql: &str) -> tracing::Span {
        tracing::trace_span!(
            target: STATEMENTS,
            "statement",
            otel.kind = "client",
            db.system.name = "duckdb",
            db.operation.name = leading_words(sql).next().unwrap_or_default().to_uppercase(),
            db.query.text = without_values(sql),
        )
    }

    /// Runs one of our own statements to its end.
    pub(super) fn run(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Vec<Value>>, Failure> {
        self.check_cancelled()?;
        let answer = self.connection.run(sql, params).and_then(Answer::collect);
        answer.map_err(|raw| self.fail(&raw, None))
    }

    /// Appends rows to one of our own tables.
    pub(super) fn append<'r>(
        &self,
        table: &str,
        rows: impl IntoIterator<Item = &'r [ColumnValue<'r>]>,
    ) -> Result<(), Failure> {
        self.check_cancelled()?;
        let appended = match self.lake {
            None => self.connection.append(("_watershed", table), rows),
            Some(_) => lake::append(self.connection, table, rows),
        };
        appended.map_err(|raw| self.fail(&raw, None))
    }

    /// Returns names and types of a statement's columns without running it.
    pub(super) fn columns(&self, sql: &str) -> Result<Vec<(String, String)>, Failure> {
        self.check_cancelled()?;
        let prepared = self.connection.prepare(sql);
        let prepared = prepared.map_err(|raw| self.fail(&raw, None))?;
        Ok(prepared.columns())
    }

    /// Runs a caller's statement behind our prefix, to its end. Positions in errors are relative to the caller's text.
    pub(super) fn run_theirs(&self, source: Source<'_>) -> Result<Vec<Vec<Value>>, Failure> {
        self.run_within(source, "")
    }

    /// Runs a statement of an author that stands alone, to its end. In a sandbox those that act upon more than tables are
    /// refused.
    pub(super) fn run_authors(&self, sql: &str) -> Result<(), Failure> {
        self.check_cancelled()?;
        let source = Source { prefix: "", sql };
        let fail = |raw: RawError| self.fail(&raw, Some(source));
        let _span = Self::span(sql).entered();
        let is_shared = self.working_folder.is_some();
        if self.sandbox.is_some() {
            confine::refuse_word(sql, is_shared)?;
        }
        let statement = self.connection.prepare(sql).map_err(fail)?;
        if self.sandbox.is_some() {
            confine::refuse_effect(sql, statement.effect(), is_shared)?;
        }
        statement
            .run(&[])
            .and_then(Answer::collect)
            .map(drop)
            .map_err(fail)
    }

    /// Runs a caller's statement between our prefix and suffix, as [`run_theirs`](Self::run_theirs) does.
    pub(super) fn run_within(&self, source: Source<'_>, suffix: &str) -> Result<Vec<Vec<Value>>, Failure> {
        self.check_cancelled()?;
        let sql = format!("{}{}{suffix}", source.prefix, source.sql);
        let _span = Self::span(&sql).entered();
        let answer = self.connection.run(&sql, &[]).and_then(Answer::collect);
        answer.map_err(|raw| self.fail(&raw, Some(source)))
    }

    /// Runs a caller's query and returns its first row with the column names.
    pub(super) fn first_row(&self, source: Source<'_>) -> Result<Option<NamedRow>, Failure> {
        self.check_cancelled()?;
        let fail = |raw: RawError| self.fail(&raw, Some(source));
        let sql = format!("{}{}", source.prefix, source.sql);
        let _span = Self::span(&sql).entered();
        let answer = self.connection.run(&sql, &[]).map_err(fail)?;
        let names: Vec<String> = answer.columns().iter().map(|(name, _)| name.clone()).collect();
        let first = answer.collect().map_err(fail)?.into_iter().next();
        Ok(first.map(|row| names.into_iter().zip(row).collect()))
    }

    /// Returns an error if the work was cancelled.
    pub(super) fn check_cancelled(&self) -> Result<(), Failure> {
        let cancelled = self.running.is_some_and(|running| running.cancel.is_cancelled());
        if cancelled {
            Err(Failure::Interrupted)
        } else {
            Ok(())
        }
    }

    /// Classifies an error of the engine and records the state in which it leaves the engine.
    pub(super) fn fail(&self, raw: &RawError, source: Option<Source<'_>>) -> Failure {
        let (failure, aftermath) = classify(raw, source);
        if aftermath == Aftermath::Broken {
            self.aftermath.set(Aftermath::Broken);
        }
        if let Some(lake) = self.lake
            && let Some(failure) = lake.lost(&failure)
        {
            self.aftermath.set(Aftermath::Broken);
            return failure;
        }
        if let (Some(lake), Failure::DiskFull { message }) = (self.lake, &failure) {
            lake::partial::remove_partial(lake, message);
        }
        match (failure, self.connection.path()) {
            (Failure::DiskFull { message }, Some(path)) => disk_full(message, path),
            (Failure::Open(OpenError::Damaged { message, .. }), Some(path)) => {
                let path = path.to_owned();
                Failure::Open(OpenError::Damaged { path, message })
            }
            (failure, _) => failure,
        }
    }

    /// Runs `body` in a transaction. Cancellation rolls back until the commit begins; the commit itself is not
    /// interrupted, so that the reported result is true.
    pub(super) fn transaction<T, E: From<Failure>>(
        &self,
        points: Around,
        body: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.transaction_in(self.lake, points, body)
    }

    /// Runs `body` in a transaction as [`transaction`](Self::transaction) does, which changes another database than the
    /// engine's own.
    pub(super) fn transaction_elsewhere<T, E: From<Failure>>(
        &self,
        points: Around,
        body: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.transaction_in(None, points, body)
    }

    fn transaction_in<T, E: From<Failure>>(
        &self,
        lake: Option<&Lake>,
        points: Around,
        body: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.run("BEGIN TRANSACTION", &[])?;
        let begun = lake.map(|lake| self.begin_in(lake)).transpose();
        let begun = begun.inspect_err(|_| self.roll_back())?;
        let done = body().and_then(|value| {
            self.check_cancelled()?;
            Ok(value)
        });
        match done {
            Ok(value) => {
                self.hold_interrupts();
                crash::point(points.before);
                match (lake, begun) {
                    (Some(lake), Some(begun)) => {
                        let is_recorded = self.next_number.get() > begun.first_number();
                        let ended = lake.commit(self.connection, begun, is_recorded);
                        ended.map_err(|stop| self.stopped(stop))?;
                    }
                    _ => {
                        let ended = self.connection.run("COMMIT", &[]);
                        ended
                            .map_err(|raw| self.fail(&raw, None))
                            .inspect_err(|_| self.roll_back())?;
                    }
                }
                crash::point(points.after);
                Ok(value)
            }
            Err(error) => {
                self.roll_back();
                Err(error)
            }
        }
    }

    fn begin_in(&self, lake: &Lake) -> Result<Begun, Failure> {
        let begun = lake.begin(self.connection).map_err(|stop| self.stopped(stop))?;
        self.next_number.set(begun.first_number());
        Ok(begun)
    }

    /// Returns the failure for which a lake did not do what it was asked to.
    pub(super) fn stopped(&self, stop: Stop) -> Failure {
        if matches!(stop, Stop::Unknown(_)) {
            self.aftermath.set(Aftermath::Broken);
        }
        stop.into_failure(|raw| self.fail(raw, None))
    }

    /// Runs `body` in a read-only transaction, so that its statements see one state of the file.
    pub(super) fn reading<T>(&self, body: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        self.run("BEGIN TRANSACTION READ ONLY", &[])?;
        let read = body();
        self.roll_back();
        self.resume_interrupts();
        read
    }

    /// Rolls back the transaction. If that fails, the connection is not used again.
    pub(super) fn roll_back(&self) {
        self.hold_interrupts();
        if let Err(raw) = self.connection.run("ROLLBACK", &[]) {
            let none_open = raw.0.contains("no transaction is active");
            if !none_open {
                tracing::warn!(error = %raw.0, "a transaction could not be rolled back");
                self.fail(&raw, None);
            }
        }
    }

    /// Permits interrupts again after a transaction has held them back.
    pub(super) fn resume_interrupts(&self) {
        if let Some(running) = self.running {
            running.arm(self.connection.interrupt());
        }
    }

    /// Holds interrupts back until they are resumed.
    pub(super) fn hold_interrupts(&self) {
        if let Some(running) = self.running {
            running.disarm();
        }
    }
}

/// Returns the failure of a write that found no space, with the free space of the volume.
pub(super) fn disk_full(said: String, path: &Path) -> Failure {
    let message = match Volume::at_path(path) {
        // Something else than the volume bounds what may be written: a quota, or the size of one file.
        Ok(volume) if volume.missing() == 0 => format!("{volume}, and yet: {}", first_line(&said)),
        Ok(volume) => volume.to_string(),
        Err(_) => first_line(&said).to_owned(),
    };
    Failure::DiskFull { message }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
