//! The rules S1 to S14, by scenarios, against a naive reference, and through the executor.
#![allow(clippy::unwrap_used)] // whole files of tests, which the option for tests does not see

mod cost;
mod executor;
mod exhaustive;
mod kept;
mod naive;
mod pictures;
mod random;
mod rehearsal;
mod scenarios;
mod worlds;
