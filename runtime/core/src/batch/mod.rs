//! Batches of edits, checked whole against the catalog as it is.

mod cascade;
pub(crate) mod door;
mod intents;
pub(crate) mod plan;
