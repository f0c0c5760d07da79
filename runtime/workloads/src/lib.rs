//! Jobs and services: programs beside a project's data.
//!
//! A job runs once to completion, a service is kept running. What is decided about them stands in [`policy`]: pure
//! functions of what was observed, with no clock, no randomness and no IO of their own. What starts and stops processes
//! is a [`backend`], which decides nothing.
//!
//! | start at | for |
//! |---|---|
//! | [`policy::restart`] | what follows when a process of a service has ended |
//! | [`policy::exit`] | classes of ends and of failed starts; the end of a job |
//! | [`policy::readiness`] | when a replica, and a service, is ready |
//! | [`policy::health`] | checks that fail, and what they lead to |
//! | [`policy::rollout`] | which replicas to start and stop, so that one release replaces another |
//! | [`policy::run_key`] | whether a job has run already |
//! | [`policy::schedule`] | ticks of a job that has a schedule |
//! | [`backend::Backend`] | starting, listing and stopping processes |
//! | [`backend::simulated::World`] | a machine that does it all wrong, from a seed |

pub mod backend;
pub mod policy;
