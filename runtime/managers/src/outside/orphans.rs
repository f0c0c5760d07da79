//! Commands that outlived the program which started them: noted by their mark while they run, ended by the next pass.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use watershed_controller::Uid;
use watershed_outside::program::end_marked;

/// The note of a command that runs. It is removed when the command has ended.
#[derive(Debug)]
pub(super) struct Note(PathBuf);

impl Note {
    /// Notes the mark of a command that is about to be started for a resource.
    ///
    /// # Errors
    /// When the file can't be written.
    pub(super) fn write(folder: &Path, uid: Uid, mark: &str) -> io::Result<Self> {
        let path = path_of(folder, uid);
        fs::write(&path, mark)?;
        Ok(Self(path))
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0) {
            tracing::debug!(path = %self.0.display(), %error, "the note of a command stays");
        }
    }
}

/// Ends what an earlier program left running for a resource, if it is still there.
pub(super) fn end(folder: &Path, uid: Uid) {
    let path = path_of(folder, uid);
    let Ok(mark) = fs::read_to_string(&path) else {
        return;
    };
    if end_marked(&mark) {
        tracing::info!("ended a command that an earlier program left");
    }
    let _ = fs::remove_file(&path);
}

fn path_of(folder: &Path, uid: Uid) -> PathBuf {
    folder.join(uid.to_string())
}
