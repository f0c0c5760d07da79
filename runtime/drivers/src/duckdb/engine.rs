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
use super::guarantees::{GUARANTEES, LAKE_GUARANTEES};
use super::known_names::{Claim, KnownNames};
use super::lake::{self, Lake, WriterTurn};
use super::names::Names;
use super::options::Options;
use super::pool::{Checkout, Pool};
use super::running::{Finished, Running};
use super::session::Beginnings;
use super::sharing::Sharing;
use super::sys::Connection;
use super::transaction::Work;
use super::trash_bounds::TrashBounds;
use crate::olap::{Access, Bounds, Failure, Group, Guarantees, Home, Part};

/// DuckDB on one file. Clones share the engine.
///
/// The file is opened by the first work that needs it. Dropping the last clone closes it; [`Engine::close`] does it
/// in order and says what the file looks like then.
#[derive(Clone)]
pub struct Engine {
    pub(super) parts: Arc<Parts>,
}

/// The effect that a unit of work is to have on the data. In a file all are the same; in a lake one changes at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Intent {
    /// Changes the data, under the owner's epoch.
    Change,
    /// Reads the data with the known names, which are to be those of the lake.
    List,
    /// Reads the data alone.
    Read,
}

/// The shared state of an engine.
pub(super) struct Parts {
    options: Options,
    /// The lake that holds the data; none for a file.
    pub(super) lake: Option<Lake>,
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
        let lake = match &options.home {
            Home::File => None,
            Home::Lake(home) => Some(Lake::new((**home).clone())),
        };
        let bounds = match lake {
            None => Bounds::OF_FILE,
            Some(_) => Bounds::OF_LAKE,
        };
        let parts = Parts {
            lake,
            gate: Gate::new(&options),
            pool: Pool::default(),
            beginnings: Beginnings::default(),
            names: Arc::default(),
            changes: Changes::default(),
            growth: Growth::default(),
            sharing: Sharing::new(&options.path),
            trash: TrashBounds::default(),
            group: Arc::new(Group::new(bounds)),
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

    /// Returns the lake that holds the data; none for a file.
    pub(super) fn lake(&self) -> Option<&Lake> {
        self.parts.lake.as_ref()
    }

    /// Returns the failure of a call for a part, unless the data's home has it.
    pub(super) fn has(&self, part: Part, what: &'static str) -> Result<&Self, Failure> {
        match self.guarantees().has(part) {
            true => Ok(self),
            false => Err(Failure::lacks(what)),
        }
    }

    /// Returns the guarantees of the data's home.
    pub(super) fn guarantees(&self) -> Guarantees {
        match self.parts.lake {
            None => GUARANTEES,
            Some(_) => LAKE_GUARANTEES,
        }
    }

    /// Returns true if tables that are replaced move to a trash.
    pub(super) fn keeps_trash(&self) -> bool {
        self.guarantees().has(Part::Trash) && self.parts.trash.keeps()
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

    /// Runs a job that may change the data on a connection in a blocking thread, once the gate permits.
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
        self.work_to(Intent::Change, cancel, company, job).await
    }

    /// Runs a job as [`work`](Self::work) does, with another effect on the data.
    pub(super) async fn work_to<T, E>(
        &self,
        intent: Intent,
        cancel: &CancellationToken,
        company: Company,
        job: impl FnOnce(&Work<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Failure> + Send + 'static,
    {
        self.be_open(cancel).await?;
        // Before the gate: whoever waits for it must not hold up work that wants to be alone.
        let turn = self.writer_turn(intent, cancel).await?;
        let pass = self.enter(cancel, company).await?;
        let this = self.clone();
        let job = move |work: &Work<'_>| {
            let _turn = turn;
            this.prepare(work, intent)?;
            job(work)
        };
        self.work_with(pass, Running::start(cancel, None), job).await
    }

    /// Waits until no other work of this engine writes to its lake. Reading does not wait, nor work in a file.
    pub(super) async fn writer_turn(
        &self,
        intent: Intent,
        cancel: &CancellationToken,
    ) -> Result<Option<WriterTurn>, Failure> {
        match self.lake().filter(|_| intent != Intent::Read) {
            Some(lake) => lake.writer(cancel).await.map(Some),
            None => Ok(None),
        }
    }

    /// Takes the lake before a change, unless this engine holds it, and reads the names if somebody else changed the lake.
    pub(super) fn prepare(&self, work: &Work<'_>, intent: Intent) -> Result<(), Failure> {
        let Some(lake) = self.lake().filter(|_| intent != Intent::Read) else {
            return Ok(());
        };
        let connection = work.connection();
        if intent == Intent::Change && self.options().access == Access::ReadWrite {
            lake.take_if_due(connection).map_err(|stop| work.stopped(stop))?;
        }
        let moved = lake.has_moved(connection).map_err(|raw| work.fail(&raw, None))?;
        if moved {
            self.parts.sharing.count_change();
            self.read_names(work)?;
        }
        Ok(())
    }

    /// Returns true if a change that failed may be tried again, after which the names are those of the lake as it is now.
    pub(super) fn tries_again(
        &self,
        work: &Work<'_>,
        failure: &Failure,
        tries: &mut u32,
    ) -> Result<bool, Failure> {
        if !lake::is_conflict(failure) || *tries >= lake::MOST_TRIES {
            return Ok(false);
        }
        *tries += 1;
        work.resume_interrupts();
        self.prepare(work, Intent::Change)?;
        Ok(true)
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
        let work = Work::new(&connection, running)
            .confined(self.options())
            .in_lake(self.lake());
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
