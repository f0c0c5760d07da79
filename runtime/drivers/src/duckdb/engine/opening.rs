//! Opening of the file: waiting for other processes, and reading the schema before any work.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::super::gate::Company;
use super::super::names::Noted;
use super::super::pool::{self, Open};
use super::super::sys::Connection;
use super::super::transaction::Work;
use super::super::{schema, trash};
use super::{Engine, on_blocking_thread};
use crate::olap::{Access, Failure, OpenError, Session};

/// First and longest delay between two attempts to open a file that another process has open. An attempt costs a few
/// system calls, and a person's program lets go of a file within seconds.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The longest wait of a reader for the file, even if other work may wait longer, since a person waits for the answer.
const READERS_PATIENCE: Duration = Duration::from_secs(10);

impl Engine {
    /// Opens the file, waiting while another process has it open, within the limit of the options.
    ///
    /// # Errors
    /// [`Failure::Open`]; the file is left as it was. [`Failure::Interrupted`] when the token is cancelled first.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the file open or unopened, to be opened by the next work.
    pub async fn open(&self, cancel: &CancellationToken) -> Result<(), Failure> {
        self.open_within(self.options().patience, cancel).await
    }

    /// Opens the file as [`open`](Self::open) does, unless it is open.
    pub(in crate::duckdb) async fn be_open(&self, cancel: &CancellationToken) -> Result<(), Failure> {
        match self.is_open() {
            true => Ok(()),
            false => self.open(cancel).await,
        }
    }

    /// Opens the file as [`be_open`](Self::be_open) does, within the shorter limit of readers.
    pub(in crate::duckdb) async fn be_open_for_reader(
        &self,
        cancel: &CancellationToken,
    ) -> Result<(), Failure> {
        if self.is_open() {
            return Ok(());
        }
        let patience = self.options().patience;
        let patience = match self.options().access {
            // Nothing but readers: the options are theirs.
            Access::ReadOnly => patience,
            Access::ReadWrite => patience.min(READERS_PATIENCE),
        };
        self.open_within(patience, cancel).await
    }

    async fn open_within(&self, patience: Duration, cancel: &CancellationToken) -> Result<(), Failure> {
        let sharing = &self.parts.sharing;
        let began = Instant::now();
        let mut pause = FIRST_PAUSE;
        let mut waiting = None;
        loop {
            if self.is_open() {
                return Ok(());
            }
            let locked = match self.try_to_open(cancel).await {
                Err(Failure::Open(locked @ OpenError::Locked { .. })) => locked,
                opened => return opened,
            };
            if began.elapsed() >= patience || sharing.has_waited(patience) {
                sharing.give_up_waiting(patience);
                return Err(Failure::Open(locked));
            }
            waiting.get_or_insert_with(|| sharing.wait()).name(&locked);
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(Failure::Interrupted),
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
            }
        }
    }

    /// Opens the file; fails without waiting if another process has it open.
    pub(in crate::duckdb) async fn try_to_open(&self, cancel: &CancellationToken) -> Result<(), Failure> {
        // Work alone in the engine may have closed the file for a moment.
        let pass = self.enter(cancel, Company::Others).await?;
        let engine = self.clone();
        on_blocking_thread(move || {
            let _pass = pass;
            let connection = engine.checkout()?;
            engine.parts.sharing.note_use();
            engine.parts.pool.check_in(connection);
            Ok(())
        })
        .await?
    }

    /// Opens the file and its first connection. The caller has no concurrent opener.
    pub(super) fn open_here(&self) -> Result<(Open, Connection), Failure> {
        let parts = &*self.parts;
        // Another process may have changed the file before.
        let _change = parts.changes.begin();
        let opening = parts.sharing.begin_opening();
        let (opened, connection) = match pool::open(&parts.options) {
            Ok(opened) => opened,
            Err(error) => {
                parts.sharing.end_opening_in_vain(opening);
                return Err(error.into());
            }
        };
        parts.sharing.end_opening(opening);
        // The file is looked at before it is closed again, should that be.
        self.read_file(&connection)
            .and_then(|()| parts.beginnings.begin_first(&connection, &parts.options))
            .inspect_err(|_| parts.sharing.end_reading_in_vain())?;
        Ok((opened, connection))
    }

    /// Reads the schema of a newly opened file.
    fn read_file(&self, connection: &Connection) -> Result<(), Failure> {
        let work = Work::uninterrupted(connection);
        let unreadable = |failure: Failure| match failure {
            Failure::Sql(error) => Failure::Open(OpenError::Damaged {
                path: self.options().path.clone(),
                message: error.message,
            }),
            other => other,
        };
        self.parts.growth.measure(&work).map_err(unreadable)?;
        let mut noted = Noted::default();
        if self.options().access == Access::ReadWrite {
            schema::set_up(&work).map_err(unreadable)?;
            noted = trash::read_noted(&work).map_err(unreadable)?;
        }
        let entries = schema::read_entries(&work).map_err(unreadable)?;
        self.names().reload(entries, noted);
        Ok(())
    }

    /// Sets the statements with which every connection begins. If they differ, an open file is reopened.
    pub fn begin_with(&self, sessions: Vec<Session>) {
        if self.parts.beginnings.set(sessions) {
            self.renew();
        }
    }
}
