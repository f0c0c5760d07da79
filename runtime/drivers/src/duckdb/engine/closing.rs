//! Closing of the file: briefly, for other programs, or for good.

use std::time::Duration;

use super::super::lake::Lake;
use super::super::proof::{self, FileProof};
use super::super::retention::tidy_lake;
use super::super::sys::Connection;
use super::super::tidy::tidy_while_closing;
use super::super::transaction::Work;
use super::super::trash::now_ms;
use super::{Engine, on_blocking_thread};
use crate::crash;
use crate::olap::{Access, Failure, Stamp};

impl Engine {
    /// Waits for running work, writes the log into the file, and closes it. Returns the stamp of the closed file;
    /// `None` if there is no file. A file that is not open is not opened. All later work fails with
    /// [`Failure::Closed`].
    ///
    /// # Errors
    /// [`Failure::Fatal`] when the file can't be looked at. What had been done is safe all the same.
    ///
    /// # Cancel safety
    /// Dropping the future while work is under way changes nothing; later, the closing goes on by itself.
    pub async fn close(&self) -> Result<Option<Stamp>, Failure> {
        let gate = self.parts.gate.shut().await;
        let engine = self.clone();
        on_blocking_thread(move || {
            let _gate = gate;
            crash::point("drivers::close::before");
            let path = &engine.options().path;
            // Another process may have written to a file that was given up.
            let left = engine.parts.sharing.left_as();
            if let Some(lake) = engine.lake() {
                let stamp = engine.forget_lake(lake);
                engine.parts.pool.close();
                crash::point("drivers::close::after");
                return stamp;
            }
            let closed = engine.forget_file_and(|| FileProof::read(path));
            engine.parts.pool.close();
            crash::point("drivers::close::after");
            let left = match left {
                Some(left) => left,
                None => closed
                    .unwrap_or_else(|| FileProof::read(path))
                    .map_err(|error| Failure::Fatal {
                        message: format!("`{}` can't be looked at: {error}", path.display()),
                    })?,
            };
            Ok(left.map(|left| left.to_stamp()))
        })
        .await?
    }

    /// Closes the file, which the next work reopens. The caller holds the gate exclusively.
    pub(in crate::duckdb) fn forget_file(&self) {
        self.forget_file_and(|| ());
    }

    /// Closes the lake if it is open. Returns its stamp; one that no lake has if somebody changed it unseen.
    fn forget_lake(&self, lake: &Lake) -> Result<Option<Stamp>, Failure> {
        let is_known = self.parts.pool.forget(&self.options().path, |connection| {
            let is_as_known = |connection: &&Connection| matches!(lake.has_moved(connection), Ok(false));
            let connection = connection.filter(is_as_known);
            connection
                .inspect(|connection| self.tidy_closing_lake(lake, connection))
                .filter(is_as_known)
                .is_some()
        });
        // What was never opened is as it was when it was looked at, or somebody else's.
        let known = lake.known_snapshot().or_else(|| lake.looked());
        match (is_known, lake.file(), known) {
            (Some(false), ..) => Ok(Some(Stamp::new("changed meanwhile".to_owned()))),
            (_, Some(file), _) => Ok(proof::stamp_of_catalog(file)?.map(|stamp| lake.stamp(&stamp))),
            (_, None, Some(known)) => Ok(Some(lake.stamp(&proof::stamp_of_snapshot(known)))),
            (_, None, None) => Ok(Some(Stamp::new("never opened".to_owned()))),
        }
    }

    /// Tidies a lake that this engine has changed, while it is being closed. Failures are left for another time.
    fn tidy_closing_lake(&self, lake: &Lake, connection: &Connection) {
        if lake.epoch().is_none() {
            return;
        }
        let work = Work::uninterrupted(connection).in_lake(Some(lake));
        if let Err(error) = tidy_lake(&self.parts.names, &self.parts.trash, &work, now_ms()) {
            tracing::warn!(%error, "the lake could not be tidied");
        }
    }

    /// Closes the file if it is open, calling `before` after its log is written and before the lock is released. The
    /// caller holds the gate exclusively.
    fn forget_file_and<T>(&self, before: impl FnOnce() -> T) -> Option<T> {
        let parts = &*self.parts;
        parts.pool.forget(&parts.options.path, |connection| {
            if let Some(connection) = connection
                && parts.options.access == Access::ReadWrite
                && parts.lake.is_none()
            {
                write_log(connection);
                if tidy_while_closing(&parts.names, &parts.trash, connection) {
                    write_log(connection);
                }
            }
            before()
        })
    }

    /// Closes the file if no work runs at this moment, so that other programs can open it; the next work reopens it.
    /// Returns true if it is closed.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the file open, or closing by itself.
    pub async fn give_up_file(&self) -> bool {
        if !self.is_open() {
            return true;
        }
        let Some(pass) = self.parts.gate.enter_alone_now() else {
            return false;
        };
        if self.names().has_claims() {
            return false;
        }
        let engine = self.clone();
        let closing = on_blocking_thread(move || {
            let _pass = pass;
            engine.let_go_of_file();
        });
        closing.await.is_ok()
    }

    /// Closes the file whenever no work has run for `rest`, without cost while it is closed. Runs for ever.
    pub(in crate::duckdb) async fn share_file(&self, rest: Duration) {
        loop {
            let opened = self.parts.pool.openings().notified();
            tokio::pin!(opened);
            // Before looking, so that no opening is missed in between.
            opened.as_mut().enable();
            if !self.is_open() {
                opened.await;
            }
            match rest.checked_sub(self.parts.sharing.idle()) {
                Some(left) if !left.is_zero() => tokio::time::sleep(left).await,
                _ if self.give_up_file().await => {}
                _ => tokio::time::sleep(rest).await,
            }
        }
    }

    /// Closes the file so that other programs can use it. The caller holds the gate exclusively.
    fn let_go_of_file(&self) {
        crash::point("drivers::give_up::before");
        let proof = self.forget_file_and(|| FileProof::read(&self.options().path));
        // Otherwise it was closed already.
        if let Some(proof) = proof {
            self.parts.sharing.let_go(proof);
            crash::point("drivers::give_up::after");
        }
    }
}

/// Writes the log into the file at an orderly close. What can't be written stays in the log, where it is safe too.
fn write_log(connection: &Connection) {
    if let Err(error) = Work::uninterrupted(connection).run("CHECKPOINT", &[]) {
        tracing::warn!(%error, "no checkpoint could be made while closing");
    }
}
