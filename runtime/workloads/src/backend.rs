//! Backends: they start, list and stop processes.
//!
//! A backend reports and nudges; it decides nothing. Only reconcilers start, stop and count (W3), and a backend restarts
//! nothing by itself. Local processes, containers and simulated processes are used in the same way.
//!
//! # Promises of each backend
//!
//! 1. A start id starts at most one process, whoever dies meanwhile (W13). The same request again answers with what is
//!    there.
//! 2. Of one uid at most one process lives.
//! 3. An end is kept until it is forgotten, so it can be counted once by whoever was away.
//! 4. A request of an epoch below the highest seen is refused (W13).
//! 5. [`News`] are hints. They may come late or never; [`Backend::list`] has everything.

#[cfg(unix)]
pub mod docker;
#[cfg(target_os = "linux")]
pub mod process;
pub mod simulated;

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use watershed_core::Timestamp;
pub use watershed_shim::StartId;
pub use watershed_shim::protocol::{Limits, Output, Stop, Then};

use crate::policy::exit::{Exit, StartFailure};

/// A future of a backend. Boxed, so that backends can be handed in as objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A place where processes run.
///
/// A value of it acts in one epoch, that of the lease under which it was made.
pub trait Backend: Send + Sync {
    /// Returns the name that messages give it, such as `process` or `docker`.
    fn name(&self) -> &'static str;

    /// Returns the epoch in which it acts.
    fn epoch(&self) -> u64;

    /// Starts a process, unless its start id was started before. Returns it as it is, maybe still starting; an image is
    /// not waited for.
    ///
    /// Dropping the future leaves open whether the process is started; repeat the request or list.
    ///
    /// # Errors
    /// When the request is refused or the backend can't be reached. A program that can't be started is no error but
    /// [`Phase::NotStarted`], as it is stored under its start id.
    fn start(&self, start: Start) -> BoxFuture<'_, Result<Observation, Error>>;

    /// Begins to stop a process, and returns at once: [`News::Changed`] follows. Returns it as it is, `None` if its start
    /// is unknown. A second request can shorten the grace period, not prolong it.
    ///
    /// Dropping the future leaves open whether the stop has begun.
    ///
    /// # Errors
    /// When the request is refused or the backend can't be reached.
    fn stop(&self, stop: Stop) -> BoxFuture<'_, Result<Option<Observation>, Error>>;

    /// Lists all starts that are not forgotten, in the order of their ids: one call for each scan (W2). Changes nothing,
    /// so its future may be dropped.
    ///
    /// # Errors
    /// When the backend can't be reached.
    fn list(&self) -> BoxFuture<'_, Result<Vec<Observation>, Error>>;

    /// Forgets a start whose process has ended, with its output files if asked to. One that is unknown is forgotten.
    ///
    /// Dropping the future leaves open whether it is forgotten.
    ///
    /// # Errors
    /// When the process lives, the request is refused or the backend can't be reached.
    fn forget(&self, id: StartId, remove_output: bool) -> BoxFuture<'_, Result<(), Error>>;

    /// Runs a command where the process of a start runs, and returns its code: for checks of containers.
    ///
    /// Dropping the future ends the wait, and the command where that is possible.
    ///
    /// # Errors
    /// When there is no such process, the backend can't be reached, or has no such inside.
    fn run_inside<'a>(&'a self, id: &'a StartId, command: &'a [String]) -> BoxFuture<'a, Result<i32, Error>> {
        let _ = (id, command);
        let backend = self.name();
        let message = "its processes have no inside".to_owned();
        Box::pin(std::future::ready(Err(Error::Unsupported { backend, message })))
    }

    /// Returns the time within which all stops are carried out that end with this program; none if there are none.
    fn stops_within(&self) -> Option<Duration> {
        None
    }

    /// Returns the bytes of memory that are free for one more process; none if nobody knows.
    fn free_memory(&self) -> Option<u64> {
        None
    }

    /// Returns news from now on. A receiver that lags has missed some, which is no harm: it lists.
    fn news(&self) -> broadcast::Receiver<News>;
}

/// Makes the value of a backend that acts in one epoch.
pub trait Connect: Send + Sync {
    /// Returns true if it runs containers, false if it runs local programs.
    fn runs_containers(&self) -> bool;

    /// Connects. Nothing is started by it: a project without workloads has no processes of ours.
    ///
    /// # Errors
    /// When the backend can't be used at all.
    fn connect(&self, epoch: u64) -> Result<Arc<dyn Backend>, Error>;
}

/// A request to start a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// The start. Its counter was stored before.
    pub id: StartId,
    /// The program.
    pub program: Program,
    /// The whole environment, ports included. Backends add their tag and nothing else (W17).
    pub environment: Vec<(String, String)>,
    /// Limits of the process and all that it starts.
    pub limits: Limits,
    /// The file that a local process writes to; containers keep their own output (W19).
    pub output: Option<Output>,
}

