//! The project parser: the resource that turns a project's files into all others.

pub mod renames;
