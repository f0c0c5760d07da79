//! The trait that embedders implement for each kind.

pub(crate) mod context;

use std::future::Future;

use watershed_core::{Error, Outcome, Uid};

use crate::types::message::Message;
use crate::workers::reconciler::context::Context;

/// A reconciler: converges resources of one kind to their specs.
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
    /// Type of the spec.
    type Spec: Message;
    /// Type of the state that the reconciler stores.
    type State: Message;

    /// Converges the outside to the spec.
    ///
    /// Return `Outcome::default()` if there was nothing to do: such a run leaves no trace but a counter.
    fn reconcile(&self, context: Context<Self>) -> impl Future<Output = Result<Outcome, Error>> + Send;

    /// Moves the output from an earlier name to the present one.
    ///
    /// [`Context::former_names`] has every name since the last completed rename. What stands in the way under the new
    /// name may be another resource's output whose own rename comes later. By default there is nothing to move.
    fn rename(&self, context: Context<Self>) -> impl Future<Output = Result<Outcome, Error>> + Send {
        drop(context);
        std::future::ready(Ok(Outcome::default()))
    }

    /// Returns true if a resource may rest at a start: with a successful last run that left it ready and saw its
    /// present spec, refs and refresh counters, it need not run, because nothing else that it depends on can have
    /// changed. Called for each resource before any runs, so it should be quick. By default the kind's
    /// [`AtStart`](crate::kind::AtStart) decides.
    fn may_rest(&self, _uid: Uid, _spec: &Self::Spec, _state: Option<&Self::State>) -> bool {
        false
    }

    /// Removes the output. By default there is nothing to remove.
    fn delete(&self, context: Context<Self>) -> impl Future<Output = Result<Outcome, Error>> + Send {
        drop(context);
        std::future::ready(Ok(Outcome::default()))
    }
}
