//! Callers that wait, and what is explained to them.

pub(crate) mod explain;
pub(crate) mod refusals;
pub(crate) mod waiters;
