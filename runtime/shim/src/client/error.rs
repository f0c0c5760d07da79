//! Errors of calls to the shim.

use std::io;

use crate::protocol::Refusal;

/// The error of a call to the shim.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The shim refused the call and changed nothing.
    #[error("the shim refused")]
    Refused(#[from] Refusal),
    /// The state folder can't be used.
    #[error("the state folder can't be used")]
    Folder(#[source] io::Error),
    /// No shim serves the state folder, and the client may not start one.
    #[error("there is no shim")]
    NotThere(#[source] io::Error),
    /// A shim can't be started.
    #[error("the shim can't be started")]
    Launch(#[source] io::Error),
    /// A started shim ended before it served; the end of its log.
    #[error("the shim ended at once; its last words: {0}")]
    Ended(String),
    /// Another user listens on the socket in the folder.
    #[error("the socket belongs to another user")]
    WrongUser,
    /// The connection was lost before the answer.
    #[error("the connection to the shim was lost")]
    Disconnected,
    /// The answer did not arrive in time. The call may have been carried out.
    #[error("the shim did not answer in time")]
    TimedOut,
    /// The answer belongs to another sort of call.
    #[error("the shim gave an answer of another kind")]
    Unexpected,
}

impl Error {
    /// Returns true if the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Refused(refusal) => matches!(refusal, Refusal::Journal(_) | Refusal::Ending),
            Self::NotThere(_) | Self::Disconnected | Self::TimedOut => true,
            Self::Launch(error) => error.kind() == io::ErrorKind::WouldBlock,
            Self::Ended(_) | Self::Folder(_) | Self::WrongUser | Self::Unexpected => false,
        }
    }
}
