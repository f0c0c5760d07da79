//! The rules S1 to S14, by scenarios, against a naive reference, and through the executor.
#![allow(clippy::indexing_slicing)]

mod exhaustive;
mod naive;
mod random;
mod rehearsal;
mod worlds;