/// The program of a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A local program.
    Local {
        /// The program and its arguments.
        command: Vec<String>,
        /// The folder to start in.
        cwd: PathBuf,
    },
    /// A container.
    Container(Container),
}

/// A container to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// The image.
    pub image: String,
    /// The circumstances in which the image is pulled.
    pub pull: Pull,
    /// The program that gets the command as its arguments; empty for that of the image.
    pub entrypoint: Vec<String>,
    /// The command; empty for that of the image.
    pub command: Vec<String>,
    /// The folder in the container to start in; `None` for that of the image.
    pub cwd: Option<String>,
    /// The network: `bridge`, `host`, `none` or the name of one of the engine's.
    pub network: String,
    /// Folders of the host that it sees.
    pub mounts: Vec<Mount>,
    /// Ports of the container with the loopback ports of the host that lead to them.
    pub ports: Vec<(u16, u16)>,
}

/// Circumstances in which an image is pulled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pull {
    /// Before each start.
    Always,
    /// If it is not there.
    #[default]
    Missing,
    /// Never.
    Never,
}

/// A folder or file of the host in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The absolute path on the host.
    pub from: PathBuf,
    /// The absolute path in the container.
    pub to: String,
    /// True if the container can't write to it.
    pub read_only: bool,
}

/// One start as a backend reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The start.
    pub id: StartId,
    /// The epoch that ordered it.
    pub epoch: u64,
    /// The backend's own name for it, for people: a pid, the id of a container.
    pub backend_id: Option<String>,
    /// The time of the order.
    pub started: Timestamp,
    /// True once a stop was ordered.
    pub stopping: bool,
    /// The phase.
    pub phase: Phase,
}

/// The phase of a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// The order is stored; the process is not there yet.
    Starting,
    /// It lives.
    Running,
    /// It could not be started.
    NotStarted {
        /// The reason.
        failure: StartFailure,
        /// A sentence for a person.
        message: String,
    },
    /// It has ended.
    Ended {
        /// The way.
        end: End,
        /// The time at which the backend saw it.
        at: Timestamp,
    },
}

impl Phase {
    /// Returns true if there is a process, or will be.
    pub fn is_alive(&self) -> bool {
        matches!(self, Self::Starting | Self::Running)
    }
}

/// Ways in which a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By itself or by a signal.
    Exit(Exit),
    /// With the machine: not counted (W13).
    Reboot,
}

/// News of a backend: hints to look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// Something about this start has changed.
    Changed(StartId),
    /// The process of this start has ended.
    Ended {
        /// The start.
        id: StartId,
        /// The way.
        end: End,
        /// The time at which the backend saw it.
        at: Timestamp,
        /// True if a stop had been ordered.
        was_stopped: bool,
    },
    /// News may have been missed: list.
    Missed,
}

/// The error of a request, which has changed nothing unless it says so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The backend does not answer. It is open whether the request was carried out.
    #[error("`{backend}` can't be reached: {message}")]
    Unreachable {
        /// The name of the backend.
        backend: &'static str,
        /// The cause.
        message: String,
    },
    /// Another holder has been here since, or the lease has ended.
    #[error("epoch {epoch} is over: the newest is {newest}")]
    StaleEpoch {
        /// The epoch of the request.
        epoch: u64,
        /// The highest one seen.
        newest: u64,
    },
    /// Another start of the same uid still lives.
    #[error("{living} still runs")]
    Occupied {
        /// The start that lives.
        living: StartId,
    },
    /// A later start of the same uid is known.
    #[error("{newer} is a later start")]
    Superseded {
        /// The later start.
        newer: StartId,
    },
    /// The process lives, so it can't be forgotten.
    #[error("the process still runs")]
    StillRunning,
    /// The backend does not do such a thing, or not here.
    #[error("`{backend}` doesn't support it: {message}")]
    Unsupported {
        /// The name of the backend.
        backend: &'static str,
        /// The thing that is not supported.
        message: String,
    },
    /// The project may not start programs.
    #[error("a project in a sandbox starts no programs")]
    Confined,
    /// The request was refused for another reason.
    #[error("`{backend}` refuses: {message}")]
    Refused {
        /// The name of the backend.
        backend: &'static str,
        /// The reason.
        message: String,
    },
}

impl Error {
    /// Returns true if the same request may succeed a little later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Occupied { .. })
    }
}

/// Returns the memory of this machine that is free, in bytes; none where the system does not tell.
fn free_memory() -> Option<u64> {
    available(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

/// Reads what the system can give away without taking it from others, in bytes.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_memory_is_what_the_system_calls_available() {
        let meminfo = "MemTotal:       8152528 kB\nMemFree:          10 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(available(meminfo), Some(2 << 20));
        for other in ["", "MemAvailable:", "MemAvailable: many kB", "MemAvailable: 1 MB"] {
            assert_eq!(available(other), None, "{other}");
        }
    }
}
