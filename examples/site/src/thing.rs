//! The values of items: what is, or is to be, at one place.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use watershed_stategraph::Value;

/// One thing of a site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Thing {
    /// A folder at a path.
    Folder(PathBuf),
    /// A file with this text.
    File {
        /// The path.
        path: PathBuf,
        /// The text.
        text: String,
    },
    /// A symbolic link.
    Link {
        /// The path.
        path: PathBuf,
        /// The target.
        to: PathBuf,
    },
    /// A process.
    Server(Process),
}

impl Value for Thing {}

/// A server's process, which is found again by the tag among its arguments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Process {
    /// The folder that it serves.
    pub(crate) folder: PathBuf,
    /// The file that it reads when it starts.
    pub(crate) settings: PathBuf,
    /// The file that it writes its address to, and that goes with it.
    pub(crate) address: PathBuf,
    /// Unique to this item.
    pub(crate) tag: String,
}

impl Thing {
    /// Returns its path, if it is on disk.
    pub(crate) fn path(&self) -> Option<&PathBuf> {
        match self {
            Self::Folder(path) | Self::File { path, .. } | Self::Link { path, .. } => Some(path),
            Self::Server(_) => None,
        }
    }
}
