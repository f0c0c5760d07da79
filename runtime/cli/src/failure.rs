//! Failures of commands, for people and as documents.

use std::io;

use watershed::Runtime;
use watershed_api::documents::{CommandError, ErrorDocument};
use watershed_api::{Code, Exit, Problem};

use super::mistake::Mistake;

/// A command that ends without a result: the attempt, a hint, and the exit code.
#[derive(Debug)]
pub(crate) struct Failure {
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

    /// Returns true if the reader of the output has closed it.
    pub(super) fn is_closed_pipe(&self) -> bool {
        let closed = |cause: &(dyn std::error::Error + 'static)| {
            cause
                .downcast_ref::<io::Error>()
                .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
        };
        self.error.chain().any(closed)
    }

    /// Returns true if the output could not be written, for whatever reason.
    pub(super) fn is_output(&self) -> bool {
        self.error.chain().any(|cause| cause.is::<io::Error>())
    }

    /// Adds the SQL statement that failed, under the name of its file.
    pub(super) fn about(mut self, name: &str, sql: &str) -> Self {
        if let Some(mistake) = self.error.downcast_mut::<Mistake>() {
            mistake.text = Some((name.to_owned(), sql.to_owned()));
        }
        self
    }

    /// Draws an error in a statement over its line; none for other failures.
    pub(super) fn drawn(&self) -> Option<String> {
        let mistake = self.error.downcast_ref::<Mistake>()?;
        mistake.drawn(self.hint.as_deref())
    }

    /// Returns the failure as a document.
    pub(super) fn document(&self, runtime: &Runtime) -> ErrorDocument {
        let mistake = self.error.downcast_ref::<Mistake>();
        let code = match mistake {
            Some(mistake) => mistake.named.code.clone(),
            None => self.exit.name().to_owned(),
        };
        let hidden = |text: &str| runtime.redact(text).into_owned();
        ErrorDocument {
            schema: ErrorDocument::SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            exit_code: self.exit.code(),
            error: CommandError {
                code,
                message: hidden(&self.message()),
                hint: self.hint.as_deref().map(hidden),
                at: mistake.and_then(Mistake::at),
            },
        }
    }

    /// Returns the message with its causes, outermost first.
    pub(super) fn message(&self) -> String {
        let parts: Vec<String> = self.error.chain().map(ToString::to_string).collect();
        parts.join(": ")
    }
}

/// Converts an error in writing output: its reader is gone, or the disk is full.
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

/// The error that the process that did the work ended before the answer.
#[derive(Debug, thiserror::Error)]
#[error("the work is not done")]
pub(super) struct OwnerEnded;

/// Converts the problem of a request to the failure that ends the program.
impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        let error = match problem.at {
            Some(named) => anyhow::Error::new(Mistake {
                message: problem.message,
                named: *named,
                text: None,
            }),
            None => anyhow::Error::msg(problem.message),
        };
        Self {
            exit: problem.code.exit(),
            error: match problem.code {
                Code::Stopping => error.context(OwnerEnded),
                _ => error,
            },
            hint: problem.hint.map(|hint| hint.to_string()),
        }
    }
}
