//! Tests of the kinds in a real controller, in simulated time on a simulated machine.

mod addresses;
mod endings;
mod jobs;
mod kit;
mod reference;
mod services;
mod simulation;
mod stand;
