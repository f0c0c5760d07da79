//! Files of a project: events, reasons why a file can't be read, and paths that count.

mod event;
mod paths;
mod problem;

pub use event::FileEvent;
pub use paths::{IGNORED, MANIFESTS, is_relevant};
pub use problem::FileProblem;

pub(crate) use paths::{EnvFile, Part, clean, is_below, part};
