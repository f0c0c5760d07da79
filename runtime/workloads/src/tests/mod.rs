//! Tests of the kinds under the real controller, in simulated time over a simulated machine.

mod addresses;
mod endings;
mod jobs;
mod kit;
mod reference;
mod services;
mod simulation;
mod stand;
