//! The engines that there are: what each promises and has, known without opening one.

use crate::duckdb;
use crate::olap::Guarantees;

/// The engine that projects have unless they say another.
pub const ENGINE: Guarantees = duckdb::GUARANTEES;

/// All of them. A project that names the driver of one asks for what it promises, and is told what it lacks.
pub const ENGINES: &[Guarantees] = &[
    ENGINE,
    #[cfg(feature = "stub")]
    crate::stub::GUARANTEES,
];
