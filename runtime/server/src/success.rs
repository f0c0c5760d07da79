//! The time when a project was last converged without a mistake, kept beside its catalog: a run that finds nothing to
//! do stores nothing there, and yet it says that all is well.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use watershed_api::documents::Time;

/// The file in an environment's folder.
const FILE: &str = "last-success";

/// Keeps a time in an environment's folder. A disk that refuses loses it: the next success is kept again.
pub(crate) fn note(folder: &Path, at: Time) {
    if let Err(error) = replace(&folder.join(FILE), &format!("{}\n", at.millis()), Readers::Owner) {
        tracing::warn!("the time of the last success can't be kept: {error}");
    }
}

/// Returns the time that was kept; none if there is none, or it can't be read.
pub(crate) fn last(folder: &Path) -> Option<Time> {
    let text = fs::read_to_string(folder.join(FILE)).ok()?;
    text.trim().parse().ok().map(Time::from_millis)
}

/// Writes a small file in one step: readers see the old content or the new one.
///
/// # Errors
/// When the disk refuses; the old content stays.
pub fn replace(file: &Path, text: &str, readers: Readers) -> io::Result<()> {
    let name = file
        .file_name()
        .ok_or(io::ErrorKind::InvalidInput)?
        .to_string_lossy();
    let fresh: PathBuf = file.with_file_name(format!(".{name}.{}", std::process::id()));
    let written = write(&fresh, text, readers).and_then(|()| fs::rename(&fresh, file));
    if written.is_err() {
        let _ = fs::remove_file(&fresh);
    }
    written
}

fn write(file: &Path, text: &str, readers: Readers) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(match readers {
            Readers::Owner => 0o600,
            Readers::All => 0o644,
        });
    }
    options.open(file)?.write_all(text.as_bytes())
}

/// The users who may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// Its owner alone.
    Owner,
    /// Everybody.
    All,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_success_is_kept_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(last(folder.path()), None);
        note(folder.path(), Time::from_millis(5));
        note(folder.path(), Time::from_millis(7));
        assert_eq!(last(folder.path()), Some(Time::from_millis(7)));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        fs::write(folder.path().join(FILE), "soon").unwrap();
        assert_eq!(last(folder.path()), None);
    }
}
