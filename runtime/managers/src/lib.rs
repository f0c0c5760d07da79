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
pub use deliver::{EVENT_KIND, EVENTS_KEPT, EventDoor, NotTaken, Received, Taken};
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
