//! Backends, which start, list and stop processes.
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

/// The future type of backends' methods, boxed so that a backend can be a trait object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A system that runs processes.
///
/// A value of it acts in one epoch, that of the lease under which it was made.
pub trait Backend: Send + Sync {
    /// Returns the backend's name for messages, such as `process` or `docker`.
    fn name(&self) -> &'static str;

    /// Returns the epoch under which the backend acts.
    fn epoch(&self) -> u64;

    /// Starts a process once per start id and returns its observation, which may still be starting: the pull of an
    /// image is not awaited.
    ///
    /// Dropping the future leaves open whether the process is started; repeat the request or list.
    ///
    /// # Errors
    /// When the request is refused or the backend can't be reached. A program that can't be started is no error but
    /// [`Phase::NotStarted`], as it is stored under its start id.
    fn start(&self, start: Start) -> BoxFuture<'_, Result<Observation, Error>>;

    /// Begins to stop a process and returns without waiting for its end, which [`News::Changed`] reports. Returns the
    /// observation; `None` if the start is unknown. A repeated request can shorten the grace period but not prolong it.
    ///
    /// Dropping the future leaves open whether the stop has begun.
    ///
    /// # Errors
    /// When the request is refused or the backend can't be reached.
    fn stop(&self, stop: Stop) -> BoxFuture<'_, Result<Option<Observation>, Error>>;

    /// Lists all starts that are not forgotten, in the order of their ids: one call per scan (W2). Read-only, so the
    /// future may be dropped.
    ///
    /// # Errors
    /// When the backend can't be reached.
    fn list(&self) -> BoxFuture<'_, Result<Vec<Observation>, Error>>;

    /// Removes the record of a start whose process has ended, and its output files on request. Succeeds for an unknown
    /// start.
    ///
    /// Dropping the future leaves open whether it is forgotten.
    ///
    /// # Errors
    /// When the process lives, the request is refused or the backend can't be reached.
    fn forget(&self, id: StartId, remove_output: bool) -> BoxFuture<'_, Result<(), Error>>;

    /// Runs a command in the container of a start and returns its exit code, for checks.
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

    /// Returns the time within which all stops that end with this program are carried out; none if there are no such
    /// stops.
    fn stops_within(&self) -> Option<Duration> {
        None
    }

    /// Returns the memory available to another process, in bytes; none if unknown.
    fn free_memory(&self) -> Option<u64> {
        None
    }

    /// Subscribes to news from now on. A lagging receiver loses some, and makes up for them with a listing.
    fn news(&self) -> broadcast::Receiver<News>;
}

/// Connector to a backend, creating its value for one epoch.
pub trait Connect: Send + Sync {
    /// Returns true if the backend runs containers, false if it runs local programs.
    fn runs_containers(&self) -> bool;

    /// Connects without starting anything: a project without workloads has no processes.
    ///
    /// # Errors
    /// When the backend can't be used at all.
    fn connect(&self, epoch: u64) -> Result<Arc<dyn Backend>, Error>;
}

/// A request to start a process once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// Start id, whose counter was stored before the request.
    pub id: StartId,
    /// The program to run.
    pub program: Program,
    /// The whole environment, including ports. Backends add only their tag (W17).
    pub environment: Vec<(String, String)>,
    /// Resource limits of the process and its descendants.
    pub limits: Limits,
    /// Output file of a local process; none for containers, whose engine keeps the output (W19).
    pub output: Option<Output>,
}

/// A local program or a container to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A program that runs on this machine.
    Local {
        /// Program and arguments.
        command: Vec<String>,
        /// Working directory.
        cwd: PathBuf,
    },
    /// A container that runs in the container engine.
    Container(Container),
}

/// The settings of a container to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// Name of the image, with its tag or digest.
    pub image: String,
    /// Policy for pulling the image.
    pub pull: Pull,
    /// Entrypoint, which gets the command as arguments; the image's own if empty.
    pub entrypoint: Vec<String>,
    /// Command; the image's own if empty.
    pub command: Vec<String>,
    /// Working directory in the container; `None` for the image's own.
    pub cwd: Option<String>,
    /// Network: `bridge`, `host`, `none` or the name of a network in the engine.
    pub network: String,
    /// Folders of the host that are mounted into the container.
    pub mounts: Vec<Mount>,
    /// Port mappings: port in the container, and loopback port of the host.
    pub ports: Vec<(u16, u16)>,
}

