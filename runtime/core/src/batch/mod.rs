//! Batches of edits: checked whole, then carried out whole.

pub(crate) mod apply;
pub(crate) mod plan;
