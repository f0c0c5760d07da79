//! Commands that outlive the program that started them. A note records each running command, and the next pass ends it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use watershed_controller::Uid;
use watershed_outside::program::end_marked;

/// The note of a running command. It is removed when the command has ended.
#[derive(Debug)]
pub(super) struct Note(PathBuf);

impl Note {
    /// Writes the note for a command that is about to start for a resource.
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

/// Ends the command that an earlier program left running for a resource, if there is one.
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
