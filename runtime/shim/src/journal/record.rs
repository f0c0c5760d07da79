//! One line of the journal.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::protocol::{Exit, Failure, Lifetime, MemoryGuard, Output, StopReason, Then};
use crate::start_id::StartId;

/// Something that happened. Environments and commands are not in it: they may hold secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Record {
    /// The beginning of a journal.
    Head {
        /// The version of the format.
        version: u32,
        /// The identity of the journal, in the tag of each process.
        instance: String,
        /// The folder that it was made in: a copy of it elsewhere owns no process.
        folder: PathBuf,
    },
    /// A shim began under this boot: what lived under another one has ended.
    Boot {
        /// The identity of the boot.
        boot: String,
        /// The time, in milliseconds since 1970.
        at_ms: u64,
    },
    /// A higher epoch was seen, or its holder changed its mind.
    Epoch {
        /// The epoch.
        epoch: u64,
        /// The ending of processes without this holder.
        lifetime: Lifetime,
    },
    /// An epoch ended with its lease or connection: its commands are refused, too.
    EpochOver {
        /// The epoch.
        epoch: u64,
    },
    /// A start is intended. Stored before the process is there.
    Start {
        /// The start.
        id: StartId,
        /// The epoch that orders it.
        epoch: u64,
        /// The time, in milliseconds since 1970.
        at_ms: u64,
        /// The file for its output.
        output: Option<Output>,
    },
    /// The process is there.
    Started {
        /// The start.
        id: StartId,
        /// Its pid.
        pid: u32,
        /// Ticks from boot to its start.
        start_time: u64,
        /// The way in which its memory is limited.
        memory: MemoryGuard,
    },
    /// The program could not be started.
    Failed {
        /// The start.
        id: StartId,
        /// The reason.
        failure: Failure,
    },
    /// A stop is intended. Stored before the signal.
    Stop {
        /// The start.
        id: StartId,
        /// The order.
        order: StopOrder,
    },
    /// The process has ended. Stored before it is reaped.
    Exit {
        /// The start.
        id: StartId,
        /// The end.
        exit: Exit,
    },
    /// The start is forgotten.
    Forget {
        /// The start.
        id: StartId,
    },
}

impl Record {
    /// Returns the start that the record is of.
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

/// A stop that was ordered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StopOrder {
    /// The reason.
    pub(crate) reason: StopReason,
    /// The name of the first signal.
    pub(crate) signal: String,
    /// The time of SIGKILL, in milliseconds since boot.
    pub(crate) deadline_ms: u64,
    /// The record after the exit.
    pub(crate) then: Then,
}
