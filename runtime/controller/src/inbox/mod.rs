//! The way from handles and invocations to the event loop and back: calls, signals, replies, and the state that both sides
//! share.

pub(crate) mod call;
pub(crate) mod remote_reply;
pub(crate) mod shared;
mod stats;
