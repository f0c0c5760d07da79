//! The vocabulary of requests and answers: operations, documents, problems and exit codes.
//!
//! | module | holds |
//! |---|---|
//! | [`documents`] | answers for other programs, each with a JSON Schema |
//! | [`operations`] | the table of operations on a project: start here |
//! | [`request`], [`answers`] | inputs, and final answers |
//! | [`reply`] | parts of an answer, sent during the work |
//! | [`Problem`], [`Code`] | the reason why a request has no answer |
//! | [`hint`] | remedies, in which operations and options can be told apart from words |
//! | [`http`] | the paths of the HTTP API, and its OpenAPI document |
//! | [`exit`] | the exit codes of the program |
//!
//! The crate knows no instance, no engine and no socket: all who speak to a project, in this process or from another one,
//! use these types.

pub mod answers;
mod code;
pub mod documents;
pub mod exit;
pub mod hint;
pub mod http;
pub mod operations;
mod owner;
mod problem;
pub mod reply;
pub mod request;

pub use code::Code;
pub use exit::Exit;
pub use hint::Hint;
pub use operations::{Answer, Operation, Request};
pub use owner::Owner;
pub use problem::{Mistake, Problem};
pub use reply::Reply;
