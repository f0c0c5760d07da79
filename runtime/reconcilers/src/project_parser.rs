//! The project parser: the resource that turns a project's files into all others.

pub mod diff;
pub mod folder;
pub mod renames;
