//! Batches of edits, checked as a whole against the catalog.

mod cascade;
pub(crate) mod door;
mod intents;
pub(crate) mod plan;
