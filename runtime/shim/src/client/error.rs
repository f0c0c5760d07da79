//! Errors of calls.

use std::io;

use crate::protocol::Refusal;

/// Says why a call to the shim failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The shim refused it. Nothing was changed.
    #[error("the shim refused")]
    Refused(#[from] Refusal),
    /// The state folder can't be used.
    #[error("the state folder can't be used")]
    Folder(#[source] io::Error),
    /// There is no shim, and none was to be started.
    #[error("there is no shim")]
    NotThere(#[source] io::Error),
    /// A shim can't be started.
    #[error("the shim can't be started")]
    Launch(#[source] io::Error),
    /// A shim was started and ended before it served.
    #[error("the shim ended at once; its last words: {0}")]
    Ended(String),
    /// Somebody else listens in the folder.
    #[error("the socket belongs to another user")]
    WrongUser,
    /// The connection was lost before an answer came.
    #[error("the connection to the shim was lost")]
    Disconnected,
    /// No answer came in time. The call may have been carried out.
    #[error("the shim did not answer in time")]
    TimedOut,
    /// The answer is that of another call.
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
