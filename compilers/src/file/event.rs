//! Events about files of a project.

use std::sync::Arc;

use super::problem::FileProblem;

/// An event about a file. Paths are relative to the project, with `/` between parts; a leading slash is ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileEvent {
    /// The file exists with this content. Equal content is no change.
    Written {
        /// The path of the written file, relative to the project.
        path: String,
        /// The content of the file; more than [`FileEvent::MAX_BYTES`] is reported as a finding.
        content: Arc<[u8]>,
    },
    /// The file no longer exists.
    Removed {
        /// The path of the removed file, relative to the project.
        path: String,
    },
    /// The file exists but can't be read.
    Unreadable {
        /// The path of the unreadable file, relative to the project.
        path: String,
        /// The reason why the file can't be read.
        problem: FileProblem,
    },
}

impl FileEvent {
    /// The size in bytes of the largest file that is compiled: 128 KiB.
    pub const MAX_BYTES: usize = 128 * 1024;
}
