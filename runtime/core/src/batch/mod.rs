//! Batches of edits, checked whole against the catalog as it is.

mod cascade;
mod intents;
pub(crate) mod plan;
