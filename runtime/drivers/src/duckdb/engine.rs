//! The engine: one file, opened once, and who may work in it when.
//!
//! Invariants:
//! 1. At most [`Options::connections`] units of work run at the same time, each on a connection and a blocking
//!    thread of its own. The slot goes back when the thread is done, whatever became of the caller.
//! 2. Who works holds the gate shared. Who must be alone (a checkpoint, a second try after a lack of memory, the
//!    opening anew after a fatal error, closing) holds it whole, so nobody's transaction is open then.
//! 3. The file is opened once and connections are made from that: opening it twice in one process and closing one
//!    would drop the lock that keeps other processes out.

pub(in crate::duckdb) mod checkpoint;
mod group;
mod sharing;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::{Notify, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, OwnedSemaphorePermit};
use tokio::sync::{RwLock, Semaphore};
use tokio::task;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::failure::Aftermath;
use super::names::{ClaimKey, Edit, Names, Noted};
use super::options::Options;
use super::pool::{self, Checkout, Pool};
use super::proof::FileProof;
use super::running::{Finished, Running};
use super::schema;
use super::session::{Beginnings, Turn};
use super::sys::Connection;
use super::trash;
use super::work::Work;
use crate::crash;
use crate::olap::{Access, Failure, OpenError, Session, Stamp, TrashLimits};
use checkpoint::Growth;
use group::Group;
use sharing::Sharing;
use watershed_locks::Unpoisoned;

/// DuckDB on one file. Clones are the same engine.
///
/// The file is opened by the first work that needs it. Dropping the last clone closes it; [`Engine::close`] does it
/// in order and says what the file looks like then.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<EngineInner>,
}

struct EngineInner {
    options: Options,
    gate: Arc<RwLock<()>>,
    slots: Arc<Semaphore>,
    builders: Arc<Semaphore>,
    pool: Mutex<Pool>,
    /// Set after a fatal error: nobody enters before the file has been opened anew.
    broken: AtomicBool,
    opened: AtomicBool,
    names: Mutex<Names>,
    released: Notify,
    growth: Mutex<Growth>,
    /// Since memory was given back last.
    changes: AtomicUsize,
    /// The beginning of every connection.
    beginnings: Mutex<Beginnings>,
    sharing: Mutex<Sharing>,
    openings: Notify,
    /// The bounds of the trash, once they are known.
    trash: Mutex<Option<TrashLimits>>,
    /// The project lets extensions be fetched.
    installs: AtomicBool,
    /// Held by the one build with statements around it that is at work.
    hooks: Arc<tokio::sync::Mutex<()>>,
    group: Group,
}

/// The mode of access: with others at the same time, or alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Company {
    Others,
    Alone,
}

/// The right to work, for as long as it lives.
pub(super) struct Pass {
    _gate: Gate,
    _slot: OwnedSemaphorePermit,
}