/// Policy for pulling an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pull {
    /// Pull before each start.
    Always,
    /// Pull if the image is missing locally.
    #[default]
    Missing,
    /// Never pull.
    Never,
}

/// A folder or file of the host that is mounted into a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Absolute path on the host.
    pub from: PathBuf,
    /// Absolute path in the container.
    pub to: String,
    /// True if the container can't write to the mount.
    pub read_only: bool,
}

/// The state of a start as a backend reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// Start id by which requests name the process.
    pub id: StartId,
    /// Epoch under which the start was ordered.
    pub epoch: u64,
    /// The backend's own id for display: a pid or a container's id; none before the process exists.
    pub backend_id: Option<String>,
    /// Time of the order.
    pub started: Timestamp,
    /// True once a stop has been ordered.
    pub stopping: bool,
    /// Phase of the process's life.
    pub phase: Phase,
}

/// The phase of a process's life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// The start is stored; the process does not exist yet.
    Starting,
    /// The process runs.
    Running,
    /// The process could not be started.
    NotStarted {
        /// Reason of the failure.
        failure: StartFailure,
        /// Message for people.
        message: String,
    },
    /// The process has ended.
    Ended {
        /// Cause of the end.
        end: End,
        /// Time at which the backend observed the end.
        at: Timestamp,
    },
}

impl Phase {
    /// Returns true if the process exists or is about to be started.
    pub fn is_alive(&self) -> bool {
        matches!(self, Self::Starting | Self::Running)
    }
}

/// The cause of a process's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// An exit of the process, with its code or signal.
    Exit(Exit),
    /// A reboot of the machine, which counts as no failure (W13).
    Reboot,
}

/// A change that a backend reports. News may be lost; a listing shows the current state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// The state of a start has changed.
    Changed(StartId),
    /// The process of a start has ended.
    Ended {
        /// Start id of the process.
        id: StartId,
        /// Cause of the end.
        end: End,
        /// Time at which the backend observed the end.
        at: Timestamp,
        /// True if a stop had been ordered before.
        was_stopped: bool,
    },
    /// News may have been lost, so a listing is needed.
    Missed,
}

/// The error of a request, which changed nothing unless the variant says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The backend does not answer. The request may have been carried out.
    #[error("`{backend}` can't be reached: {message}")]
    Unreachable {
        /// Name of the backend that does not answer.
        backend: &'static str,
        /// Cause as text.
        message: String,
    },
    /// The epoch is stale: a later holder has connected, or the lease has expired.
    #[error("epoch {epoch} is over: the newest is {newest}")]
    StaleEpoch {
        /// Epoch of the request.
        epoch: u64,
        /// Highest epoch seen.
        newest: u64,
    },
    /// Another start of the same uid is still alive.
    #[error("{living} still runs")]
    Occupied {
        /// Start id of the living process.
        living: StartId,
    },
    /// A later start of the same uid exists.
    #[error("{newer} is a later start")]
    Superseded {
        /// Start id of the later start.
        newer: StartId,
    },
    /// The process is alive, so its record can't be removed.
    #[error("the process still runs")]
    StillRunning,
    /// The backend does not support the request, in general or on this machine.
    #[error("`{backend}` doesn't support it: {message}")]
    Unsupported {
        /// Name of the backend that lacks the feature.
        backend: &'static str,
        /// Description of the unsupported feature.
        message: String,
    },
    /// The project may not start programs.
    #[error("a project in a sandbox starts no programs")]
    Confined,
    /// The backend refused the request for another reason.
    #[error("`{backend}` refuses: {message}")]
    Refused {
        /// Name of the backend that refused.
        backend: &'static str,
        /// Reason as text.
        message: String,
    },
}

impl Error {
    /// Returns true if a retry may succeed soon.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Occupied { .. })
    }
}

/// Returns the available memory of this machine in bytes; none if the system does not report it.
fn free_memory() -> Option<u64> {
    available(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

/// Reads the available memory from the content of `meminfo`, in bytes.
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
