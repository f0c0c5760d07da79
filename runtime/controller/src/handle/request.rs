//! A recorded request for a reconcile, with its outcome and settlement.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use watershed_core::{Answer, Applied, CallId, Refusal, RunOutcome, Settlement, Uid};

use crate::inbox::shared::Shared;
use crate::types::error::WaitError;

/// A recorded request, see [`Handle::reconcile`](crate::Handle::reconcile). Dropping it does not withdraw the request.
///
/// ```
/// # use watershed_controller::{Context, Error, Outcome, Reconciler};
/// # struct Pages;
/// # impl Reconciler for Pages {
/// #     type Spec = Page;
/// #     type State = Page;
/// #     async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
/// #         let page = Page(context.spec().0.clone());
/// #         context.set_state(&page).await?;
/// #         Ok(Outcome::default())
/// #     }
/// # }
/// # #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
/// # struct Page(String);
/// # watershed_controller::json_message!(Page, format = 1);
/// use std::time::Duration;
/// use watershed_controller::{Controller, Key, KindOptions, Resource, RunOutcome};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let controller = Controller::builder().kind(KindOptions::new("page"), Pages).start().await?;
/// controller.create(Resource::declare("page", "home", &Page("hello".into()))?).await?;
///
/// let mut request = controller.reconcile(Key::new("page", "home")).await?;
/// let outcome = request.outcome(Duration::from_secs(10)).await?;
/// assert!(matches!(outcome, RunOutcome::Done { .. }));
/// request.settled(Duration::from_secs(10)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Request {
    pub(crate) uid: Uid,
    pub(crate) waits: Waits,
}

impl Request {
    /// Returns the uid of the requested resource.
    pub fn uid(&self) -> Uid {
        self.uid
    }

    /// Waits for the first uncancelled run that started after the request, and returns its outcome; if no run can come,
    /// the outcome is the reason. After an edit that is the first run that saw the edit; after a delete,
    /// [`RunOutcome::Deleted`] or the failure of the first attempt.
    ///
    /// At most until the deadline, or [`DEFAULT_DEADLINE`] if it is none. Cancel-safe, and can be asked again: also after
    /// a [`WaitError::Deadline`], and after the outcome was seen.
    pub async fn outcome(&mut self, deadline: impl Into<Option<Duration>>) -> Result<RunOutcome, WaitError> {
        match self.waits.outcome(deadline.into()).await? {
            Answer::Outcome(outcome) => Ok(outcome),
            Answer::Outcomes(outcomes) => Ok(outcomes.into_iter().next().ok_or(Refusal::OutcomeUnknown)?),
            _ => Err(Refusal::OutcomeUnknown.into()),
        }
    }

    /// Waits until the resource and its descendants at the time of the request have each settled once. After a delete,
    /// waits until the resource has left the catalog, however many attempts that takes.
    ///
    /// Deadline, cancel safety and repetition are as for [`outcome`](Self::outcome).
    pub async fn settled(&mut self, deadline: impl Into<Option<Duration>>) -> Result<Settlement, WaitError> {
        self.waits.settled(deadline.into()).await
    }
}

/// A committed batch, see [`BatchRequest::follow`](crate::request::BatchRequest::follow). Dropping it does not undo the
/// batch.
#[derive(Debug)]
pub struct AppliedBatch {
    pub(crate) applied: Applied,
    pub(crate) waits: Waits,
}

impl AppliedBatch {
    /// Returns the revision with the batch, and the resources of its edits.
    pub fn applied(&self) -> &Applied {
        &self.applied
    }

    /// Waits for the outcome of each edit's resource, in the order of the edits, as [`Request::outcome`] does.
    pub async fn outcomes(
        &mut self,
        deadline: impl Into<Option<Duration>>,
    ) -> Result<Vec<RunOutcome>, WaitError> {
        match self.waits.outcome(deadline.into()).await? {
            Answer::Outcomes(outcomes) => Ok(outcomes),
            Answer::Outcome(outcome) => Ok(vec![outcome; self.applied.uids.len()]),
            _ => Err(Refusal::OutcomeUnknown.into()),
        }
    }

    /// Waits for the resources of all edits, as [`Request::settled`] does.
    pub async fn settled(&mut self, deadline: impl Into<Option<Duration>>) -> Result<Settlement, WaitError> {
        self.waits.settled(deadline.into()).await
    }
}

/// The open answers to a request.
#[derive(Debug)]
pub(crate) struct Waits {
    pub(crate) outcome: Promise<Answer>,
    pub(crate) settled: Promise<Settlement>,
    pub(crate) inside: bool,
    pub(crate) _forget: Forget,
}

impl Waits {
    async fn outcome(&mut self, deadline: Option<Duration>) -> Result<Answer, WaitError> {
        self.refuse_inside()?;
        within(deadline, self.outcome.get()).await
    }

    async fn settled(&mut self, deadline: Option<Duration>) -> Result<Settlement, WaitError> {
        self.refuse_inside()?;
        within(deadline, self.settled.get()).await
    }

    /// Refuses the wait inside an invocation, which could hold up what it waits for.
    fn refuse_inside(&self) -> Result<(), WaitError> {
        if self.inside {
            Err(Refusal::FromInside.into())
        } else {
            Ok(())
        }
    }
}

/// An answer that arrives once and remains available.
#[derive(Debug)]
pub(crate) enum Promise<T> {
    Awaited(oneshot::Receiver<T>),
    Kept(T),
    Broken,
}

impl<T: Clone> Promise<T> {
    async fn get(&mut self) -> Result<T, Refusal> {
        if let Promise::Awaited(answer) = self {
            *self = answer.await.map_or(Promise::Broken, Promise::Kept);
        }
        match self {
            Promise::Kept(answer) => Ok(answer.clone()),
            Promise::Awaited(_) | Promise::Broken => Err(Refusal::OutcomeUnknown),
        }
    }
}

/// Longest wait of a call without a deadline: longer than most runs, short enough for a person to notice.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(60);

/// Waits for an answer up to a deadline; `Duration::MAX` means forever.
pub(crate) async fn within<T>(
    deadline: impl Into<Option<Duration>>,
    answer: impl Future<Output = Result<T, Refusal>>,
) -> Result<T, WaitError> {
    let deadline = deadline.into().unwrap_or(DEFAULT_DEADLINE);
    match tokio::time::timeout(deadline, answer).await {
        Ok(answer) => answer.map_err(WaitError::Refused),
        Err(_) => Err(WaitError::Deadline(deadline)),
    }
}

/// Guard that tells the loop on drop that no further answers to a call are awaited.
#[derive(Debug)]
pub(crate) struct Forget {
    pub(crate) id: CallId,
    pub(crate) shared: Arc<Shared>,
}

impl Drop for Forget {
    fn drop(&mut self) {
        self.shared.forget(self.id);
    }
}
