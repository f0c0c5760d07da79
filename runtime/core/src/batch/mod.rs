//! Batches of edits, checked as a whole against the catalog.

mod by_subject;
mod cascade;
pub(crate) mod door;
mod owners;
pub(crate) mod plan;
