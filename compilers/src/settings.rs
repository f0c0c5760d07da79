//! Settings of the project as a whole, as a manifest states them.

pub(crate) mod managers;
pub(crate) mod trash;
pub(crate) mod workloads;
