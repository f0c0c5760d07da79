//! Report of a process to clients.

use serde::{Deserialize, Serialize};

use crate::start_id::StartId;

/// A start with the current state of its process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Start id by which clients know the process.
    pub id: StartId,
    /// Epoch of the client that ordered the start.
    pub epoch: u64,
    /// Time of the order, in milliseconds since 1970.
    pub started_at_ms: u64,
    /// Stage of the process's life.
    pub phase: Phase,
    /// Reason of an ordered stop; none before one is ordered.
    pub stopping: Option<StopReason>,
    /// Enforcement of the memory limit.
    pub memory: MemoryGuard,
}

/// The stage of a process's life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The start is stored; the process does not exist yet.
    Starting,
    /// The process runs.
    Running {
        /// Process id, which is also its process group's id.
        pid: u32,
        /// True if an earlier shim started the process, so that its exit code will be unknown.
        adopted: bool,
    },
    /// The process could not be started.
    Failed(Failure),
    /// The process has ended.
    Exited(Exit),
}

/// The failure of a start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Class by which clients decide about a retry.
    pub class: FailureClass,
    /// Message for people.
    pub message: String,
}

/// Class of a failed start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// The program or its interpreter does not exist. Permanent.
    ProgramMissing,
    /// The file is not executable or no program. Permanent.
    NotExecutable,
    /// The working directory does not exist. Permanent.
    BadFolder,
    /// The command is empty, too long or has a zero byte. Permanent.
    BadCommand,
    /// The output file can't be opened. Transient: a disk may be full.
    BadOutput,
    /// The system had no room for another process. Transient.
    ForkFailed,
}

impl FailureClass {
    /// Returns true if a retry would fail until a person changes something.
    pub fn is_permanent(self) -> bool {
        !matches!(self, Self::BadOutput | Self::ForkFailed)
    }
}

/// An exit of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Exit code, signal or other cause.
    pub end: End,
    /// Time at which the shim observed the exit, in milliseconds since 1970.
    pub at_ms: u64,
    /// Reason of a stop before the exit; `None` if the process ended by itself.
    pub stop: Option<StopReason>,
}

/// The way in which a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Exited with this code.
    Code(i32),
    /// Killed by this signal.
    Signal(i32),
    /// Killed at its memory limit.
    OutOfMemory,
    /// Not observed: the shim was killed in the meantime.
    Unknown,
    /// Ended by a reboot of the machine.
    Reboot,
}

/// The party or event because of which the shim stops a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// A client ordered it.
    Ordered,
    /// The lease of the holder expired.
    LeaseExpired,
    /// The connection of the holder ended.
    HolderGone,
    /// The shim was told to end.
    ShimEnded,
    /// The state folder is gone.
    FolderGone,
}

/// The enforcement of a memory limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryGuard {
    /// No limit.
    #[default]
    None,
    /// A delegated control group, which counts all descendants together and reports running out of memory.
    Cgroup,
    /// A data limit per process: allocations fail, and the program handles that.
    DataLimit,
}
