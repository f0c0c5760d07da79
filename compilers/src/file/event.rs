//! Events of files.

use std::sync::Arc;

use super::problem::FileProblem;

/// An event of a file. Paths are relative to the project, `/` between parts; a leading slash is ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileEvent {
    /// It is there with this content. Equal content is no change.
    Written {
        /// The file's path.
        path: String,
        /// The content; more than [`FileEvent::MAX_BYTES`] is a finding.
        content: Arc<[u8]>,
    },
    /// It is gone.
    Removed {
        /// The file's path.
        path: String,
    },
    /// It is there and can't be read.
    Unreadable {
        /// The file's path.
        path: String,
        /// The reason.
        problem: FileProblem,
    },
}

impl FileEvent {
    /// The largest file that is compiled: 128 KiB.
    pub const MAX_BYTES: usize = 128 * 1024;
}