enum Gate {
    Shared(#[expect(dead_code, reason = "held")] OwnedRwLockReadGuard<()>),
    Whole(#[expect(dead_code, reason = "held")] OwnedRwLockWriteGuard<()>),
}

/// Names and owners that a unit of work has to itself. Goes into the job, so that it lasts as long as the job does
/// and not only as long as somebody waits for it.
pub(super) struct Claim {
    engine: Engine,
    keys: BTreeSet<ClaimKey>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.engine.names().release(&self.keys);
        self.engine.shared.released.notify_waiters();
    }
}

impl Engine {
    /// An engine on a file that is not opened yet.
    pub fn new(options: Options) -> Self {
        let (connections, builds) = (options.connections.get(), options.builds.get());
        let sharing = Mutex::new(Sharing::from_options(&options));
        let shared = EngineInner {
            options,
            sharing,
            openings: Notify::new(),
            gate: Arc::default(),
            slots: Arc::new(Semaphore::new(connections)),
            builders: Arc::new(Semaphore::new(builds)),
            pool: Mutex::new(Pool::Unopened),
            broken: AtomicBool::new(false),
            opened: AtomicBool::new(false),
            names: Mutex::default(),
            released: Notify::new(),
            growth: Mutex::default(),
            changes: AtomicUsize::new(0),
            beginnings: Mutex::default(),
            trash: Mutex::default(),
            installs: AtomicBool::new(true),
            hooks: Arc::default(),
            group: Group::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Returns whether this engine has opened the file.
    pub fn is_open(&self) -> bool {
        self.shared.opened.load(Ordering::Acquire)
    }

    /// Returns the options that it was opened with.
    pub fn options(&self) -> &Options {
        &self.shared.options
    }

    /// Waits for the work under way, writes the log into the file, closes it, and says what it looked like when it was
    /// let go of; `None` when there was no file. A file that is not open is not opened for this. All later work fails
    /// with [`Failure::Closed`].
    ///
    /// # Errors
    /// [`Failure::Fatal`] when the file can't be looked at. What had been done is safe all the same.
    ///
    /// # Cancel safety
    /// Dropping the future while work is under way changes nothing; later, the closing goes on by itself.
    pub async fn close(&self) -> Result<Option<Stamp>, Failure> {
        let gate = Arc::clone(&self.shared.gate).write_owned().await;
        let engine = self.clone();
        on_blocking_thread(move || {
            let _gate = gate;
            crash::point("drivers::close::before");
            let path = engine.options().path.clone();
            // Another process may have written to a file that was given up.
            let left = engine.left_as();
            let closed = engine.forget_file_and(|_| FileProof::read(&path));
            *engine.pool() = Pool::Closed;
            crash::point("drivers::close::after");
            let left = match left {
                Some(left) => left,
                None => closed
                    .unwrap_or_else(|| FileProof::read(&path))
                    .map_err(|error| Failure::Fatal {
                        message: format!("`{}` can't be looked at: {error}", path.display()),
                    })?,
            };
            Ok(left.map(|left| left.to_stamp()))
        })
        .await?
    }

    /// Runs a job on a connection, off the async threads, as soon as it may.
    pub(super) async fn work<T, E>(
        &self,
        cancel: &CancellationToken,
        company: Company,
        job: impl FnOnce(&Work<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Failure> + Send + 'static,
    {
        if !self.is_open() {
            self.open(cancel).await?;
        }
        let pass = self.enter(cancel, company).await?;
        self.work_with(pass, Running::start(cancel, None), job).await
    }

    /// Runs a job whose right to work has been waited for already. Dropping the future interrupts the job.
    pub(super) async fn work_with<T, E>(
        &self,
        pass: Pass,
        running: Running,
        job: impl FnOnce(&Work<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Failure> + Send + 'static,
    {
        let dropped = running.cancel.clone().drop_guard();
        let engine = self.clone();
        let done = on_blocking_thread(move || {
            let _pass = pass;
            engine.work_here(&running, job)
        })
        .await;
        dropped.disarm();
        done?
    }

    /// Runs a job on this thread, which may block.
    pub(super) fn work_here<T, E: From<Failure>>(
        &self,
        running: &Running,
        job: impl FnOnce(&Work<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let _finished = Finished(running);
        let connection = self.checkout()?;
        let work = Work::new(&connection, running);
        running.arm(connection.interrupt());
        let done = job(&work);
        // The connection's next work is another's.
        running.disarm();
        match work.aftermath() {
            Aftermath::Usable => self.check_in(connection),
            Aftermath::Spent => {}
            Aftermath::Broken => self.declare_broken(),
        }
        done
    }

    /// Waits for the right to work.
    ///
    /// # Cancel safety
    /// Dropping the future gives the place in the queue back.
    pub(super) async fn enter(&self, cancel: &CancellationToken, company: Company) -> Result<Pass, Failure> {
        let pass = async {
            // The slot first: who waits for one must not hold up whoever wants to be alone.
            let slot = Arc::clone(&self.shared.slots).acquire_owned().await;
            let slot = slot.map_err(|_| Failure::Closed)?;
            loop {
                let gate = Arc::clone(&self.shared.gate);
                let gate = match company {
                    Company::Others => Gate::Shared(gate.read_owned().await),
                    Company::Alone => Gate::Whole(gate.write_owned().await),
                };
                if !self.shared.broken.load(Ordering::Acquire) {
                    return Ok(Pass {
                        _gate: gate,
                        _slot: slot,
                    });
                }
                drop(gate);
                let _alone = self.shared.gate.write().await;
                self.forget_broken_file();
            }
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Failure::Interrupted),
            pass = pass => pass,
        }
    }

    /// Waits until another transaction may make outputs.
    ///
    /// # Cancel safety
    /// Dropping the future gives the place in the queue back.
    pub(super) async fn enter_to_build(
        &self,
        cancel: &CancellationToken,
    ) -> Result<OwnedSemaphorePermit, Failure> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Failure::Interrupted),
            turn = Arc::clone(&self.shared.builders).acquire_owned() => turn.map_err(|_| Failure::Closed),
        }
    }

    /// Waits until an owner, a name with whoever has it, and an output of the trash are nobody else's work, and takes them.
    pub(super) async fn claim(
        &self,
        uid: Uuid,
        name: Option<&str>,
        back: Option<Uuid>,
        cancel: &CancellationToken,
    ) -> Result<Claim, Failure> {
        if !self.is_open() {
            self.open(cancel).await?;
        }
        loop {
            let released = self.shared.released.notified();
            tokio::pin!(released);
            // Before looking, so that no release is missed in between.
            released.as_mut().enable();
            if let Some(keys) = self.names().try_claim(uid, name, back) {
                return Ok(Claim {
                    engine: self.clone(),
                    keys,
                });
            }
            tokio::select! {
                () = released => {}
                () = cancel.cancelled() => return Err(Failure::Interrupted),
            }
        }
    }

    /// Takes note of a commit.
    pub(super) fn apply(&self, edits: Vec<Edit>) {
        let mut names = self.names();
        edits.into_iter().for_each(|edit| names.apply(edit));
    }

    /// Returns the names in the file. The lock is never held across work.
    pub(super) fn names(&self) -> MutexGuard<'_, Names> {
        self.shared.names.lock().unpoisoned()
    }

    pub(super) fn growth(&self) -> MutexGuard<'_, Growth> {
        self.shared.growth.lock().unpoisoned()
    }

    pub(super) fn installs(&self) -> &AtomicBool {
        &self.shared.installs
    }

    pub(super) fn trash_lock(&self) -> &Mutex<Option<TrashLimits>> {
        &self.shared.trash
    }

    /// Returns the builds that wait to be made together.
    fn group(&self) -> &Group {
        &self.shared.group
    }

    pub(super) fn changes(&self) -> &AtomicUsize {
        &self.shared.changes
    }

    /// Bytes of memory that it may use, while it is open.
    pub(super) fn memory_limit(&self) -> Option<u64> {
        match &*self.pool() {
            Pool::Open { memory_limit, .. } => *memory_limit,
            Pool::Unopened | Pool::Closed => None,
        }
    }

    pub(super) fn check_in(&self, connection: Connection) {
        self.note_use();
        self.pool().checkin(connection);
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.shared.pool.lock().unpoisoned()
    }

    /// A connection; opens the file if need be, others wait for that.
    pub(super) fn checkout(&self) -> Result<Connection, Failure> {
        let mut pool = self.pool();
        match pool.checkout(&self.options().path) {
            Some(Checkout::Idle(connection)) => {
                self.beginnings().look(self.options());
                return Ok(connection);
            }
            Some(Checkout::New(connection)) => {
                let connection = connection?;
                self.beginnings()
                    .begin(&connection, Turn::Later, self.options())?;
                return Ok(connection);
            }
            None => {}
        }
        let opening = self.begin_opening();
        let (opened, connection) = match pool::open(self.options()) {
            Ok(opened) => opened,
            Err(error) => {
                self.end_opening_in_vain(opening);
                return Err(error.into());
            }
        };
        self.end_opening(opening);
        // The file is looked at before it is closed again, should that be.
        self.begin_with_file(&connection)
            .inspect_err(|_| self.end_reading_in_vain())?;
        *pool = opened;
        self.shared.opened.store(true, Ordering::Release);
        self.shared.openings.notify_waiters();
        Ok(connection)
    }

    /// Returns the lock of the build with statements around it that is at work.
    pub(super) fn hooks_lock(&self) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(&self.shared.hooks)
    }

