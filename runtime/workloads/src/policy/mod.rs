//! Decisions about jobs and services, as pure functions.
//!
//! Times are arguments, and so are random draws. Each file has a table of all its cases as a test.

pub mod exit;
pub mod health;
pub mod readiness;
pub mod restart;
pub mod rollout;
pub mod run_key;
pub mod schedule;
