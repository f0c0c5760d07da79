//! DuckDB behind [`crate::olap::Olap`].

mod options;
mod proof;

pub use options::Options;
pub use proof::{FileProof, Stamp};
