//! Project files to resource specs and diagnostics, with no IO.
//!
//! Start at [`Project`]: it is handed [`FileEvent`]s and an engine's [`SqlParser`], and holds the [`Resource`]s that
//! the files declare and the [`Diagnostic`]s about them. The result depends on the files and the [`Options`] alone,
//! never on the order in which events came: an incremental parse equals a fresh one.
//!
//! | module | holds |
//! |---|---|
//! | [`project`] | the project: file events in, changes out |
//! | [`resource`] | what a project declares: kinds, names, refs, specs |
//! | [`diagnostics`] | findings, their codes and places, and how they are drawn |
//! | [`render`](mod@render) | SQL as it is sent to the engine |
//! | [`sql`] | what the engine's parser is asked, and what is read from its answer |

pub mod diagnostics;
pub mod fields;
pub mod meaning;
pub mod options;
pub mod project;
pub mod render;
pub mod resource;
pub mod spec_json;
pub mod sql;

mod annotations;
mod block;
mod canvas;
mod component;
mod connector;
mod declared;
mod decode;
mod draft;
mod duration;
mod env_file;
mod explore;
mod finding;
mod group;
mod kinds;
mod manifest;
mod metrics_view;
mod migration;
mod model;
mod names;
mod refs;
mod resolver;
mod schedule;
mod security;
mod selector;
mod spec;
mod template;
mod text;
mod theme;
mod time_range;
mod unsupported;
mod yaml;

pub use diagnostics::{Code, Diagnostic, Severity};
pub use draft::is_driver;
pub use manifest::PATHS as MANIFESTS;
pub use meaning::{Meanings, fingerprint};
pub use names::nearest as nearest_name;
pub use options::Options;
pub use project::{Changes, FileEvent, FileProblem, Project, Trust, is_relevant};
pub use render::{RenderError, Scope, render, render_text};
pub use resource::{Fingerprint, Health, Kind, Resource, ResourceKey, ResourceRef, Spec};
pub use spec_json::spec_json;
pub use sql::{SqlError, SqlParser, SqlPlace, Tree};
