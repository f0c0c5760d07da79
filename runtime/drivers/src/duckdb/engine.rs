//! The engine: one file, opened once, and the work on it.
//!
//! What it consists of are its [`Parts`], each with a lock of its own. A unit of work enters by the gate, gets a connection
//! of the pool, and gives both back when its thread is done, whatever became of the caller.
//!
//! The file is opened once and connections are made from that: opening it twice in one process and closing one
//! would drop the lock that keeps other processes out.

mod closing;
mod opening;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, MutexGuard};

use tokio::task;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::changes::Changes;
use super::failure::Aftermath;
use super::gate::{Company, Gate, Pass};
use super::growth::Growth;
use super::known_names::{Claim, KnownNames};
use super::names::Names;
use super::options::Options;
use super::pool::{Checkout, Pool};
use super::running::{Finished, Running};
use super::session::Beginnings;
use super::sharing::Sharing;
use super::sys::Connection;
use super::transaction::Work;
use super::trash_bounds::TrashBounds;
use crate::olap::{Failure, Group};

/// DuckDB on one file. Clones share the engine.
///
/// The file is opened by the first work that needs it. Dropping the last clone closes it; [`Engine::close`] does it
/// in order and says what the file looks like then.
#[derive(Clone)]
pub struct Engine {
    pub(super) parts: Arc<Parts>,
}

/// The shared state of an engine.
pub(super) struct Parts {
    options: Options,
    pub(super) gate: Gate,
    pub(super) pool: Pool,
    beginnings: Beginnings,
    pub(super) names: Arc<KnownNames>,
    pub(super) changes: Changes,
    pub(super) growth: Growth,
    pub(super) sharing: Sharing,
    pub(super) trash: TrashBounds,
    pub(super) group: Arc<Group<Arc<Claim>>>,
    /// True if the project permits the installation of extensions.
    pub(super) installs: AtomicBool,
}

impl Engine {
    /// Creates an engine on a file without opening it.
    pub fn new(options: Options) -> Self {
        let parts = Parts {
            gate: Gate::new(&options),
            pool: Pool::default(),
            beginnings: Beginnings::default(),
            names: Arc::default(),
            changes: Changes::default(),
            growth: Growth::default(),
            sharing: Sharing::new(&options.path),
            trash: TrashBounds::default(),
            group: Arc::default(),
            installs: AtomicBool::new(true),
            options,
        };
        Self {
            parts: Arc::new(parts),
        }
    }

    /// Returns true if this engine has the file open.
    pub fn is_open(&self) -> bool {
        self.parts.pool.is_open()
    }

    /// Returns the options of the engine.
    pub fn options(&self) -> &Options {
        &self.parts.options
    }

    /// Returns the known objects in the file. The lock is never held across work.
    pub(super) fn names(&self) -> MutexGuard<'_, Names> {
        self.parts.names.now()
    }

    /// Waits until no other work has claimed an owner, a name with its current owner, or an output in the trash, and
    /// claims all of them.
    pub(super) async fn claim(
        &self,
        uid: Uuid,
        name: Option<&str>,
        back: Option<Uuid>,
        cancel: &CancellationToken,
    ) -> Result<Claim, Failure> {
        self.be_open(cancel).await?;
        self.parts.names.claim(uid, name, back, cancel).await
    }

    /// Runs a job on a connection in a blocking thread, once the gate permits.
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
        self.be_open(cancel).await?;
        let pass = self.enter(cancel, company).await?;
        self.work_with(pass, Running::start(cancel, None), job).await
    }

    /// Runs a job with an already acquired pass through the gate. Dropping the future interrupts the job.
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
        let _change = self.parts.changes.begin();
        self.read_here(running, job)
    }

    /// Runs a job that does everything in a read-only transaction, as [`work_here`](Self::work_here) does. It counts as no
    /// change.
    pub(super) fn read_here<T, E: From<Failure>>(
        &self,
        running: &Running,
        job: impl FnOnce(&Work<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let _finished = Finished(running);
        let connection = self.checkout()?;
        let work = Work::new(&connection, running).confined(self.options());
        running.arm(connection.interrupt());
        let done = job(&work);
        // The connection's next work is another's.
        running.disarm();
        let aftermath = work.aftermath();
        self.put_back(connection, aftermath);
        done
    }

    /// Waits at the gate until work is permitted.
    ///
    /// # Cancel safety
    /// Dropping the future gives the place in the queue back.
    pub(super) async fn enter(&self, cancel: &CancellationToken, company: Company) -> Result<Pass, Failure> {
        let forget = || {
            if self.parts.pool.abandon() {
                tracing::info!(path = %self.options().path.display(), "opening the engine's file anew");
            }
        };
        self.parts.gate.enter(cancel, company, forget).await
    }

    /// Takes a connection from the pool, opening the file if necessary; concurrent callers wait for the opening.
    pub(super) fn checkout(&self) -> Result<Connection, Failure> {
        let Parts {
            options, beginnings, ..
        } = &*self.parts;
        match self.parts.pool.checkout(&options.path, || self.open_here())? {
            Checkout::First(connection) => Ok(connection),
            Checkout::Idle(connection) => {
                beginnings.look(options);
                Ok(connection)
            }
            Checkout::New(connection) => {
                let _change = self.parts.changes.begin();
                beginnings.begin(&connection, options)?;
                Ok(connection)
            }
        }
    }

    /// Returns a connection to the pool, or discards it if the work left it or the engine unusable.
    pub(super) fn put_back(&self, connection: Connection, aftermath: Aftermath) {
        match aftermath {
            Aftermath::Usable => {
                self.parts.sharing.note_use();
                self.parts.pool.check_in(connection);
            }
            Aftermath::Spent => {}
            Aftermath::Broken => self.parts.gate.declare_broken(),
        }
    }

    /// Opens an uninitialised connection to the open file, which sees only global settings.
    pub(super) fn bare_connection(&self) -> Result<Connection, Failure> {
        self.parts.pool.bare_connection(&self.options().path)
    }

    /// Requests that the file be reopened before the next work, since the statements at the start of connections have
    /// changed.
    pub(super) fn renew(&self) {
        if self.is_open() {
            self.parts.gate.declare_broken();
        }
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("options", self.options())
            .finish_non_exhaustive()
    }
}

/// Runs a blocking function on its own thread. A panic fails only this work.
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
