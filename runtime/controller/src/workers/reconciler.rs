//! The trait that embedders implement for each kind.

pub(crate) mod context;

use std::future::Future;

use watershed_core::{Error, Outcome, Uid};

use crate::types::message::Message;
use crate::workers::reconciler::context::Context;

/// Brings resources of one kind to where their specs want them.
///
/// A reconciler is level-triggered: it is never told why it runs. It looks at what is wanted (the spec), at what was
/// last achieved (the state) and at what is there outside, acts, and says how that went. It may be cancelled at any
/// time and called again at any time, also after a crash between its effect and its record, so each method must be
/// safe to repeat.
///
/// The three methods may be written as `async fn`. At most one of them runs for a resource at any moment, and none
/// while a resource that it reads is being reconciled. A panic becomes the invocation's error.
///
/// Cancellation comes through [`Context::cancellation`]. After it the invocation should return soon; its outcome is
/// dropped, and of its writes only [`Context::set_state`] is still taken.
///
/// ```
/// use std::collections::BTreeMap;
/// use std::sync::Mutex;
/// use watershed_controller::{Context, Error, Outcome, Reconciler, Uid, Work, json_message};
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Page(String);
/// json_message!(Page, format = 1);
///
/// /// What is served, by the resources that it belongs to.
/// #[derive(Default)]
/// struct Site(Mutex<BTreeMap<Uid, String>>);
///
/// impl Reconciler for Site {
///     type Spec = Page;
///     type State = ();
///
///     async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
///         let mut pages = self.0.lock().expect("nobody panics with it");
///         // Look first: "it is already there" is success.
///         if pages.get(&context.uid()) == Some(&context.spec().0) {
///             return Ok(Outcome::default());
///         }
///         pages.insert(context.uid(), context.spec().0.clone());
///         Ok(Outcome::from_work(Work::Built))
///     }
///
///     async fn delete(&self, context: Context<Self>) -> Result<Outcome, Error> {
///         self.0.lock().expect("nobody panics with it").remove(&context.uid());
///         Ok(Outcome::from_work(Work::Dropped))
///     }
/// }
/// ```
pub trait Reconciler: Sized + Send + Sync + 'static {
    /// The desired spec.
    type Spec: Message;
    /// The state that the reconciler stores.
    type State: Message;

    /// Makes it so.
    ///
    /// Return `Outcome::default()` if there was nothing to do: such a run leaves no trace but a counter.
    fn reconcile(&self, context: Context<Self>) -> impl Future<Output = Result<Outcome, Error>> + Send;

    /// Moves what was achieved under an earlier name to the present one.
    ///
    /// [`Context::former_names`] has every name since the last completed rename. What stands in the way under the new
    /// name may be another resource's output whose own rename comes later. By default there is nothing to move.
    fn rename(&self, context: Context<Self>) -> impl Future<Output = Result<Outcome, Error>> + Send {
        drop(context);
        std::future::ready(Ok(Outcome::default()))
    }

    /// Returns whether a resource needs no look when a controller starts on its catalog, provided that its last run succeeded, left it
    /// ready, and saw the spec, the refs and the refresh counters that it has: nothing else that it depends on can have changed meanwhile.
    /// Called for each resource before any of them runs, so it should be quick. By default all are looked at, as the kind's
    /// [`AtStart`](crate::kind::AtStart) says.
    fn may_rest(&self, _uid: Uid, _spec: &Self::Spec, _state: Option<&Self::State>) -> bool {
        false
    }

    /// Removes what was achieved. By default there is nothing to remove.
    fn delete(&self, context: Context<Self>) -> impl Future<Output = Result<Outcome, Error>> + Send {
        drop(context);
        std::future::ready(Ok(Outcome::default()))
    }
}