    /// A connection to the open file on which nothing was run: it sees what holds for everybody.
    pub(super) fn bare_connection(&self) -> Result<Connection, Failure> {
        match &*self.pool() {
            Pool::Open { database, .. } => Ok(pool::connect(database, &self.options().path)?),
            Pool::Unopened | Pool::Closed => Err(Failure::Closed),
        }
    }

    /// Reads the catalog of a newly opened file and runs the statements of a first connection.
    fn begin_with_file(&self, connection: &Connection) -> Result<(), Failure> {
        self.read_file(connection)?;
        let mut beginnings = self.beginnings();
        beginnings.read_settings(connection)?;
        let options = self.options();
        beginnings.begin(connection, Turn::first(options.access), options)
    }

    /// Reads the catalog of a newly opened file.
    fn read_file(&self, connection: &Connection) -> Result<(), Failure> {
        let work = Work::uninterrupted(connection);
        let unreadable = |failure: Failure| match failure {
            Failure::Sql(error) => Failure::Open(OpenError::Damaged {
                path: self.options().path.clone(),
                message: error.message,
            }),
            other => other,
        };
        self.growth().measure(&work).map_err(unreadable)?;
        let mut noted = Noted::default();
        if self.options().access == Access::ReadWrite {
            schema::set_up(&work).map_err(unreadable)?;
            noted = trash::read_noted(&work).map_err(unreadable)?;
        }
        let entries = schema::read_entries(&work).map_err(unreadable)?;
        self.names().reload(entries, noted);
        Ok(())
    }

