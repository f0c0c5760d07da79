//! The journal of starts, stops and exits, each stored on disk before clients are told.
//!
//! It is a file of lines, one [`Record`] each. All that is known of processes is the [`Table`] that the records make, so
//! a shim that was killed begins with what the one before it knew.

mod file;
mod record;
mod table;

pub(crate) use file::{Journal, Opened};
pub(crate) use record::{Record, StopOrder};
pub(crate) use table::{Entry, Life, MAX_STARTS, Table};
