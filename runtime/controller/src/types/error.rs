//! Errors of the public interface: one type for each operation.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use watershed_core::{OptionsProblem, Refusal, Unreturned};

use crate::store::StoreError;
use crate::types::message::EncodeError;

/// Reason why a controller could not be started.
///
/// See [`Store`](crate::store::Store) for an example.
#[derive(Debug, Error)]
pub enum StartError {
    /// The catalog could not be opened or read.
    #[error("can't open the catalog of instance \"{instance}\"")]
    Store {
        /// Instance that could not be opened.
        instance: Arc<str>,
        /// Error of the store, with its cause.
        source: StoreError,
    },
    /// The options are invalid, such as a limit of zero. Nothing was opened.
    #[error(transparent)]
    Options(#[from] OptionsProblem),
    /// The stored catalog contradicts itself, or a kind is registered twice.
    #[error("can't load the catalog of instance \"{instance}\"")]
    Catalog {
        /// Instance with the contradiction.
        instance: Arc<str>,
        /// Contradiction that was found.
        source: watershed_core::OpenError,
    },
}

/// Reason why an edit or a batch failed. Nothing has changed, unless the refusal says otherwise.
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
    /// The controller refused the edit.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The spec could not be encoded.
    #[error(transparent)]
    Encode(#[from] Arc<EncodeError>),
    /// The edit was carried out, but the wait for its outcome has ended without one.
    #[error("the edit was carried out, and the wait for what comes of it has ended: {0}")]
    Wait(WaitError),
}

impl From<EncodeError> for EditError {
    fn from(error: EncodeError) -> Self {
        Self::Encode(Arc::new(error))
    }
}

/// Reason why a request (reconcile, refresh, nudge, cancel) was not recorded.
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
    /// The controller refused the request: unknown name, ambiguous name, shutdown and the like, each its own variant.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// Reason why a wait ended early.
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
    /// The deadline has passed. The wait may be resumed.
    #[error("timed out after {0:?}")]
    Deadline(Duration),
    /// The controller refused the wait, or ended first.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// Reason why a reconciler's state was not stored.
///
/// See [`Context`](crate::Context) for an example.
#[derive(Debug, Clone, Error)]
pub enum SetStateError {
    /// The state could not be encoded.
    #[error(transparent)]
    Encode(#[from] Arc<EncodeError>),
    /// The controller refused the state: the invocation has ended or was abandoned, or the version did not match.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl From<EncodeError> for SetStateError {
    fn from(error: EncodeError) -> Self {
        Self::Encode(Arc::new(error))
    }
}

/// Converts a failed state write to the error of the run: permanent if the state can't be encoded, otherwise transient.
impl From<SetStateError> for watershed_core::Error {
    fn from(error: SetStateError) -> Self {
        match &error {
            SetStateError::Encode(_) => Self::permanent(STATE_CODE, error.to_string()),
            SetStateError::Refused(_) => Self::transient(STATE_CODE, error.to_string()),
        }
    }
}

/// Error code of a run whose state could not be written.
const STATE_CODE: &str = "state";

/// Reason why history could not be read.
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
    /// The resource was not found, or the name is ambiguous.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store could not be read.
    #[error("can't read the history")]
    Store(#[from] StoreError),
}

/// Reason why a consistency check could not be made.
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

/// Reason why a shutdown was not in order. The controller has stopped nevertheless.
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
    /// Some invocations had not returned when the controller stopped: at the end of the grace period, or abandoned before.
    #[error(
        "{} had not returned when the controller stopped, with a grace of {grace:?}",
        names(unreturned)
    )]
    Unreturned {
        /// Grace period of the shutdown.
        grace: Duration,
        /// Invocations that had not returned.
        unreturned: Vec<Unreturned>,
    },
    /// The store failed for too long; unacknowledged changes may be lost.
    #[error("the store failed: {message}")]
    StoreFailed {
        /// Last error of the store.
        message: String,
    },
    /// The store is full; unacknowledged changes are lost.
    #[error("the store has no room left: {message}")]
    StoreFull {
        /// Error of the store.
        message: String,
    },
    /// Another controller has taken the lease.
    #[error("the lease of the instance is lost")]
    LeaseLost,
    /// The async runtime ended before the controller; unacknowledged changes may be lost.
    #[error("the runtime of the controller has ended")]
    RuntimeEnded,
    /// The loop panicked, which is a bug.
    #[error("the controller panicked")]
    Panicked,
}

fn names(unreturned: &[Unreturned]) -> String {
    let names: Vec<String> = unreturned.iter().map(|run| format!("\"{}\"", run.key)).collect();
    names.join(", ")
}
