//! The protocol between client and shim: one JSON object per line, over a Unix socket in the state folder.
//!
//! A client begins with [`Call::Hello`]. Every other call may be repeated: it is answered by what is, not by what was
//! done, so a client that lost the answer asks again.

mod call;
pub(crate) mod frame;
mod process;
mod refusal;

pub use call::{Answer, Call, Event, Hello, Lifetime, Limits, Message, Output, Request, Spawn, Stop, Then};
pub use frame::MAX_FRAME;
pub use process::{End, Exit, Failure, FailureClass, MemoryGuard, Phase, Process, StopReason};
pub use refusal::Refusal;

/// The version of the protocol. A shim may be older than the program, since it survives upgrades.
pub const PROTOCOL: u32 = 1;

/// The most starts in one answer to [`Call::List`].
pub const PAGE: usize = 1_000;
