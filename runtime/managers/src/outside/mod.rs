//! Steps and looks in programs outside: commands and HTTP calls.
//!
//! Both get one document, a [`Call`], and give one back, an [`Answer`]. What an exit code or a status means is decided
//! here and nowhere else; the timeout, the attempts and the record are the loop's. A future that is dropped ends what it
//! started.

#![allow(clippy::result_large_err, reason = "managers return errors of the core")]

mod answer;
mod call;
mod command;
mod http;
mod orphans;
#[cfg(test)]
mod tests;

pub use answer::{ANSWER_MAX, Answer, AwaitAnswer, ErrorAnswer, Wait};
pub use call::{Call, CalledPart, CalledResource, CalledWindow, VERSION};
pub use command::Commands;
pub use http::{Http, Request};
pub use watershed_outside::http::{ClientError, Egress};
