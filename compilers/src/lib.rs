//! Compiler of project files to resource specs and diagnostics, without IO.
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
//! | [`configuration`] | the file of a service, which names projects |
//! | [`render`](mod@render) | SQL as it is sent to the engine |
//! | [`editor`] | what may stand at a place of a file, and what a key means |
//! | [`schema`] | JSON Schemas of project files |
//! | [`sql`] | what the engine's parser is asked, and what is read from its answer |

pub mod configuration;
pub mod diagnostics;
pub mod editor;
pub mod engine;
pub mod fields;
pub mod options;
pub mod project;
pub mod resource;
pub mod schema;
pub mod sql;

mod blocks;
mod draft;
mod file;
mod kinds;
mod read;
mod settings;
mod template;
mod text;
mod yaml;

pub use diagnostics::{Code, Diagnostic, Severity};
pub use draft::is_driver;
pub use file::{FileEvent, FileProblem, IGNORED, MANIFESTS, is_relevant};
pub use kinds::REPLICAS_MAX;
pub use kinds::{READER_OPTIONS, lakehouse_log, refused_object, refused_output, with_all_columns};
pub use options::Options;
pub use project::{Changes, Location, Project, Reference, Trust};
pub use resource::{
    Fingerprint, Health, Kind, Requirement, Resource, ResourceKey, ResourceRef, Spec,
    meaning::{self, Meanings, fingerprint},
    spec_json::{self, spec_json},
};
pub use settings::{managers::ManagerSettings, trash::Trash, workloads::WorkloadSettings};
pub use sql::{SqlError, SqlParser, SqlPlace, Tree};
pub use template::{
    Arguments, Dialect, RenderError, Scope,
    render::{self, render, render_text},
    render_rule, render_sql,
};
pub use text::{
    duration::seconds as parse_seconds,
    names::{for_people as name_for_people, nearest as nearest_name},
    size::parse_size,
};
