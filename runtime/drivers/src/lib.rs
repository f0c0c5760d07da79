//! Drivers for the outside world: an analytical engine behind a trait, object stores, files and watched folders.
//!
//! - [`data_file`]: files of data, looked at before the engine reads them.
//! - [`olap`]: what the reconcilers ask of an engine ([`olap::Olap`]), in plain types.
//! - [`duckdb`]: DuckDB behind it, and its parser.
//! - [`engines`]: what each engine promises.
//! - [`files`]: local files by a path or pattern.
//! - [`objects`]: objects in stores, looked at without reading them.
//! - [`placing`]: files and folders that take their place whole.
//! - [`reach`]: servers that the engine connects to by itself, checked before it does.
//! - [`regular`]: regular files, read up to a bound.
//! - [`sandbox`]: the folders that an engine is confined to.
//! - [`volume`]: the room that is left where a path is.
//! - [`watch`]: which paths in folders were touched.
//!
//! Work that blocks runs off the async threads, bounded; see each module.

pub mod data_file;
pub mod duckdb;
pub mod engines;
pub mod files;
pub mod objects;
pub mod olap;
pub mod placing;
pub mod reach;
pub mod regular;
pub mod sandbox;
pub mod shares;
#[cfg(feature = "stub")]
pub mod stub;
pub mod volume;
pub mod watch;

mod crash;

/// Returns the parser of the projects' engine, without cost until its first use and without a file.
pub fn parser() -> Box<dyn olap::Parser> {
    Box::new(duckdb::Parser::new())
}

/// Makes a catalog in the shape of Postgres', in the words of the projects' engine. Blocks for tens of milliseconds.
///
/// # Errors
/// How the engine failed.
pub fn catalog(seen: &olap::Seen) -> Result<Box<dyn olap::Catalog>, olap::Failure> {
    Ok(Box::new(duckdb::Catalog::new(seen)?))
}

/// Returns the types of a statement's parameters by their names, as far as they follow from the statement and the tables that it
/// reads. An engine of its own prepares the statement and never runs it. Blocks for some milliseconds.
///
/// The first form is the statement. Where one parameter has no type that is known, the engine may tell none of the others: then the
/// type of the parameter N is that of the only one, `$1`, in the form N. A form that can't be prepared tells none.
///
/// # Errors
/// How the engine failed to make the tables.
pub fn parameter_types(
    tables: &[olap::Outline],
    forms: &[String],
) -> Result<std::collections::BTreeMap<String, String>, olap::Failure> {
    duckdb::parameter_types(tables, forms)
}

pub use crash::{
    BACKUP_CRASH_POINTS, CRASH_POINTS, FILE_CRASH_POINTS, REMOTE_CRASH_POINTS, point as crash_point,
};
