//! Guarantees of DuckDB's driver.

use crate::olap::{Cell, Guarantees, Part, Promise};

/// Guarantees of DuckDB's driver, which keeps all data in one file and makes each change in one transaction.
pub const GUARANTEES: Guarantees = Guarantees::new("duckdb", promise, FILE_PARTS);

/// Guarantees of DuckDB on a lake, whose catalog makes each change in one transaction.
pub const LAKE_GUARANTEES: Guarantees = Guarantees::new("ducklake", lake_promise, LAKE_PARTS);

/// Optional parts that a file has. It needs no copies of a catalog: a copy of the file has all.
const FILE_PARTS: &[Part] = &[
    Part::Partitions,
    Part::Trash,
    Part::Migrations,
    Part::Hooks,
    Part::Databases,
    Part::Elsewhere,
    Part::KeptRows,
    Part::Upkeep,
    Part::File,
];

/// Optional parts that a lake has.
const LAKE_PARTS: &[Part] = &[
    Part::Partitions,
    Part::Trash,
    Part::Migrations,
    Part::Hooks,
    Part::Databases,
    Part::Elsewhere,
    Part::KeptRows,
    Part::Upkeep,
    Part::CatalogCopies,
];

const fn lake_promise(cell: Cell) -> Promise {
    Promise::kept(match cell {
        Cell::Appears => "one transaction",
        Cell::Together => "one transaction for several",
        Cell::OneBuild => "a statement reads one snapshot",
        Cell::Tag => "a comment, which names the build",
        Cell::Record => "an appended row, in the same transaction",
        Cell::Types => {
            return Promise::weaker(
                "texts for enumerations, lists for arrays; no unions, bits, indexes, keys, types, sequences",
            );
        }
        Cell::Step => "one transaction",
        Cell::Names => "one transaction",
        Cell::Checks => "in the transaction of the build",
        Cell::Durable => "as the catalog's database and the place of the files keep it",
        Cell::Crash => "files of a transaction that was not committed are read by nobody",
        Cell::Readers => "by the snapshot they began with, while its files are kept",
        Cell::Fence => "a commit conflicts with a take of the lake",
        Cell::Cancel => "interrupted",
    })
}

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
