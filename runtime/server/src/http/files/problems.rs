//! Problems of folders and files.

use std::io;

use watershed_api::{Code, Problem};

use super::folder::Folder;
use crate::instance::Instance;

/// Opens the folder of an instance's project.
///
/// # Errors
/// `unavailable`.
pub(super) fn open_root(instance: &Instance) -> Result<Folder, Problem> {
    let opened = Folder::open(&instance.options.root);
    opened.map_err(|error| unavailable("the project's folder can't be opened", &error))
}

/// Returns the problem of a file or folder that the system does not let be used.
pub(super) fn unavailable(what: &str, error: &io::Error) -> Problem {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Problem::new(
            Code::NoSpace,
            format!("{what}: the disk is full, and nothing was changed"),
        )
        .hint("make room on the disk of the project, and ask again"),
        _ => Problem::new(Code::Unavailable, format!("{what}: {error}")),
    }
}

/// Returns the problem of a change that is made, but which the disk did not confirm.
pub(super) fn unconfirmed(path: &str, error: &io::Error) -> Problem {
    let message = format!("`{path}` is changed, but the disk did not confirm it: {error}");
    Problem::new(Code::Unavailable, message)
        .hint("a loss of power may undo the change: look at the disk of the project, and read the file before another change")
}

/// Returns the problem of work on files that has panicked.
pub(super) fn defect() -> Problem {
    Problem::new(Code::Defect, "the thread that reads files has panicked")
}
