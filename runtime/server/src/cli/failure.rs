//! Why a command could not be carried out, as a person reads it.

use std::io;

use crate::exit::Exit;

/// A command that ends without a result: what was attempted, what may help, the exit code.
#[derive(Debug)]
pub(super) struct Failure {
    pub exit: Exit,
    pub error: anyhow::Error,
    pub hint: Option<String>,
}

impl Failure {
    pub(super) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            error: anyhow::Error::msg(message.into()),
            hint: None,
        }
    }

    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Whether whoever read the output went away.
    pub(super) fn is_closed_pipe(&self) -> bool {
        let closed = |cause: &(dyn std::error::Error + 'static)| {
            cause
                .downcast_ref::<io::Error>()
                .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
        };
        self.error.chain().any(closed)
    }

    /// Whether the output could not be written, for whatever reason.
    pub(super) fn is_output(&self) -> bool {
        self.error.chain().any(|cause| cause.is::<io::Error>())
    }

    /// The message with its causes, outermost first.
    pub(super) fn message(&self) -> String {
        let parts: Vec<String> = self.error.chain().map(ToString::to_string).collect();
        parts.join(": ")
    }
}

/// Output could not be written: whoever read it is gone, or the disk is full.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self {
            exit: Exit::NotNow,
            error: anyhow::Error::new(error).context("can't write the output"),
            hint: None,
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        if error.is_io() {
            return io::Error::from(error).into();
        }
        Self {
            exit: Exit::NotNow,
            error: anyhow::Error::new(error).context("can't write a document"),
            hint: None,
        }
    }
}
