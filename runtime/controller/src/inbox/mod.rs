//! The way between handles or invocations and the event loop: calls, signals, replies, and shared state.

pub(crate) mod call;
pub(crate) mod remote_reply;
pub(crate) mod shared;
mod stats;
