//! Dialects: how an engine writes names, values and types.
//!
//! Every function is pure. The crate stands on nothing, so that whatever makes a text for an engine can ask it.

mod data_type;
mod dialect;

pub use data_type::{Integer, SqlType};
pub use dialect::{Dialect, DuckDb};
