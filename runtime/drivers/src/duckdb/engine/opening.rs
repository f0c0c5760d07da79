//! Opening of the file: waiting for other processes, and reading the schema before any work.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::super::gate::Company;
use super::super::lake::look_at_server;
use super::super::names::Noted;
use super::super::pool::{self, Open};
use super::super::proof;
use super::super::sys::Connection;
use super::super::transaction::Work;
use super::super::{schema, trash};
use super::{Engine, Intent, on_blocking_thread};
use crate::olap::{Access, Failure, OpenError, Session, Stamp};

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

    /// Takes the data under a leader's epoch. A file is held by its lock, once it is open.
    pub(in crate::duckdb) async fn take(
        &self,
        epoch: u64,
        cancel: &CancellationToken,
    ) -> Result<(), Failure> {
        match self.lake() {
            None => self.open(cancel).await,
            Some(lake) => {
                lake.tell(epoch);
                self.work(cancel, Company::Others, |_| Ok(())).await
            }
        }
    }

    /// Returns the stamp of the data. That of a lake whose catalog a server has takes a connection to it, and the engine where
    /// only that can make one.
    pub(in crate::duckdb) async fn stamp(&self) -> Result<Option<Stamp>, Failure> {
        let Some(lake) = self.lake() else {
            return proof::stamp(&self.options().path);
        };
        if let Some(file) = lake.file() {
            return Ok(proof::stamp_of_catalog(file)?.map(|stamp| lake.stamp(&stamp)));
        }
        if !self.is_open()
            && let Some(newest) = look_at_server(lake).await
        {
            return Ok(Some(lake.stamp(&proof::stamp_of_snapshot(newest.snapshot))));
        }
        let (this, cancel) = (self.clone(), CancellationToken::new());
        let newest = self.work_to(Intent::Read, &cancel, Company::Others, move |work| {
            let newest = this.lake().map(|lake| lake.snapshot(work.connection()));
            newest.transpose().map_err(|raw| work.fail(&raw, None))
        });
        match newest.await {
            Ok(newest) => Ok(newest.map(|newest| lake.stamp(&proof::stamp_of_snapshot(newest)))),
            Err(Failure::Open(OpenError::Missing { .. })) => Ok(None),
            Err(failure) => Err(failure),
        }
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
        let (opened, connection) = match pool::open(&parts.options, parts.lake.as_ref()) {
            Ok(opened) => opened,
            Err(error) => {
                parts.sharing.end_opening_in_vain(opening);
                return Err(error);
            }
        };
        parts.sharing.end_opening(opening);
        // The file is looked at before it is closed again, should that be.
        parts
            .beginnings
            .begin_first(&connection, &parts.options, parts.lake.as_ref(), || {
                self.read_file(&connection)
            })
            .inspect_err(|_| parts.sharing.end_reading_in_vain())?;
        Ok((opened, connection))
    }

    /// Reads the schema of a newly opened file.
    fn read_file(&self, connection: &Connection) -> Result<(), Failure> {
        let work = Work::uninterrupted(connection).in_lake(self.lake());
        if self.lake().is_some() {
            if self.options().access == Access::ReadWrite {
                schema::set_up(&work)?;
            }
            return self.read_names(&work);
        }
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

    /// Reads the names in the lake, as of one snapshot. Nobody else writes to it by this engine.
    pub(super) fn read_names(&self, work: &Work<'_>) -> Result<(), Failure> {
        let Some(lake) = self.lake() else { return Ok(()) };
        let (snapshot, noted, entries) = work.reading(|| {
            let snapshot = lake.snapshot(work.connection());
            let snapshot = snapshot.map_err(|raw| work.fail(&raw, None))?;
            let noted = match schema::is_set_up(work)? {
                true => trash::read_noted(work)?,
                false => Noted::default(),
            };
            Ok((snapshot, noted, schema::read_entries(work)?))
        })?;
        self.names().reload(entries, noted);
        lake.know(snapshot);
        Ok(())
    }

    /// Sets the statements with which every connection begins. If they differ, an open file is reopened.
    pub fn begin_with(&self, sessions: Vec<Session>) {
        if self.parts.beginnings.set(sessions) {
            self.renew();
        }
    }
}
