//! The language server: project files in an editor, by the Language Server Protocol.
//!
//! Start at [`Server`]: it is handed a way to [open](Host) the project that a document belongs to, and speaks with one
//! editor over a pipe. It compiles what the editor shows, saved or not, with the same incremental compiler as the program.
//!
//! | module | holds |
//! |---|---|
//! | `server` | requests and notifications, each handed to where it is answered |
//! | `workspace` | the project, with open documents laid over its files |
//! | `document` | the text of an open document, and its edits |
//! | `position` | places as editors count them |
//! | `findings` | diagnostics as editors show them |
//! | `proposals`, `hints`, `ways` | completion; hover; definitions and references |
//! | `handle` | word of files that change, from whoever watches them |
//! | `host` | the project's files, the engine's parser, and what is known of tables: handed in |
//! | `frames` | messages read from a pipe, within a bound |
//!
//! Nothing is written anywhere and nothing locked, so the server works beside whatever runs the project.

mod document;
mod findings;
mod frames;
mod handle;
mod hints;
mod host;
mod position;
mod proposals;
mod server;
mod ways;
mod workspace;

pub use async_lsp::lsp_types::Url;
pub use frames::{Frames, Messages};
pub use handle::Handle;
pub use host::{Bounds, Column, Facts, Host, Opener, Redactor, ResourceStatus};
pub use server::{ServeError, Server};
