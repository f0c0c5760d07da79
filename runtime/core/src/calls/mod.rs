//! Waiting callers, and explanations for them.

pub(crate) mod explain;
pub(crate) mod refusals;
pub(crate) mod waiters;
