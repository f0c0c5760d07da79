//! Moments of an environment, stored beside its catalog, where a run without work stores nothing.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use watershed_api::documents::Time;

/// A moment that an environment remembers, each in a file of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The time at which the whole project last converged without a mistake.
    Success,
    /// The time at which the last instance was closed in order.
    End,
}

impl Moment {
    fn file(self, folder: &Path) -> PathBuf {
        folder.join(match self {
            Self::Success => "last-success",
            Self::End => "last-end",
        })
    }

    /// Stores the time. If the disk refuses, the time is lost until the next one is stored.
    pub(crate) fn note(self, folder: &Path, at: Time) {
        if let Err(error) = replace(&self.file(folder), &format!("{}\n", at.millis()), Readers::Owner) {
            tracing::warn!("a time can't be kept: {error}");
        }
    }

    /// Removes the stored time, which is about to be replaced.
    pub(crate) fn forget(self, folder: &Path) {
        if let Err(error) = fs::remove_file(self.file(folder))
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!("a time can't be forgotten: {error}");
        }
    }

    /// Returns the stored time; none if nothing was stored or the file can't be read.
    pub(crate) fn last(self, folder: &Path) -> Option<Time> {
        let text = fs::read_to_string(self.file(folder)).ok()?;
        text.trim().parse().ok().map(Time::from_millis)
    }
}

/// Writes a small file in one step: readers see the old content or the new one.
///
/// # Errors
/// When the disk refuses; the old content stays.
pub fn replace(file: &Path, text: &str, readers: Readers) -> io::Result<()> {
    replace_with(file, text.as_bytes(), readers, |_| Ok(()))
}

/// Writes a file in one step, durably: a crash of the machine after the return loses nothing.
///
/// # Errors
/// When the disk refuses; the old content stays.
#[cfg(feature = "http")]
pub(crate) fn replace_for_good(file: &Path, bytes: &[u8], readers: Readers) -> io::Result<()> {
    replace_with(file, bytes, readers, fs::File::sync_data)?;
    match file.parent() {
        Some(folder) => fs::File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// The first character of the name of a file that is not completely written yet.
pub(crate) const UNFINISHED: &str = ".";

fn replace_with(
    file: &Path,
    bytes: &[u8],
    readers: Readers,
    settle: fn(&fs::File) -> io::Result<()>,
) -> io::Result<()> {
    let name = file
        .file_name()
        .ok_or(io::ErrorKind::InvalidInput)?
        .to_string_lossy();
    let fresh: PathBuf = file.with_file_name(format!("{UNFINISHED}{name}.{}", std::process::id()));
    let written = write(&fresh, bytes, readers).and_then(|written| settle(&written));
    let placed = written.and_then(|()| fs::rename(&fresh, file));
    if placed.is_err() {
        let _ = fs::remove_file(&fresh);
    }
    placed
}

fn write(file: &Path, bytes: &[u8], readers: Readers) -> io::Result<fs::File> {
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
    let mut file = options.open(file)?;
    file.write_all(bytes)?;
    Ok(file)
}

/// The users who may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// The file's owner alone.
    Owner,
    /// All users of the machine.
    All,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_time_is_kept_until_it_is_forgotten_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let last = |moment: Moment| moment.last(folder.path());
        assert_eq!(last(Moment::Success), None);
        Moment::Success.note(folder.path(), Time::from_millis(5));
        Moment::Success.note(folder.path(), Time::from_millis(7));
        Moment::End.note(folder.path(), Time::from_millis(9));
        assert_eq!(
            (last(Moment::Success), last(Moment::End)),
            (Some(Time::from_millis(7)), Some(Time::from_millis(9)))
        );
        Moment::End.forget(folder.path());
        Moment::End.forget(folder.path());
        assert_eq!(last(Moment::End), None);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        fs::write(folder.path().join("last-success"), "soon").unwrap();
        assert_eq!(last(Moment::Success), None);
    }
}
