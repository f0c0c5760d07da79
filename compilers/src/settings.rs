//! Settings of the whole project, as the manifest states them.

pub(crate) mod managers;
pub(crate) mod trash;
pub(crate) mod workloads;
