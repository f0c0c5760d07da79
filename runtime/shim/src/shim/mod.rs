//! The shim: one thread that waits for its children, its clients and the clock.
//!
//! A turn takes what there is: exits first, then the requests of all connections, then what is due. Requests of one turn
//! share their wait for the disk: intents are stored together, carried out, and their outcomes written together, before
//! anybody is told.
//!
//! Invariants: nothing is told that is not stored; a process is reaped after its exit is stored; a start whose intent is
//! stored is never spawned again.

mod calls;
mod connection;
mod exits;
mod lifetime;
mod poll;
mod recover;
mod stops;
mod sweep;

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, Signal, getrlimit, set_child_subreaper, setrlimit, setsid};

use self::connection::Connection;
use self::poll::{Poll, Ready, Token};
use crate::cgroup::Delegated;
use crate::clock;
use crate::folder::Folder;
use crate::journal::{Journal, Opened, Record, Table};
use crate::log::Log;
use crate::output::Outputs;
use crate::protocol::{Lifetime, StopReason};
use crate::start_id::StartId;

/// Time without process and client after which a shim ends. A program that restarts at once still finds it.
pub const IDLE: Duration = Duration::from_secs(10);

/// Grace period of processes when the shim is told to end, in milliseconds.
const END_GRACE_MS: u64 = 5_000;

/// Delay before the journal is written again after a failure, in milliseconds.
const JOURNAL_RETRY_MS: u64 = 1_000;

/// Settings of a shim.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Path of the state folder, which must exist.
    pub state_folder: PathBuf,
    /// Time without process and client after which the shim ends: [`IDLE`].
    pub idle: Duration,
}

/// The reason for which a shim ended without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Another shim serves the folder.
    AlreadyThere,
    /// No process ran and no client was connected.
    Idle,
    /// The shim received a signal to end, and all processes have ended.
    Told,
    /// The shim's folder was removed, and all processes have ended.
    FolderGone,
}

