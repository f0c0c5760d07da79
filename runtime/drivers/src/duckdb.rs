//! DuckDB as an implementation of [`crate::olap::Olap`].
//!
//! [`Engine`] is one database file, or an engine in memory on a `lake`; [`Parser`] parses without one. `olap` is what callers see of it. How an output comes to be: `engine` has the work done, whose parts are the `gate` that lets it in, the `pool` of connections, the `session` that each begins with, the `known_names`, the `growth` of the file and its `sharing`; `build`, `drop` and
//! `rename` plan it from what `names` knows, `schema` writes tags and records, `step` puts rows into a table that stands, `columns` holds theirs against those of the table, `work` is the transaction around it,
//! `trash` keeps what nothing stands for any more, `throw` brings it there and back, `tidy` that within bounds, `retrieve` is it by hand,
//! `checkpoint` keeps the file small, `compact` makes it anew, `closed` lets others at the file, `verify` reads all of it,
//! `export` writes answers into files, `elsewhere` outputs: `write_rows` into files, `write_table` into other databases; `own_file` is for those who share it, `outside` is somebody else's program on the data, `upkeep` is of the space that either home takes, `catalog_copies` is of a lake's catalog, `retention` says how long a lake keeps what nobody needs; `catalog` is Postgres' for SQL clients, in memory, as is the engine of `parameter_types`; `confine` closes what lies outside a sandbox, `authorities` are whom the engine trusts, `give_back` is about memory. `sys` is the only place that calls the C interface.

mod attach;
mod attach_error;
mod attachment;
mod authorities;
mod build;
mod catalog;
mod catalog_copies;
mod changes;
mod check;
mod checkpoint;
mod closed;
mod column_type;
mod columns;
mod compact;
mod conditions;
mod confine;
mod csv_error;
mod disposal;
mod drop;
mod elsewhere;
mod engine;
mod export;
mod failure;
mod failures;
mod gate;
mod growth;
mod guarantees;
mod hooks;
mod install;
mod json_error;
mod known_names;
mod lake;
mod memory;
mod migrate;
mod names;
mod no_columns;
mod olap;
mod options;
mod outside;
#[cfg(feature = "by-hand")]
mod outsider;
mod own_file;
mod parameter_types;
mod parameters;
mod parser;
mod partitions;
mod pool;
mod proof;
mod query;
mod rename;
mod retention;
mod retrieve;
mod running;
mod schema;
mod session;
mod shapes;
mod sharing;
mod statements;
mod step;
mod sys;
#[cfg(test)]
mod tests;
mod tidy;
mod traces;
mod transaction;
mod trash;
mod trash_bounds;
mod upkeep;
mod verify;
mod vocabulary;
mod write;
mod write_rows;
mod write_table;

pub use catalog::Catalog;
pub use conditions::Conditions;
pub use engine::Engine;
pub use guarantees::{GUARANTEES, LAKE_GUARANTEES};
pub use options::Options;
pub use outside::{Outside, endless, numbers};
#[cfg(feature = "by-hand")]
pub use outsider::ByHand;
pub(crate) use parameter_types::parameter_types;
pub use parser::Parser;
pub use proof::FileProof;
