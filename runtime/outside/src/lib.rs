//! Programs that are run and HTTP services that are called, each bounded in time and in the bytes read.
//!
//! Callers differ in values alone: a [`Program`]'s fields, a client's [`Settings`](http::Settings). The crate stands on nothing
//! of ours and knows no message, no step and no object: what an exit code or a status means is its callers'.
//!
//! | start at | for |
//! |---|---|
//! | [`Program::run`] | one program: its streams bounded, its deadline, the end of all that it started |
//! | [`program::end_marked`] | the end of what a crash of ours left running |
//! | [`http::Client`] | by feature: one client of HTTP; certificates, proxies, redirects, deadlines, bytes read |
//! | [`http::Egress`] | by feature: the policy of outgoing connections, asked with the very address that is used |
//!
//! The suite in `tests/tests/outside` holds every caller against the same misbehaving servers and programs.

#[cfg(feature = "http")]
pub mod http;
pub mod program;

pub use program::Program;
