//! Models: a query whose result stands in the engine as a view or a table.

pub mod files;
pub mod plan;
pub mod record;
