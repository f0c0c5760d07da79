//! Findings about a file that can't be read.

use crate::{
    diagnostics::Code,
    file::{FileEvent, FileProblem},
};

/// Returns the code and message of the finding about an unreadable file.
pub(crate) fn finding(problem: &FileProblem) -> (Code, String) {
    match problem {
        FileProblem::TooLarge(size) => {
            let most = FileEvent::MAX_BYTES;
            (
                Code::FileTooLarge,
                format!("the file has {size} bytes, more than {most}"),
            )
        }
        FileProblem::Folder => (
            Code::IsFolder,
            "a folder has the name of a project file".to_owned(),
        ),
        FileProblem::Special(what) => (
            Code::NotAFile,
            format!("{what} has the name of a project file; only regular files are read"),
        ),
        FileProblem::LinkLoop => (
            Code::LinkLoop,
            "the link leads back to a folder above it".to_owned(),
        ),
        FileProblem::Io(message) => (Code::Unreadable, format!("the file can't be read: {message}")),
    }
}
