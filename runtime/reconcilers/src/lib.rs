//! One module per kind of resource.
//!
//! | kind | does |
//! |---|---|
//! | [`project_parser`] | reads the project's files and applies what they declare to the catalog, as one batch |
//! | [`model`] | builds a view or a table in the engine, when what it is made of changed |
//!
//! What decides is apart from what acts: [`model::plan`] says whether a model is built, and
//! [`project_parser::renames`] which resources of a parse are others of before; both are plain functions.

pub mod model;
pub mod project_parser;