    /// After a fatal error: everything closed, so that the next work opens the file anew. The gate is held whole.
    fn forget_broken_file(&self) {
        let mut pool = self.pool();
        if self.shared.broken.swap(false, Ordering::AcqRel) && !matches!(*pool, Pool::Closed) {
            tracing::info!(path = %self.options().path.display(), "opening the engine's file anew");
            *pool = Pool::Unopened;
            self.shared.opened.store(false, Ordering::Release);
        }
    }

    /// Closes the file, which the next work opens anew. The gate is held whole.
    pub(super) fn forget_file(&self) {
        self.forget_file_and(|_| ());
    }

    /// Closes the file if it is open. `before` is called when its log is written into it, just before the lock is let
    /// go. The gate is held whole.
    pub(super) fn forget_file_and<T>(&self, before: impl FnOnce(&Self) -> T) -> Option<T> {
        let mut pool = self.pool();
        let Pool::Open { database, idle, .. } = &mut *pool else {
            return None;
        };
        if idle.is_empty() {
            // Each was spent.
            idle.extend(pool::connect(database, &self.options().path).ok());
        }
        if let Some(connection) = idle.first()
            && self.options().access == Access::ReadWrite
        {
            self.write_log_into_file(connection);
            if self.tidy_while_closing(connection) {
                self.write_log_into_file(connection);
            }
        }
        let done = before(self);
        *pool = Pool::Unopened;
        self.shared.opened.store(false, Ordering::Release);
        Some(done)
    }

    /// Has the file opened anew before the next work: what every connection begins with is another now.
    pub(super) fn renew(&self) {
        if self.is_open() {
            self.declare_broken();
        }
    }

    /// Gives the statements that every connection begins with. An open file is opened anew if they are others.
    pub fn begin_with(&self, sessions: Vec<Session>) {
        let mut known = self.beginnings();
        if known.sessions != sessions {
            known.sessions = sessions;
            drop(known);
            self.renew();
        }
    }

    pub(super) fn sharing_lock(&self) -> &Mutex<Sharing> {
        &self.shared.sharing
    }

    /// Notified each time that the file has been opened.
    pub(super) fn openings(&self) -> &Notify {
        &self.shared.openings
    }

    fn beginnings(&self) -> MutexGuard<'_, Beginnings> {
        self.shared.beginnings.lock().unpoisoned()
    }

    /// Nothing more is done in the file before it has been opened anew.
    pub(super) fn declare_broken(&self) {
        self.shared.broken.store(true, Ordering::Release);
    }

    /// Lets go of the gate after a while: work that lasts must not hold up everybody else behind a waiter.
    pub(super) async fn enter_alone_within(
        &self,
        patience: Duration,
        cancel: &CancellationToken,
    ) -> Option<Pass> {
        let entered = tokio::time::timeout(patience, self.enter(cancel, Company::Alone)).await;
        entered.ok().and_then(Result::ok)
    }

    /// The right to work alone, if nobody works at this moment.
    pub(super) fn enter_alone_now(&self) -> Option<Pass> {
        let slot = Arc::clone(&self.shared.slots).try_acquire_owned().ok()?;
        let gate = Arc::clone(&self.shared.gate).try_write_owned().ok()?;
        let is_broken = self.shared.broken.load(Ordering::Acquire);
        (!is_broken).then_some(Pass {
            _gate: Gate::Whole(gate),
            _slot: slot,
        })
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("options", self.options())
            .finish_non_exhaustive()
    }
}

/// Runs what blocks on a thread made for that. A panic there is this work's failure and nobody else's.
pub(super) async fn on_blocking_thread<T: Send + 'static>(
    job: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let span = tracing::Span::current();
    task::spawn_blocking(move || span.in_scope(job))
        .await
        .map_err(|error| match error.is_panic() {
            true => Failure::Fatal {
                message: "work in the engine panicked".to_owned(),
            },
            false => Failure::Closed,
        })
}
