//! Waits until requests have settled.

use std::time::Duration;

use watershed_api::Problem;
use watershed_controller::{RequestError, WaitError};

use crate::report::Entry;

/// A wait without a deadline of its own, which the waiting side may cancel.
pub(super) const UNTIL_DONE: Duration = Duration::MAX;

/// A predicate that selects some of the resources.
pub(super) type Among<'a> = dyn Fn(&Entry) -> bool + Sync + 'a;

/// Waits for requests to settle, except those whose resource is gone.
pub(super) async fn settle(
    requests: Vec<Result<watershed_controller::Request, RequestError>>,
) -> Result<(), WaitError> {
    use watershed_controller::Refusal::Unknown;
    for request in requests {
        match request {
            Ok(mut request) => drop(request.settled(UNTIL_DONE).await?),
            Err(RequestError::Refused(Unknown(_))) => {}
            Err(RequestError::Refused(refusal)) => return Err(WaitError::Refused(refusal)),
        }
    }
    Ok(())
}

/// The reason why the work of a command was not carried out.
pub(super) enum Halt {
    /// The controller stopped first.
    Ended,
    /// The request is refused, for this reason.
    Refused(Problem),
}

impl From<WaitError> for Halt {
    fn from(_: WaitError) -> Self {
        Self::Ended
    }
}

impl From<Problem> for Halt {
    fn from(refusal: Problem) -> Self {
        Self::Refused(refusal)
    }
}
