//! Guarantees of DuckDB's driver.

use crate::olap::{Cell, Guarantees, Part, Promise};

/// Guarantees of DuckDB's driver, which keeps all data in one file and makes each change in one transaction.
pub const GUARANTEES: Guarantees = Guarantees::new("duckdb", promise, Part::ALL);

const fn promise(cell: Cell) -> Promise {
    Promise::kept(match cell {
        Cell::Appears => "one transaction",
        Cell::Together => "one transaction for several",
        Cell::OneBuild => "a statement reads one snapshot",
        Cell::Tag => "a comment, which names the build",
        Cell::Record => "a row, in the same transaction",
        Cell::Types => "all",
        Cell::Step => "one transaction",
        Cell::Names => "one transaction",
        Cell::Checks => "in the transaction of the build",
        Cell::Durable => "flushed to the disk",
        Cell::Crash => "its log is replayed or left out",
        Cell::Readers => "by the snapshot they began with",
        Cell::Fence => "the lock of the file",
        Cell::Cancel => "interrupted",
    })
}
