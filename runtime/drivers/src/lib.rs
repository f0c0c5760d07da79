//! The outside world behind traits: so far an analytical engine.
//!
//! - [`olap`]: what the reconcilers ask of an engine ([`olap::Olap`]), in plain types.
//! - [`duckdb`]: DuckDB behind it, and its parser.
//!
//! Work that blocks runs off the async threads, bounded; see each module.

pub mod duckdb;
pub mod olap;

mod crash;

pub use crash::CRASH_POINTS;
