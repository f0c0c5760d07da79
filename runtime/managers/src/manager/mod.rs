//! The trait that a kind implements: observation of a thing, choice of the next step, and its actions.

pub(crate) mod part;
pub(crate) mod view;

use std::future::Future;
use std::time::Duration;

use watershed_controller::message::Message;
use watershed_controller::{Error, Timestamp, Uid};

use crate::event::EventMatch;
use crate::pipeline::{Step, Tries};
use crate::stages::{Stage, Stages};

use part::Part;
use view::View;

/// A kind of long-lived thing: all code that is specific to the kind.
///
/// The time to look, the attempts and their waits, the clock, the parts and the record are the loop's,
/// [`Managed`](crate::Managed). All that is marked pure is a function of what it is given; [`act`](Self::act) is
/// idempotent, for a crash between an effect and its record repeats it with the same [key](View::key).
///
/// ```
/// use std::collections::BTreeSet;
/// use std::sync::Mutex;
/// use std::time::Duration;
/// use watershed_controller::{Controller, Error, Uid};
/// use watershed_managers::{Desired, Done, Managed, Manager, Observation, Stages, Step, View, Wanted};
///
/// #[derive(Default)]
/// struct Lamps(Mutex<BTreeSet<Uid>>);
///
/// impl Manager for Lamps {
///     const KIND: &'static str = "lamp";
///     type Spec = ();
///     type Details = ();
///
///     fn stages(&self, _: &()) -> Stages {
///         Stages::new(["absent", "lit", "gone"]).expect("three names")
///     }
///
///     async fn observe(&self, view: &View<Self>) -> Result<Observation<()>, Error> {
///         let is_lit = self.0.lock().expect("nobody panics with it").contains(&view.uid());
///         Ok(if is_lit { Observation::at("lit", ()) } else { Observation::Absent })
///     }
///
///     async fn act(&self, view: &View<Self>, step: &Step) -> Result<Done, Error> {
///         let mut lit = self.0.lock().expect("nobody panics with it");
///         match step.to.as_str() {
///             "lit" => lit.insert(view.uid()),
///             _ => lit.remove(&view.uid()),
///         };
///         Ok(Done::At(step.to.clone()))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let controller = Managed::new(Lamps::default()).register(Controller::builder()).start().await?;
/// let lamps = controller.resources::<Managed<Lamps>>();
/// lamps.apply("desk", &Wanted::new(Desired::stage("lit"), ())).await?;
/// controller.wait_until_idle(Duration::from_secs(10)).await?;
/// let desk = lamps.get("desk")?.state.expect("it was looked at");
/// assert_eq!(desk.record.stage.as_str(), "lit");
/// # Ok(())
/// # }
/// ```
pub trait Manager: Sized + Send + Sync + 'static {
    /// The kind by which the controller knows the resources.
    const KIND: &'static str;
    /// The spec of the kind, in addition to the desired stage.
    type Spec: Message;
    /// The details that a look yields in addition to the stage.
    type Details: Message + PartialEq;

    /// Returns the stages of a resource. Pure.
    fn stages(&self, spec: &Self::Spec) -> Stages;

    /// Observes the thing outside, without side effects.
    fn observe(
        &self,
        view: &View<Self>,
    ) -> impl Future<Output = Result<Observation<Self::Details>, Error>> + Send;

    /// Returns the next step towards a goal; none if there is no such step. Pure.
    fn next(&self, view: &View<Self>, goal: &Stage) -> Option<Step> {
        view.step_towards(goal)
    }

    /// Performs the [action](View::action) of a step. Idempotent.
    ///
    /// The future is dropped when the timeout is over, when the step no longer leads to the goal, and when the invocation
    /// is cancelled; [`View::cancellation`] is cancelled then.
    fn act(&self, view: &View<Self>, step: &Step) -> impl Future<Output = Result<Done, Error>> + Send;

    /// Returns the parts of a resource. Pure.
    fn parts(&self, view: &View<Self>) -> Vec<Part> {
        let _ = view;
        Vec::new()
    }

    /// Returns the reason why the resource must not be built, such as an error in its file; none if it may be. Steps
    /// upwards wait meanwhile, and steps to remove it do not. Pure.
    fn refuse(&self, spec: &Self::Spec) -> Option<Error> {
        let _ = spec;
        None
    }

    /// Returns false to pass over a resource and its parts for now, unchanged; a later pass takes up its requests.
    fn chooses(&self, root: Uid) -> bool {
        let _ = root;
        true
    }

    /// Returns all things that exist outside, whether or not a resource owns them. The list is only for reports.
    fn discover(&self) -> impl Future<Output = Result<Vec<DiscoveredItem>, Error>> + Send {
        std::future::ready(Ok(Vec::new()))
    }

    /// Returns the limits of steps and the time between looks.
    fn policy(&self) -> Policy {
        Policy::default()
    }
}

/// The limits of a kind's steps, and the time between looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// The timeout and retries of actions that have none of their own.
    pub tries: Tries,
    /// The longest time between two looks if nothing else causes one.
    pub observe_every: Duration,
}

impl Default for Policy {
    /// Returns [`Tries::default`], and a look every 5 minutes.
    fn default() -> Self {
        Self {
            tries: Tries::default(),
            observe_every: Duration::from_secs(300),
        }
    }
}

/// The result of a look.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Observation<D> {
    /// The thing exists at this stage, with these details.
    At(Stage, D),
    /// Nothing exists outside.
    Absent,
    /// The look failed to tell, for this reason. Nothing changes, and the look is repeated.
    Unclear(String),
}

impl<D> Observation<D> {
    /// Returns the observation that the thing is at a stage, with details.
    pub fn at(stage: impl Into<Stage>, details: D) -> Self {
        Self::At(stage.into(), details)
    }
}

/// The result of an attempt that did not fail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Done {
    /// The thing is at this stage. In a step of several actions, the step's stage only means that the action is done.
    At(Stage),
    /// The action is not finished, and is performed again after this time.
    RequeueAfter(Duration),
    /// The action continues elsewhere until an event completes it. Without the event by the deadline, it fails.
    Await {
        /// The condition on the event.
        event: EventMatch,
        /// The time by which the event must come, or else the action fails.
        until: Timestamp,
    },
    /// The action had nothing to do, for this reason, and counts as finished.
    Skipped(String),
}

/// A thing that was found outside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiscoveredItem {
    /// The name of the thing, for people.
    pub name: String,
    /// The identity of the resource that the thing is marked with, if any.
    pub uid: Option<Uid>,
}
