//! The words in which a project is asked and answers: operations, documents, problems and exit codes.
//!
//! | module | holds |
//! |---|---|
//! | [`documents`] | answers for other programs, each with a JSON Schema |
//! | [`operations`] | the table of what may be asked of a project: start here |
//! | [`request`], [`answers`] | inputs, and ends of answers |
//! | [`reply`] | parts of an answer on the way |
//! | [`Problem`], [`Code`] | why there is no answer |
//! | [`hint`] | remedies, in which operations and options can be told from words |
//! | [`http`] | the paths of the HTTP API, and its OpenAPI document |
//! | [`exit`] | the exit codes |
//!
//! The crate knows no instance, no engine and no socket: whoever speaks to a project, in this process or from another one,
//! speaks in these types.

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
