//! Integration tests of the shim with real processes.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod disk;
mod figures;
mod kills;
mod leaks;
mod lifetimes;
mod output;
mod requests;
mod starts;
mod stops;
mod support;
mod survival;
