//! A request for a reconcile that was recorded, and what becomes of it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use watershed_core::{CallId, Refusal, RunOutcome, Settlement, Uid};

use crate::api::error::WaitError;
use crate::event_loop::shared::Shared;

/// A recorded request, see [`Handle::reconcile`](crate::Handle::reconcile). Dropping it takes nothing back.
///
/// ```
/// # use watershed_controller::{Context, Error, Outcome, Reconciler};
/// # struct Pages;
/// # impl Reconciler for Pages {
/// #     type Spec = Page;
/// #     type State = Page;
/// #     async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
/// #         let page = Page(context.spec().0.clone());
/// #         context.set_state(&page).await.map_err(|e| Error::transient("state", e.to_string()))?;
/// #         Ok(Outcome::default())
/// #     }
/// # }
/// # #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
/// # struct Page(String);
/// # watershed_controller::json_message!(Page, format = 1);
/// use std::time::Duration;
/// use watershed_controller::{Controller, Key, KindOptions, RunOutcome, declare};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let controller = Controller::builder().kind(KindOptions::new("page"), Pages).start().await?;
/// controller.create(declare("page", "home", &Page("hello".into()))?).await?;
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
    pub(crate) outcome: Promise<RunOutcome>,
    pub(crate) settled: Promise<Settlement>,
    pub(crate) inside: bool,
    pub(crate) _forget: Forget,
}

impl Request {
    /// The resource that it is for.
    pub fn uid(&self) -> Uid {
        self.uid
    }

    /// Waits for the first run that started after the request and completed; cancelled ones are passed over. Where
    /// none can come, the outcome says why.
    ///
    /// Cancel-safe, and can be asked again: also after a [`WaitError::Deadline`], and after the outcome was seen.
    pub async fn outcome(&mut self, deadline: Duration) -> Result<RunOutcome, WaitError> {
        self.refuse_inside()?;
        within(deadline, self.outcome.get()).await
    }

    /// Waits until the resource and its descendants at the time of the request have each settled once after it.
    ///
    /// Cancel-safe, and can be asked again.
    pub async fn settled(&mut self, deadline: Duration) -> Result<Settlement, WaitError> {
        self.refuse_inside()?;
        within(deadline, self.settled.get()).await
    }

    /// An invocation that waits for another would hold what that one waits for.
    fn refuse_inside(&self) -> Result<(), WaitError> {
        if self.inside {
            Err(Refusal::FromInside.into())
        } else {
            Ok(())
        }
    }
}

/// An answer that comes once and stays.
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

/// Waits for an answer, at most so long; `Duration::MAX` is as good as for ever.
pub(crate) async fn within<T>(
    deadline: Duration,
    answer: impl Future<Output = Result<T, Refusal>>,
) -> Result<T, WaitError> {
    match tokio::time::timeout(deadline, answer).await {
        Ok(answer) => answer.map_err(WaitError::Refused),
        Err(_) => Err(WaitError::Deadline(deadline)),
    }
}

/// Tells the loop on drop that nobody waits for a call's answers any more.
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
