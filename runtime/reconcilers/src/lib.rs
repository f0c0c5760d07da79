//! Reconcilers of a project's resources, with one module per kind.
//!
//! | kind | does |
//! |---|---|
//! | [`project_parser`] | reads the project's files and applies what they declare to the catalog, as one batch |
//! | [`model`] | builds a view or a table in the engine, when what it is made of changed |
//! | [`metrics_view`] | tries every dimension and measure against the engine, reading no row |
//! | [`explore`], [`component`], [`canvas`] | resolve and check the fields that dashboards name |
//! | [`theme`] | is there for dashboards to read |
//! | [`connector`] | tries the connection |
//! | [`managed`] | moves long-lived things from stage to stage, by commands and HTTP calls |
//! | [`migration`] | runs SQL once for each version, before anything else |
//! | [`api`] | checks what programs call; [resolvers](watershed_resolvers) answer them, and whoever else asks for rows |
//! | [`alert`] | asks a question, and tells people of its rows by notifications, which [`notifiers`] send |
//! | [`report`] | writes the rows of a question into a file on schedule, and sends it to people |
//!
//! [`forecast`] says what a run would do, by the same decisions. A run may be for [chosen](watershed_outputs::selection) resources alone.
//!
//! What decides is apart from what acts: [`model::plan`] says whether a model is built, [`project_parser::renames`]
//! which resources of a parse are others of before, and [`project_parser::diff`] what a parse changes; all three are
//! plain functions. What is stored and said holds no value of [secrets](watershed_outputs::secrets). What migrations and
//! connectors [made](watershed_outputs::traces) in the engine, and the outputs there, all kinds share
//! ([`Outputs`](watershed_outputs::Outputs)).

#![allow(
    clippy::result_large_err,
    reason = "an error of a run is made once and stored on its resource"
)]

pub mod alert;
pub mod api;
pub mod canvas;
pub mod component;
pub mod connector;
pub mod explore;
pub mod forecast;
pub mod links;
pub mod managed;
pub mod messages;
pub mod metrics_view;
pub mod migration;
pub mod model;
pub mod notifiers;
pub mod places;
pub mod programs;
pub mod project_parser;
pub mod report;
pub mod setup;
pub mod theme;

mod away;
mod dashboard;
mod dispatch;
mod excerpt;
mod intervals;
mod refs;
mod selector;
mod surroundings;

pub use setup::Setup;

#[cfg(test)]
mod tests;
