//! The outside world: an analytical engine behind a trait, and folders that are watched.
//!
//! - [`olap`]: what the reconcilers ask of an engine ([`olap::Olap`]), in plain types.
//! - [`duckdb`]: DuckDB behind it, and its parser.
//! - [`watch`]: which paths in folders were touched.
//!
//! Work that blocks runs off the async threads, bounded; see each module.

pub mod duckdb;
pub mod olap;
pub mod watch;

mod crash;

pub use crash::CRASH_POINTS;
