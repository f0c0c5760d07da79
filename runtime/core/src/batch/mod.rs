//! Batches of edits, checked whole against the catalog as it is.

mod cascade;
pub(crate) mod plan;
