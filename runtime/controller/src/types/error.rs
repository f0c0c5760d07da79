//! Errors of the public interface: one type for each operation.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use watershed_core::{OptionsProblem, Refusal, Unreturned};

use crate::store::StoreError;
use crate::types::message::EncodeError;

/// The reason why a controller could not be started.
///
/// See [`Store`](crate::store::Store) for an example.
#[derive(Debug, Error)]
pub enum StartError {
    /// The catalog could not be opened or read.
    #[error("can't open the catalog of instance \"{instance}\"")]
    Store {
        /// The instance.
        instance: Arc<str>,
        /// The reason.
        source: StoreError,
    },
    /// With a limit of zero nothing would ever run, or of a kind nothing could be created. Nothing was opened.
    #[error(transparent)]
    Options(#[from] OptionsProblem),
    /// The stored catalog contradicts itself, or a kind is registered twice.
    #[error("can't load the catalog of instance \"{instance}\"")]
    Catalog {
        /// The instance.
        instance: Arc<str>,
        /// The contradiction.
        source: watershed_core::OpenError,
    },
}

/// The reason why an edit or a batch of edits was not carried out; nothing has changed, except where the refusal says
/// otherwise.
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
/// use watershed_controller::{Controller, EditError, KindOptions, Refusal, Resource};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let controller = Controller::builder().kind(KindOptions::new("page"), Pages).start().await?;
/// controller.create(Resource::declare("page", "home", &Page("hello".into()))?).await?;
/// let second = controller.create(Resource::declare("page", "Home", &Page("hi".into()))?).await;
/// assert!(matches!(second, Err(EditError::Refused(Refusal::NameTaken { .. }))));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Error)]
pub enum EditError {
    /// The controller refused it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The spec has no bytes.
    #[error(transparent)]
    Encode(#[from] Arc<EncodeError>),
    /// The edit was carried out; the wait for what comes of it has ended without that.
    #[error("the edit was carried out, and the wait for what comes of it has ended: {0}")]
    Wait(WaitError),
}

impl From<EncodeError> for EditError {
    fn from(error: EncodeError) -> Self {
        Self::Encode(Arc::new(error))
    }
}

/// The reason why a request (reconcile, refresh, nudge, cancel) was not recorded.
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
/// use watershed_controller::{Controller, Key, KindOptions, Refusal, RequestError};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let controller = Controller::builder().kind(KindOptions::new("page"), Pages).start().await?;
/// let asked = controller.reconcile(Key::new("page", "nowhere")).await;
/// assert!(matches!(asked, Err(RequestError::Refused(Refusal::Unknown(_)))));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RequestError {
    /// The controller refused it: unknown name, ambiguous name, shutdown and the like, each its own variant.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// The reason why a wait ended without what it waited for.
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
/// use watershed_controller::{Controller, Key, KindOptions, WaitError};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let controller = Controller::builder().kind(KindOptions::new("page"), Pages).start().await?;
/// let soon = Duration::from_millis(1);
/// let waited = controller.wait_until(Key::new("page", "home"), |found| found.is_some(), soon).await;
/// assert_eq!(waited, Err(WaitError::Deadline(soon)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Error)]
pub enum WaitError {
    /// The deadline came first. The wait may be taken up again.
    #[error("timed out after {0:?}")]
    Deadline(Duration),
    /// The controller refused the wait, or ended before it did.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// The reason why a reconciler's state was not taken.
///
/// See [`Context`](crate::Context) for an example.
#[derive(Debug, Clone, Error)]
pub enum SetStateError {
    /// The state has no bytes.
    #[error(transparent)]
    Encode(#[from] Arc<EncodeError>),
    /// The controller refused it: the invocation has ended or was abandoned, or the version was another.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl From<EncodeError> for SetStateError {
    fn from(error: EncodeError) -> Self {
        Self::Encode(Arc::new(error))
    }
}

/// A state that could not be written fails the run: for good if the state has no bytes, else it may be tried again.
impl From<SetStateError> for watershed_core::Error {
    fn from(error: SetStateError) -> Self {
        match &error {
            SetStateError::Encode(_) => Self::permanent(STATE_CODE, error.to_string()),
            SetStateError::Refused(_) => Self::transient(STATE_CODE, error.to_string()),
        }
    }
}

/// The code of the error of a run whose state could not be written.
const STATE_CODE: &str = "state";

/// The reason why the history of a resource could not be read.
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
/// use watershed_controller::{Controller, Key, KindOptions};
/// use watershed_controller::history::HistoryError;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let controller = Controller::builder().kind(KindOptions::new("page"), Pages).start().await?;
/// let history = controller.history(Key::new("page", "nowhere"), 10).await;
/// assert!(matches!(history, Err(HistoryError::Refused(_))));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Error)]
pub enum HistoryError {
    /// There is no such resource, or several.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store could not be read.
    #[error("can't read the history")]
    Store(#[from] StoreError),
}

/// The reason why a check could not be made.
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
/// use watershed_controller::{Controller, KindOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let controller = Controller::builder().kind(KindOptions::new("page"), Pages).start().await?;
/// assert!(controller.check_consistency().await?.findings.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Error)]
pub enum CheckError {
    /// The controller has stopped, or is about to.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store could not be read.
    #[error("can't read the stored catalog")]
    Store(#[from] StoreError),
}

/// The reason why a shutdown was not in order. The controller has stopped all the same.
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
/// use watershed_controller::{Controller, KindOptions};
/// use watershed_controller::shutdown::ShutdownError;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let controller = Controller::builder().kind(KindOptions::new("page"), Pages).start().await?;
/// match controller.shutdown(Duration::from_secs(10)).await {
///     Ok(()) => {}
///     Err(ShutdownError::Unreturned { unreturned, .. }) => println!("{} did not return", unreturned.len()),
///     Err(error) => return Err(error.into()),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Error)]
pub enum ShutdownError {
    /// Some invocations had not returned when the grace period ended.
    #[error("{} did not return within {grace:?}", names(unreturned))]
    Unreturned {
        /// The time that they had.
        grace: Duration,
        /// The invocations that have not returned.
        unreturned: Vec<Unreturned>,
    },
    /// The store failed for too long; what was not acknowledged may be lost.
    #[error("the store failed: {message}")]
    StoreFailed {
        /// Its last error.
        message: String,
    },
    /// The store has no room left; what was not acknowledged is lost.
    #[error("the store has no room left: {message}")]
    StoreFull {
        /// Its error.
        message: String,
    },
    /// Another controller has taken the instance.
    #[error("the lease of the instance is lost")]
    LeaseLost,
    /// The runtime that the controller ran on has ended before it; what was not acknowledged may be lost.
    #[error("the runtime of the controller has ended")]
    RuntimeEnded,
    /// The loop ended by a panic, which is a bug.
    #[error("the controller panicked")]
    Panicked,
}

fn names(unreturned: &[Unreturned]) -> String {
    let names: Vec<String> = unreturned.iter().map(|run| format!("\"{}\"", run.key)).collect();
    names.join(", ")
}
