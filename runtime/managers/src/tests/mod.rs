//! Tests of the loop under the real controller, and of windows against the calendar.

mod behaviour;
mod cut_off;
mod fuzz;
mod kit;
mod outside;
mod parts;
mod simulation;
mod stand;
mod windows;
mod world;
