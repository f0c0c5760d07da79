//! A process as the shim reports it.

use serde::{Deserialize, Serialize};

use crate::start_id::StartId;

/// One start and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// The start.
    pub id: StartId,
    /// The epoch that ordered it.
    pub epoch: u64,
    /// The time of the order, in milliseconds since 1970.
    pub started_at_ms: u64,
    /// The phase.
    pub phase: Phase,
    /// The reason of a stop that was ordered.
    pub stopping: Option<StopReason>,
    /// The way in which its memory is limited.
    pub memory: MemoryGuard,
}

/// The phase of a start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The order is stored; the process is not there yet.
    Starting,
    /// It lives.
    Running {
        /// Its pid, which is also its group.
        pid: u32,
        /// True if an earlier shim started it, so that its exit code will be unknown.
        adopted: bool,
    },
    /// It could not be started.
    Failed(Failure),
    /// It has ended.
    Exited(Exit),
}

/// The reason why a program was not started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The class.
    pub class: FailureClass,
    /// A sentence for a person.
    pub message: String,
}

/// Classes of failed starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// There is no such program, or not the interpreter that its first line names. Permanent.
    ProgramMissing,
    /// The program may not be executed, or is none. Permanent.
    NotExecutable,
    /// The folder to start in is none. Permanent.
    BadFolder,
    /// The command is empty, too long or has a zero byte. Permanent.
    BadCommand,
    /// The output file can't be opened. Transient: a disk may be full.
    BadOutput,
    /// The system had no room for another process. Transient.
    ForkFailed,
}

impl FailureClass {
    /// Returns true if the same start would fail again until a person changes something.
    pub fn is_permanent(self) -> bool {
        !matches!(self, Self::BadOutput | Self::ForkFailed)
    }
}

/// The end of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// The way.
    pub end: End,
    /// The time at which the shim saw it, in milliseconds since 1970.
    pub at_ms: u64,
    /// The reason of the stop that it followed; `None` if it ended by itself.
    pub stop: Option<StopReason>,
}

/// Ways in which a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// With a code.
    Code(i32),
    /// By a signal.
    Signal(i32),
    /// By the limit of its memory.
    OutOfMemory,
    /// Unseen: the shim was killed in between.
    Unknown,
    /// With the machine.
    Reboot,
}

/// Reasons for which the shim stops a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// A client ordered it.
    Ordered,
    /// The lease of its holder ended.
    LeaseExpired,
    /// The connection of its holder ended.
    HolderGone,
    /// The shim was told to end.
    ShimEnded,
    /// The state folder is gone.
    FolderGone,
}

/// Ways to limit the memory of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryGuard {
    /// Not at all.
    #[default]
    None,
    /// A delegated control group: counts all descendants together, and its end is known to be out of memory.
    Cgroup,
    /// A limit of the data of each process by itself: allocations fail, and the program decides.
    DataLimit,
}
