//! The end of a change that the engine did not tell: it is looked up in the engine, never assumed.

use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_drivers::olap::{BuildError, Failure, Output, RenameError};

use super::Outputs;

/// An error that may be a failure of the engine.
pub(super) trait Ending: From<Failure> {
    /// Returns the failure, if it is one.
    fn failure(&self) -> Option<&Failure>;

    /// Returns true if it leaves open what became of the work.
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

    /// Returns true if the engine did not say whether the work was done.
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
    /// Settles the end of a change of an owner's output. A change whose end the engine did not tell is looked up: `done` gets the output
    /// that stands there now, and returns the result if the change has made that output. If not, the error stays, and the change is
    /// tried again.
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