/// The error of a shim that can't start or continue.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The shim's folder can't be used.
    #[error("the folder of the shim can't be used")]
    Folder(#[source] io::Error),
    /// The journal can't be opened.
    #[error("the journal of the shim can't be opened")]
    Journal(#[source] io::Error),
    /// The system refused another operation that the shim needs.
    #[error("the system refuses {0}")]
    System(&'static str, #[source] io::Error),
}

/// Runs a shim until no work is left. The shim takes over signals, limits and children of the calling process.
///
/// # Errors
/// When it can't begin, or the system stops serving it. Processes that run then go on; the next shim finds them.
pub fn run(settings: &Settings) -> Result<Ended, RunError> {
    let state = settings.state_folder.canonicalize().map_err(RunError::Folder)?;
    let folder = Folder::of(&state);
    folder.make().map_err(RunError::Folder)?;
    let Some(lock) = folder.lock().map_err(RunError::Folder)? else {
        return Ok(Ended::AlreadyThere);
    };
    let files = prepare_process()?;
    let Opened {
        journal,
        table,
        damage,
    } = Journal::open(folder.path()).map_err(RunError::Journal)?;
    let mut log = Log::open(&folder.log());
    if let Some(damage) = damage {
        log.line(&damage);
    }
    let listener = folder.listen().map_err(RunError::Folder)?;
    let poll = Poll::new(&listener, &folder).map_err(|error| RunError::System("polling", error))?;
    let mut shim = Shim {
        files,
        groups: Delegated::find(&table.instance),
        idle_ms: u64::try_from(settings.idle.as_millis()).unwrap_or(u64::MAX),
        idle_since: Some(clock::since_boot_ms()),
        _lock: lock,
        listener,
        poll,
        journal,
        table,
        log,
        outputs: Outputs::default(),
        connections: BTreeMap::new(),
        adopted: HashMap::new(),
        pidfds: BTreeMap::new(),
        children: HashMap::new(),
        deadlines: BTreeMap::new(),
        sweeps: BTreeMap::new(),
        sweeps_from: 0,
        lifetime_deadline: None,
        journal_retry: None,
        untold: Vec::new(),
        ending: None,
    };
    shim.recover()
        .map_err(|error| RunError::System("looking at processes", error))?;
    shim.serve().map_err(|error| RunError::System("polling", error))
}

/// Prepares the process to be a shim. Returns the previous soft limit of open files.
fn prepare_process() -> Result<Option<u64>, RunError> {
    let system = |what| move |error: rustix::io::Errno| RunError::System(what, error.into());
    // A session of its own, so that no terminal and no group signal of the program reaches it. Refused if it leads a
    // group already, which does as well.
    let _ = setsid();
    rustix::thread::set_no_new_privs(true).map_err(system("giving up new privileges"))?;
    // What escapes its parent becomes a child of the shim, and can be found and reaped.
    set_child_subreaper(Some(rustix::process::getpid())).map_err(system("adopting orphans"))?;
    // One descriptor for each process that an earlier shim started.
    let files = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: files.maximum,
        maximum: files.maximum,
    };
    let _ = setrlimit(Resource::Nofile, most);
    Ok(files.current)
}

/// The whole state of a shim.
struct Shim {
    _lock: File,
    listener: UnixListener,
    poll: Poll,
    journal: Journal,
    table: Table,
    log: Log,
    outputs: Outputs,
    groups: Option<Delegated>,
    /// Soft limit of open files for processes that set none.
    files: Option<u64>,
    connections: BTreeMap<Token, Connection>,
    /// Processes of an earlier shim, each with a descriptor to watch.
    adopted: HashMap<StartId, OwnedFd>,
    /// Starts by their polled descriptor.
    pidfds: BTreeMap<Token, StartId>,
    /// Starts of the shim's own children, by pid.
    children: HashMap<u32, StartId>,
    /// Times of SIGKILL for stops in progress, in milliseconds since boot.
    deadlines: BTreeMap<StartId, u64>,
    /// Ended starts that may have left processes behind.
    sweeps: BTreeMap<StartId, sweep::Sweep>,
    /// Time before which the processes are not listed again, in milliseconds since boot.
    sweeps_from: u64,
    /// Time at which the processes of the highest epoch are killed, in milliseconds since boot; none if they are kept.
    lifetime_deadline: Option<u64>,
    /// Time of the next attempt to write the journal, in milliseconds since boot; none if nothing waits.
    journal_retry: Option<u64>,
    /// Exits that are not stored yet.
    untold: Vec<exits::Seen>,
    /// Reason of a shutdown in progress; none otherwise.
    ending: Option<StopReason>,
    idle_ms: u64,
    idle_since: Option<u64>,
}

impl Shim {
    /// Runs turns of the loop until no work is left.
    fn serve(&mut self) -> io::Result<Ended> {
        loop {
            let now = clock::since_boot_ms();
            if let Some(ended) = self.is_over(now) {
                return Ok(ended);
            }
            self.poll.arm(self.next_due())?;
            let ready = self.poll.wait()?;
            self.turn(ready)?;
        }
    }

    fn turn(&mut self, ready: Vec<Ready>) -> io::Result<()> {
        let now = clock::since_boot_ms();
        let (mut gone, mut readable, mut children_ended) = (Vec::new(), Vec::new(), false);
        for event in ready {
            match event {
                Ready::Listener => self.accept(),
                Ready::Children => children_ended = true,
                Ready::Told => self.end(StopReason::ShimEnded),
                Ready::Grown(watch) => {
                    self.outputs.grew(watch, now);
                }
                Ready::Folder => self.check_folder(),
                Ready::Timer => {}
                Ready::Token(token) => match self.pidfds.get(&token) {
                    Some(id) => gone.push(id.clone()),
                    None => readable.push(token),
                },
            }
        }
        if children_ended {
            self.reap();
        }
        for id in gone {
            self.adopted_ended(&id);
        }
        self.store_exits();
        self.answer(&readable);
        self.due();
        self.flush();
        if let Err(error) = self.journal.compact(&self.table) {
            self.log.line(&format!("the journal can't be compacted: {error}"));
        }
        Ok(())
    }

    /// Appends a record and applies it to the table. The caller syncs before reporting it.
    fn record(&mut self, record: Record) {
        self.journal.append(&record);
        self.table.apply(&record);
    }

    /// Performs all work that is due.
    fn due(&mut self) {
        let now = clock::since_boot_ms();
        if self.lifetime_deadline.is_some_and(|due| now >= due) {
            self.lifetime_ended();
        }
        if self.journal_retry.is_some_and(|due| now >= due) {
            self.journal_retry = None;
            self.store_exits();
        }
        self.kill_overdue(now);
        self.sweep(now);
        self.outputs.look(self.poll.inotify(), now);
        let is_idle = self.table.living() == 0 && self.connections.is_empty() && self.sweeps.is_empty();
        self.idle_since = is_idle.then(|| self.idle_since.unwrap_or(now));
    }

    /// Returns the time at which the next turn is due, in milliseconds since boot.
    fn next_due(&self) -> Option<u64> {
        let idle = self.idle_since.map(|since| since.saturating_add(self.idle_ms));
        let deadlines = self.deadlines.values().copied();
        let sweeps = self
            .sweeps
            .values()
            .map(|sweep| sweep.due().max(self.sweeps_from));
        let others = [
            idle,
            self.lifetime_deadline,
            self.journal_retry,
            self.outputs.due(),
        ];
        deadlines.chain(sweeps).chain(others.into_iter().flatten()).min()
    }

    fn is_over(&self, now: u64) -> Option<Ended> {
        let is_empty = self.table.living() == 0 && self.sweeps.is_empty();
        match self.ending {
            Some(StopReason::FolderGone) if is_empty => Some(Ended::FolderGone),
            Some(_) if is_empty => Some(Ended::Told),
            Some(_) => None,
            None => {
                let is_idle = self
                    .idle_since
                    .is_some_and(|since| now >= since.saturating_add(self.idle_ms));
                is_idle.then_some(Ended::Idle)
            }
        }
    }

    /// Begins a shutdown: stops all processes.
    fn end(&mut self, reason: StopReason) {
        if self.ending.is_some() {
            return;
        }
        self.ending = Some(reason);
        self.log.line(&format!("ends: {reason:?}"));
        match reason {
            StopReason::ShimEnded => self.stop_all(reason, Signal::TERM, END_GRACE_MS),
            _ => self.stop_all(reason, Signal::KILL, 0),
        }
    }

    /// Shuts down if the folder is gone, since no client could find the shim any more.
    fn check_folder(&mut self) {
        if !self.journal.is_in_place() {
            self.journal.lose();
            self.end(StopReason::FolderGone);
        }
    }

    /// Returns the lifetime of the highest epoch's processes; none once the epoch has ended.
    fn lifetime(&self) -> Option<Lifetime> {
        self.table
            .epoch
            .map(|(_, lifetime)| lifetime)
            .filter(|_| !self.table.epoch_is_over)
    }
}
