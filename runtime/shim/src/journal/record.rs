//! Records of the journal, one per line.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::protocol::{Exit, Failure, Lifetime, MemoryGuard, Output, StopReason, Then};
use crate::start_id::StartId;

/// An entry of the journal. Environments and commands are left out, since they may contain secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Record {
    /// The first record of a journal.
    Head {
        /// Version of the journal's format.
        version: u32,
        /// Identity of the journal, which is part of each process's tag.
        instance: String,
        /// Folder in which the journal was created; a copy elsewhere owns no processes.
        folder: PathBuf,
    },
    /// A shim began under this boot: processes of other boots have ended.
    Boot {
        /// Identity of the boot.
        boot: String,
        /// Time of the record, in milliseconds since 1970.
        at_ms: u64,
    },
    /// A higher epoch began, or its holder changed the lifetime.
    Epoch {
        /// Epoch that became the highest one.
        epoch: u64,
        /// Fate of processes whose holder is gone.
        lifetime: Lifetime,
    },
    /// An epoch ended with its lease or connection; its later commands are refused.
    EpochOver {
        /// Epoch that ended.
        epoch: u64,
    },
    /// A start is intended. Stored before the process exists.
    Start {
        /// Start id, with a counter higher than any before for its uid.
        id: StartId,
        /// Epoch of the client that ordered the start.
        epoch: u64,
        /// Time of the order, in milliseconds since 1970.
        at_ms: u64,
        /// Output file of the process; none if output is discarded.
        output: Option<Output>,
    },
    /// The process exists.
    Started {
        /// Start id of the process that now exists.
        id: StartId,
        /// Process id, unique together with `start_time`.
        pid: u32,
        /// Clock ticks between boot and the start of the process.
        start_time: u64,
        /// Enforcement of the memory limit.
        memory: MemoryGuard,
    },
    /// The program could not be started.
    Failed {
        /// Start id of the process that could not be started.
        id: StartId,
        /// Class and message of the failure.
        failure: Failure,
    },
    /// A stop is intended. Stored before the signal.
    Stop {
        /// Start id of the process to stop.
        id: StartId,
        /// Signal, deadline and reason of the stop.
        order: StopOrder,
    },
    /// The process has ended. Stored before it is reaped.
    Exit {
        /// Start id of the process that ended.
        id: StartId,
        /// Exit status, time and reason.
        exit: Exit,
    },
    /// The record of a start was removed.
    Forget {
        /// Start id whose record was removed.
        id: StartId,
    },
}

impl Record {
    /// Returns the start of the record; none for records of the whole journal.
    pub(crate) fn id(&self) -> Option<&StartId> {
        match self {
            Self::Head { .. } | Self::Boot { .. } | Self::Epoch { .. } | Self::EpochOver { .. } => None,
            Self::Start { id, .. }
            | Self::Started { id, .. }
            | Self::Failed { id, .. }
            | Self::Stop { id, .. }
            | Self::Exit { id, .. }
            | Self::Forget { id } => Some(id),
        }
    }
}

/// An ordered stop of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StopOrder {
    /// The party or event that ordered the stop.
    pub(crate) reason: StopReason,
    /// Name of the first signal.
    pub(crate) signal: String,
    /// Time of SIGKILL, in milliseconds since boot.
    pub(crate) deadline_ms: u64,
    /// Fate of the start's record after the exit.
    pub(crate) then: Then,
}
