//! Text forms of rows: CSV, JSON lines, and the JSON document of `query`.
//!
//! The program and the service write with the same functions, so that a form is the same wherever it is asked for.

mod cell;
pub mod csv;
pub mod document;
pub mod lines;

pub use cell::Cell;
