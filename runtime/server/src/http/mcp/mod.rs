//! Assistants: the project's tools by the Model Context Protocol.
//!
//! A tool is a path of the HTTP API that the table marks as one. Its call is a call of that path, so that roles, scopes, policies,
//! limits, redaction, audit and problems are those of the path, and nothing is decided here.
//!
//! | module | holds |
//! |---|---|
//! | [`assistant`] | the protocol's methods: start here |
//! | [`catalogue`] | the tools with their schemas, and those that a caller may call |
//! | [`words`] | a tool's arguments as a call of its path |
//! | [`result`] | the answer of a path as a tool's result, within bounds |
//! | [`resources`], [`prompts`] | what can be read by its address; texts to begin with |
//! | [`desk`] | who carries out a call: routes of this process, or another process |
//! | [`door`], [`metadata`] | the protocol over HTTP; who signs people in |

mod assistant;
mod catalogue;
mod desk;
pub(super) mod door;
pub(super) mod metadata;
mod prompts;
mod resources;
mod result;
mod words;

pub use assistant::Assistant;
pub use desk::{Desk, OwnerDesk, caller_of};
pub use watershed_api::http::calls::{Answered, Called, LocalUser};
