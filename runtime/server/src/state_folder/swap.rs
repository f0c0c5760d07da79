//! The replacement of all files in a state folder, atomically.
//!
//! The new files come into a folder beside, which gets another name when they are whole: that rename decides. From then on
//! whoever owns the folder next moves them to their places first, however often that is interrupted.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use watershed_drivers::crash_point;

use super::{Error, FOLDER_MODE, StateFolder};

/// The folder of new files that are still incomplete, and the folder of complete ones.
const PARTIAL: &str = "restore.part";
const READY: &str = "restore.ready";
/// The name of the file that lists the new files.
const LIST: &str = "files";

impl StateFolder {
    /// The files that a swap replaces, or removes if it has no new one.
    pub(crate) const SWAPPED: [&str; 3] = ["catalog.db", "main.duckdb", "key"];
    /// Files that belong to the replaced ones and are removed with them.
    const BESIDE: [&str; 4] = [
        "catalog.db-wal",
        "catalog.db-shm",
        "main.duckdb.wal",
        "main.duckdb.proof",
    ];

    /// Creates an empty folder for new files. The caller holds the state folder's lock.
    ///
    /// # Errors
    /// When it can't be made.
    pub(crate) fn begin_swap(&self) -> io::Result<PathBuf> {
        let partial = self.path().join(PARTIAL);
        remove_folder(&partial)?;
        DirBuilder::new().mode(FOLDER_MODE).create(&partial)?;
        Ok(partial)
    }

    /// Discards the new files.
    pub(crate) fn give_swap_up(&self) {
        if let Err(error) = remove_folder(&self.path().join(PARTIAL)) {
            tracing::warn!(%error, "what was to be restored could not be removed");
        }
    }

    /// Moves the new files, which are complete and on disk, to the places of the old ones.
    ///
    /// # Errors
    /// When one can't be moved. If the folder was renamed by then, the next owner goes on.
    pub(crate) fn commit_swap(&self, names: &[String]) -> Result<(), Error> {
        let (partial, ready) = (self.path().join(PARTIAL), self.path().join(READY));
        let committed = || {
            fs::write(partial.join(LIST), names.join("\n"))?;
            File::open(partial.join(LIST))?.sync_all()?;
            File::open(&partial)?.sync_all()?;
            crash_point("restore::before_commit");
            fs::rename(&partial, &ready)?;
            File::open(self.path())?.sync_all()?;
            crash_point("restore::after_commit");
            Ok(())
        };
        committed().map_err(|source| Error::Write {
            path: ready.clone(),
            source,
        })?;
        self.finish_swap()
    }

    /// Returns true if a swap was committed and its files are not all in place.
    pub(super) fn is_being_swapped(&self) -> bool {
        self.path().join(READY).is_dir()
    }

    /// Moves the files of a committed swap that are not in place yet. The caller holds the state folder's lock.
    pub(super) fn finish_swap(&self) -> Result<(), Error> {
        let ready = self.path().join(READY);
        if !ready.is_dir() {
            return Ok(());
        }
        let moved = move_all(&self.path(), &ready);
        moved.map_err(|source| Error::Write { path: ready, source })
    }
}

/// Moves all listed files. Idempotent: a listed file that is missing in `ready` was moved before.
fn move_all(folder: &Path, ready: &Path) -> io::Result<()> {
    let list = fs::read_to_string(ready.join(LIST))?;
    for name in StateFolder::BESIDE {
        remove_file(&folder.join(name))?;
    }
    for name in StateFolder::SWAPPED {
        if !list.lines().any(|listed| listed == name) {
            remove_file(&folder.join(name))?;
            continue;
        }
        match fs::rename(ready.join(name), folder.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => crash_point("restore::between_files"),
        }
    }
    File::open(folder)?.sync_all()?;
    crash_point("restore::before_end");
    // Under a name that means nothing, so that a half-removed one is not gone on with.
    let done = folder.join(PARTIAL);
    remove_folder(&done)?;
    fs::rename(ready, &done)?;
    remove_folder(&done)
}

fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn remove_folder(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
