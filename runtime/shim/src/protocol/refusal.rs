//! Reasons for which the shim refuses a request.

use serde::{Deserialize, Serialize};

use crate::start_id::StartId;

/// A request that was not carried out, and changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The shim speaks another version.
    #[error("the shim speaks version {supported} of the protocol")]
    Protocol {
        /// Its version.
        supported: u32,
    },
    /// The connection did not begin with hello, or said it without an epoch.
    #[error("the connection has no epoch in which it may change something")]
    NoEpoch,
    /// Another holder has been here since, or the lease has ended.
    #[error("epoch {epoch} is over: the newest is {newest}")]
    StaleEpoch {
        /// The epoch of the connection.
        epoch: u64,
        /// The highest one seen; the same if that one's lease has ended.
        newest: u64,
    },
    /// Another start of the same uid still runs.
    #[error("{living} still runs")]
    Occupied {
        /// The start that runs.
        living: StartId,
    },
    /// A later start of the same uid is known.
    #[error("{newer} is a later start")]
    Superseded {
        /// The later start.
        newer: StartId,
    },
    /// Its process runs: it can't be forgotten.
    #[error("the process still runs")]
    StillRunning,
    /// The table of starts is full.
    #[error("the shim keeps at most {most} starts")]
    Full {
        /// The bound.
        most: usize,
    },
    /// The name of a signal, a path or a text is none.
    #[error("{0}")]
    Malformed(String),
    /// The journal can't be written, so nothing may be changed.
    #[error("the journal can't be written: {0}")]
    Journal(String),
    /// The shim is about to end.
    #[error("the shim is ending")]
    Ending,
}
