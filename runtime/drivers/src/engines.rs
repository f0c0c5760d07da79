//! List of all engines with their guarantees, available without opening one.

use crate::duckdb;
use crate::olap::Guarantees;

/// Guarantees of the default engine.
pub const ENGINE: Guarantees = duckdb::GUARANTEES;

/// Guarantees of the default engine on a lake.
pub const LAKE: Guarantees = duckdb::LAKE_GUARANTEES;

/// Guarantees of all engines. A project that names a driver is checked against its guarantees.
pub const ENGINES: &[Guarantees] = &[
    ENGINE,
    LAKE,
    #[cfg(feature = "stub")]
    crate::stub::GUARANTEES,
];
