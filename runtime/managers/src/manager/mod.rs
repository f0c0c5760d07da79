//! The one trait to write: how a thing is, which step is next, and how it is taken.

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

/// A kind of long-lived thing: everything that is special about it.
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
    /// The name of the kind.
    const KIND: &'static str;
    /// The kind's own part of what is wanted.
    type Spec: Message;
    /// The details that are observed beside the stage.
    type Details: Message + PartialEq;

    /// Returns the lifecycle. Pure.
    fn stages(&self, spec: &Self::Spec) -> Stages;

    /// Looks at how it is, without effects.
    fn observe(
        &self,
        view: &View<Self>,
    ) -> impl Future<Output = Result<Observation<Self::Details>, Error>> + Send;

    /// Returns the next step towards a goal, or none if there is no such step. Pure.
    fn next(&self, view: &View<Self>, goal: &Stage) -> Option<Step> {
        view.step_towards(goal)
    }

    /// Performs the [action](View::action) of a step. Idempotent.
    ///
    /// The future is dropped when the timeout is over, when the step no longer leads to the goal, and when the invocation
    /// is cancelled; [`View::cancellation`] is cancelled then.
    fn act(&self, view: &View<Self>, step: &Step) -> impl Future<Output = Result<Done, Error>> + Send;

    /// Returns the parts. Pure.
    fn parts(&self, view: &View<Self>) -> Vec<Part> {
        let _ = view;
        Vec::new()
    }

    /// Returns the reason why nothing may be built of it, such as a mistake in its file. Steps upwards wait for it to go;
    /// what is to be taken down is. Pure.
    fn refuse(&self, spec: &Self::Spec) -> Option<Error> {
        let _ = spec;
        None
    }

    /// Returns false to pass a resource over for now, with all its parts: it is left as it is, and its requests to
    /// whoever runs later.
    fn chooses(&self, root: Uid) -> bool {
        let _ = root;
        true
    }

    /// Lists what is there outside, whoever it belongs to. Nothing is decided by it.
    fn discover(&self) -> impl Future<Output = Result<Vec<DiscoveredItem>, Error>> + Send {
        std::future::ready(Ok(Vec::new()))
    }

    /// Returns how steps are tried, and how often things are looked at.
    fn policy(&self) -> Policy {
        Policy::default()
    }
}

/// The bounds of a kind's steps, and how often it is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// The timeout and the attempts of a step that states none.
    pub tries: Tries,
    /// The longest time between two looks at a thing that nothing asks for.
    pub observe_every: Duration,
}

impl Default for Policy {
    /// [`Tries::default`], and a look every 5 minutes.
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
    /// It is at this stage, with these details.
    At(Stage, D),
    /// There is nothing.
    Absent,
    /// It can't be told now, for this reason. Changes nothing, and is tried again.
    Unclear(String),
}

impl<D> Observation<D> {
    /// Returns the observation of a stage.
    pub fn at(stage: impl Into<Stage>, details: D) -> Self {
        Self::At(stage.into(), details)
    }
}

/// The ways in which an attempt succeeds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Done {
    /// It is at this stage; of an action of several, the step's own stage says that the action is done.
    At(Stage),
    /// It is not finished: it is performed again after this time.
    RequeueAfter(Duration),
    /// It goes on elsewhere: an event completes it, and without one by this time it has failed.
    Await {
        /// The events that are meant.
        event: EventMatch,
        /// The deadline.
        until: Timestamp,
    },
    /// There was nothing to do, for this reason; counts as done.
    Skipped(String),
}

/// Something that was found outside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiscoveredItem {
    /// The name, for people.
    pub name: String,
    /// The resource that it says it belongs to.
    pub uid: Option<Uid>,
}
