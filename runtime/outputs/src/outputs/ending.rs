//! Changes whose outcome the engine did not report, determined by looking up the output.

use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_drivers::olap::{BuildError, Failure, Output, RenameError};

use super::Outputs;

/// An error that may contain a failure of the engine.
pub(super) trait Ending: From<Failure> {
    /// Returns the failure of the engine, if the error contains one.
    fn failure(&self) -> Option<&Failure>;

    /// Returns true if the error leaves open whether the change happened.
    fn leaves_doubt(&self) -> bool {
        matches!(
            self.failure(),
            Some(
                Failure::Interrupted
                    | Failure::Fatal { .. }
                    | Failure::Closed
                    | Failure::Fenced
                    | Failure::Unknown { .. }
            )
        )
    }

    /// Returns true if the engine did not report whether the change happened.
    fn is_unknown(&self) -> bool {
        matches!(self.failure(), Some(Failure::Unknown { .. }))
    }
}

impl Ending for Failure {
    fn failure(&self) -> Option<&Failure> {
        Some(self)
    }
}

impl Ending for BuildError {
    fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Failed(failure) => Some(failure),
            _ => None,
        }
    }
}

impl Ending for RenameError {
    fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Failed(failure) => Some(failure),
            _ => None,
        }
    }
}

impl Outputs {
    /// Determines the outcome of a change to an owner's output.
    ///
    /// If the engine did not report it, the output is looked up: `done` gets the output that exists now, and returns
    /// the result if the change made it. Otherwise the error remains, and the change is retried.
    pub(super) async fn ended<T, E: Ending>(
        &self,
        end: Result<T, E>,
        owner: Uuid,
        cancel: &CancellationToken,
        done: impl FnOnce(Option<Output>) -> Option<T>,
    ) -> Result<T, E> {
        if !end.as_ref().is_err_and(Ending::is_unknown) {
            return end;
        }
        match done(self.look_up(owner, cancel).await?) {
            Some(done) => Ok(done),
            None => end,
        }
    }
}
