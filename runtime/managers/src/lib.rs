//! Managed resources: one loop for long-lived things that move from stage to stage.
//!
//! A lab that is booked for two hours, a tenant, a machine: each is observed, compared with what is wanted, moved a step,
//! and recorded, again and again, with attempts, a window in time, and parts that follow in order. This crate is that
//! loop, as a kind of [`watershed_controller`]. A new kind is a [`Manager`] and two message types.
//!
//! # Where to start
//!
//! [`Manager`] is the one trait to write, [`View`] what it gets, [`Managed`] puts it under the controller. [`Desired`] says
//! what is wanted, [`Record`] what is known.
//!
//! # A first kind
//!
//! ```
//! use std::io::ErrorKind;
//! use std::path::PathBuf;
//!
//! use serde::{Deserialize, Serialize};
//! use watershed_controller::{Controller, Error, json_message};
//! use watershed_managers::{Desired, Done, Managed, Manager, Observation, Stages, Step, View, Wanted};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Desk { chairs: u32 } // what is wanted beside the stage
//! json_message!(Desk, format = 1);
//!
//! #[derive(PartialEq, Serialize, Deserialize)]
//! struct Seen { chairs: u32 } // what was observed beside it
//! json_message!(Seen, format = 1);
//!
//! struct Office { folder: PathBuf }
//!
//! impl Office {
//!     fn desk(&self, view: &View<Self>) -> PathBuf {
//!         self.folder.join(view.uid().to_string()) // a uid stays when the name changes
//!     }
//! }
//!
//! impl Manager for Office {
//!     const KIND: &'static str = "desk";
//!     type Spec = Desk;
//!     type Details = Seen;
//!
//!     fn stages(&self, _: &Desk) -> Stages {
//!         Stages::new(["absent", "active", "gone"]).expect("three names")
//!     }
//!
//!     async fn observe(&self, view: &View<Self>) -> Result<Observation<Seen>, Error> {
//!         match std::fs::read_to_string(self.desk(view)).map(|text| text.parse()) {
//!             Ok(Ok(chairs)) => Ok(Observation::At("active".into(), Seen { chairs })),
//!             Ok(Err(_)) => Ok(Observation::Unclear("it is no number".to_owned())),
//!             Err(error) if error.kind() == ErrorKind::NotFound => Ok(Observation::Absent),
//!             Err(error) => Err(Error::transient("look", error.to_string())),
//!         }
//!     }
//!
//!     async fn act(&self, view: &View<Self>, step: &Step) -> Result<Done, Error> {
//!         let done = match step.to.as_str() {
//!             "active" => std::fs::write(self.desk(view), view.spec().chairs.to_string()),
//!             _ => std::fs::remove_file(self.desk(view)),
//!         };
//!         match done {
//!             Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::transient("desk", error.to_string())),
//!             _ => Ok(Done::At(step.to.clone())),
//!         }
//!     }
//! }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let place = tempfile::tempdir()?;
//! # let folder = place.path().to_owned();
//!
//! let office = Office { folder: folder.clone() };
//! let controller = Managed::new(office).register(Controller::builder()).start().await?;
//! let desks = controller.resources::<Managed<Office>>();
//! for (stage, files) in [("active", 1), ("gone", 0)] {
//!     desks.apply("ada", &Wanted::new(Desired::stage(stage), Desk { chairs: 2 })).settled(None).await?;
//!     assert_eq!(std::fs::read_dir(&folder)?.count(), files);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! | module | what |
//! |---|---|
//! | `stages`, `window`, `goal` | the stage to move towards at a moment |
//! | `pipeline`, `cascade`, `event`, `tree` | the action, the parts, the events and the sums that follow from it |
//! | `manager`, `desired`, `record`, `transition`, `frame` | what people write, what is wanted, what is known |
//! | `pass`, `managed`, `teardown`, `discover` | the loop, and what it leaves to others |
//! | `cloud`, `deliver`, `operate` | events and operators |
//! | `outside` | by feature: steps and looks by commands and HTTP calls |
//!
//! All of the first two rows, and all that decides, is pure: tests give it tables.

mod cascade;
mod cloud;
mod deliver;
mod desired;
mod discover;
mod event;
mod frame;
mod goal;
mod managed;
mod manager;
mod operate;
#[cfg(feature = "outside")]
pub mod outside;
mod pass;
mod pipeline;
mod record;
mod stages;
mod teardown;
#[cfg(test)]
mod tests;
mod transition;
mod tree;
mod window;

pub use cloud::{BATCH_MAX, BODY_MAX, BadEvent, CloudEvent, Data};
pub use deliver::{Delivery, EVENT_KIND, EVENTS_KEPT, EventDoor, NotTaken, Received, Taken};
pub use desired::{Desired, OnPartFailure, Wanted, desired_of, with_desired};
pub use discover::{DISCOVER_EVERY, Discovery};
pub use event::{EventMatch, Rule};
pub use goal::{Allowed, Goal, Wish};
pub use managed::{AT_ONCE, Managed};
pub use manager::part::Part;
pub use manager::view::View;
pub use manager::{DiscoveredItem, Done, Manager, Observation, Policy};
pub use operate::{SetError, set_desired};
pub use pipeline::{ACTIONS_MAX, Action, Ending, Finished, Next, Step, Tries};
pub use record::{Awaiting, Current, Failure, ManagedState, Record, StageOverride, record_of};
pub use stages::{STAGES_MAX, Stage, Stages, StagesError};
pub use teardown::{Remains, Teardown, teardown_kind};
pub use transition::{Reason, TRANSITIONS_MAX, Transition};
pub use tree::{Health, Tree, tree};
pub use window::{BadWindow, LEAD, Occurrence, Plan, TEARDOWN, Timed, When, phase_name};
