//! Files of a project: what happens to them, why they can't be read, and which count.

mod event;
mod paths;
mod problem;

pub use event::FileEvent;
pub use paths::{IGNORED, MANIFESTS, is_relevant};
pub use problem::FileProblem;

pub(crate) use paths::{EnvFile, Part, clean, is_below, part};
