//! The rules S1 to S14, by scenarios, against a naive reference, and through the executor.
#![allow(clippy::unwrap_used)] // whole files of tests, which the option for tests does not see

mod background;
mod cost;
mod executor;
mod exhaustive;
mod groups;
mod in_vain;
mod kept;
mod life;
mod naive;
mod objections;
mod parts;
mod pictures;
mod proof;
mod random;
mod rehearsal;
mod rounds;
mod scenarios;
mod worlds;
