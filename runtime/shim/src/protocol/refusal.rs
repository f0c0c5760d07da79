//! Refusals of requests by the shim.

use serde::{Deserialize, Serialize};

use crate::start_id::StartId;

/// The refusal of a request, which changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The shim speaks another version of the protocol.
    #[error("the shim speaks version {supported} of the protocol")]
    Protocol {
        /// Version that the shim speaks.
        supported: u32,
    },
    /// The connection has no epoch: hello is missing, or named none.
    #[error("the connection has no epoch in which it may change something")]
    NoEpoch,
    /// The epoch is stale: a later holder has connected, or the lease has expired.
    #[error("epoch {epoch} is over: the newest is {newest}")]
    StaleEpoch {
        /// Epoch of the connection.
        epoch: u64,
        /// Highest epoch seen; equal to `epoch` if the lease expired.
        newest: u64,
    },
    /// Another start of the same uid is still running.
    #[error("{living} still runs")]
    Occupied {
        /// Start id of the running process.
        living: StartId,
    },
    /// A later start of the same uid exists.
    #[error("{newer} is a later start")]
    Superseded {
        /// Start id of the later start.
        newer: StartId,
    },
    /// The process runs, so its record can't be removed.
    #[error("the process still runs")]
    StillRunning,
    /// The table of starts is full.
    #[error("the shim keeps at most {most} starts")]
    Full {
        /// The most starts in the table.
        most: usize,
    },
    /// A signal name, path or text is not valid.
    #[error("{0}")]
    Malformed(String),
    /// The journal can't be written, so no change is permitted.
    #[error("the journal can't be written: {0}")]
    Journal(String),
    /// The shim is shutting down.
    #[error("the shim is ending")]
    Ending,
}
