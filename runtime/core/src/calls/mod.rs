//! Calls of callers and invocations, those that wait for an answer, and the explanation of a standing.

pub(crate) mod explain;
pub(crate) mod handles;
pub(crate) mod requests;
