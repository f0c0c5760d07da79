//! One unit of work on one connection: statements, and the transaction around them.

use std::cell::Cell;

use super::failure::{Aftermath, Source, classify};
use super::running::Running;
use super::sys::{Answer, Connection, Param, RawError};
use crate::crash::{self, Around};
use crate::olap::{Failure, Value};

/// A connection at work.
pub(super) struct Work<'a> {
    connection: &'a Connection,
    /// `None` for what nobody may interrupt.
    running: Option<&'a Running>,
    aftermath: Cell<Aftermath>,
}

impl<'a> Work<'a> {
    /// Work that can be interrupted.
    pub(super) fn new(connection: &'a Connection, running: &'a Running) -> Self {
        Self {
            connection,
            running: Some(running),
            aftermath: Cell::new(Aftermath::Usable),
        }
    }

    /// Work that is always done to its end.
    pub(super) fn uninterrupted(connection: &'a Connection) -> Self {
        Self {
            connection,
            running: None,
            aftermath: Cell::new(Aftermath::Usable),
        }
    }

    /// Whether the engine can go on after what has been done here.
    pub(super) fn aftermath(&self) -> Aftermath {
        self.aftermath.get()
    }

    pub(super) fn connection(&self) -> &'a Connection {
        self.connection
    }

    /// Runs a statement of ours to its end.
    pub(super) fn run(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Vec<Value>>, Failure> {
        self.check_cancelled()?;
        let answer = self.connection.run(sql, params).and_then(Answer::collect);
        answer.map_err(|raw| self.fail(&raw, None))
    }

    /// Runs a caller's statement with something of ours before it, to its end. Places in errors are the caller's.
    pub(super) fn run_theirs(&self, source: Source<'_>) -> Result<Vec<Vec<Value>>, Failure> {
        self.check_cancelled()?;
        let sql = format!("{}{}", source.prefix, source.sql);
        let answer = self.connection.run(&sql, &[]).and_then(Answer::collect);
        answer.map_err(|raw| self.fail(&raw, Some(source)))
    }

    /// Whether the work is to end here.
    pub(super) fn check_cancelled(&self) -> Result<(), Failure> {
        let cancelled = self.running.is_some_and(|running| running.cancel.is_cancelled());
        if cancelled {
            Err(Failure::Interrupted)
        } else {
            Ok(())
        }
    }

    /// What an error of the engine means.
    pub(super) fn fail(&self, raw: &RawError, source: Option<Source<'_>>) -> Failure {
        let (failure, aftermath) = classify(raw, source);
        if aftermath == Aftermath::Broken {
            self.aftermath.set(Aftermath::Broken);
        }
        failure
    }

    /// All of `body` in one transaction, or nothing of it. A cancelled token undoes it until the commit begins; from
    /// there on nothing interrupts, so that what is reported is what happened.
    pub(super) fn transaction<T, E: From<Failure>>(
        &self,
        points: Around,
        body: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.run("BEGIN TRANSACTION", &[])?;
        let done = body().and_then(|value| {
            self.check_cancelled()?;
            Ok(value)
        });
        match done {
            Ok(value) => {
                self.hold_interrupts();
                crash::point(points.before);
                self.connection
                    .run("COMMIT", &[])
                    .map_err(|raw| self.fail(&raw, None))
                    .inspect_err(|_| self.roll_back())?;
                crash::point(points.after);
                Ok(value)
            }
            Err(error) => {
                self.roll_back();
                Err(error)
            }
        }
    }

    /// Ends a transaction without effect. A connection that can't is not used again.
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

    fn hold_interrupts(&self) {
        if let Some(running) = self.running {
            running.disarm();
        }
    }
}
