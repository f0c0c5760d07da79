//! The place of an engine's data.

use super::Attached;

/// The place of an engine's data: a file of its own, or a lake.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Home {
    /// The database file at the path of the options.
    #[default]
    File,
    /// A lake, which readers elsewhere may open at the same time.
    Lake(Box<LakeHome>),
}

/// A lake in which an engine builds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LakeHome {
    /// The lake, as a database to attach for writing.
    pub database: Attached,
    /// Project and environment that build in the lake, which refuses any other.
    pub project: String,
}
