//! Reasons why a file can't be read.

/// The reason why a file can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileProblem {
    /// The file is larger than [`FileEvent::MAX_BYTES`](super::FileEvent::MAX_BYTES); holds its size in bytes.
    TooLarge(u64),
    /// A folder has the name of a project file.
    Folder,
    /// A named pipe, a socket or a device has the name of a project file; holds its sort in words, with an article.
    Special(String),
    /// A symbolic link leads back to a folder above it.
    LinkLoop,
    /// The operating system reported an error; holds its message.
    Io(String),
}
