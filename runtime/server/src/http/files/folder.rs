//! Access to a folder through an open handle, safe against links.
//!
//! Invariants:
//! 1. Every path is walked from the handle part by part, and no part may be a link: whatever is moved or swapped meanwhile,
//!    nothing outside of the folder is opened.
//! 2. Nothing but a regular file is read, and no more of it than was allowed.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

/// The deepest nesting of folders that is walked.
const DEEPEST: usize = 64;

/// An open folder.
pub(super) struct Folder(OwnedFd);

/// The reason why a file could not be read.
#[derive(Debug)]
pub(super) enum Unread {
    /// No regular file has this name.
    Missing,
    /// The file, of this many bytes, exceeds the limit.
    TooLarge(u64),
    /// The system refused the access.
    Refused(io::Error),
}

/// The type of an entry in a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// A folder, which is entered if wanted.
    Folder,
    /// A regular file, which is reported if wanted.
    File,
}

impl From<Errno> for Unread {
    fn from(error: Errno) -> Self {
        match error {
            // A link is as good as nothing: as a folder it is none, as a file it is one link too many.
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG | Errno::ILSEQ => Self::Missing,
            error => Self::Refused(error.into()),
        }
    }
}

impl Folder {
    /// Opens a folder by its path.
    ///
    /// # Errors
    /// When it is not there, or the system refuses.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(path, flags, Mode::empty())?))
    }

    /// Reads a whole file of at most `most` bytes. Blocks.
    ///
    /// # Errors
    /// When the path leads to no regular file, to a larger one, or the system refuses.
    pub(super) fn read(&self, path: &str, most: usize) -> Result<Vec<u8>, Unread> {
        let (folder, name) = match path.rsplit_once('/') {
            Some((folder, name)) => (Some(self.descend(folder)?), name),
            None => (None, path),
        };
        let folder = folder.as_ref().map_or(self.0.as_fd(), AsFd::as_fd);
        // Asked before it is opened, as opening a device may do something, and after, as it may be another one by then.
        is_regular(&rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(folder, name, flags, Mode::empty())?;
        let size = is_regular(&rustix::fs::fstat(&file)?)?;
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        if size > most {
            return Err(Unread::TooLarge(size));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
        let read = File::from(file).take(most + 1).read_to_end(&mut bytes);
        match read.map_err(Unread::Refused)? as u64 {
            length if length > most => Err(Unread::TooLarge(length)),
            _ => Ok(bytes),
        }
    }

    /// Returns true if a regular file has the path. Blocks.
    pub(super) fn holds(&self, path: &str) -> bool {
        let (folder, name) = match path.rsplit_once('/') {
            Some((folder, name)) => (self.descend(folder), name),
            None => (self.0.try_clone().map_err(|_| Errno::MFILE), path),
        };
        let found = folder.and_then(|folder| rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW));
        found.is_ok_and(|found| is_regular(&found).is_ok())
    }

    /// Walks all entries that `wants` accepts, and calls `tell` with each file and its size until `tell` stops the
    /// walk. Blocks.
    ///
    /// # Errors
    /// When a folder can't be listed.
    pub(super) fn walk(
        &self,
        wants: &impl Fn(Found, &str) -> bool,
        tell: &mut impl FnMut(String, u64) -> bool,
    ) -> io::Result<()> {
        walk(self.0.as_fd(), "", DEEPEST, wants, tell).map(drop)
    }

    /// Returns the handle of the folder.
    pub(super) fn handle(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn descend(&self, path: &str) -> Result<OwnedFd, Errno> {
        let mut folder = self.0.try_clone().map_err(|_| Errno::MFILE)?;
        for part in path.split('/') {
            folder = enter(folder.as_fd(), part)?;
        }
        Ok(folder)
    }
}

/// Opens a folder within a folder, without following a link.
///
/// # Errors
/// When there is no folder of this name, or the system refuses.
pub(super) fn enter(folder: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, flags, Mode::empty())
}

fn is_regular(found: &rustix::fs::Stat) -> Result<u64, Unread> {
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => Ok(u64::try_from(found.st_size).unwrap_or_default()),
        _ => Err(Unread::Missing),
    }
}

/// Walks a folder recursively; returns false once the walk must stop.
fn walk(
    folder: BorrowedFd<'_>,
    path: &str,
    depth: usize,
    wants: &impl Fn(Found, &str) -> bool,
    tell: &mut impl FnMut(String, u64) -> bool,
) -> io::Result<bool> {
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name: CString = entry.file_name().to_owned();
        let Some(name) = name.to_str().ok().filter(|name| !matches!(*name, "." | "..")) else {
            continue;
        };
        let below = match path {
            "" => name.to_owned(),
            path => format!("{path}/{name}"),
        };
        let Ok(found) = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else {
            // Gone since it was listed.
            continue;
        };
        let goes_on = match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile if wants(Found::File, &below) => {
                tell(below, u64::try_from(found.st_size).unwrap_or_default())
            }
            FileType::Directory if depth > 0 && wants(Found::Folder, &below) => match enter(folder, name) {
                Ok(inner) => walk(inner.as_fd(), &below, depth - 1, wants, tell)?,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => true,
                Err(error) => return Err(error.into()),
            },
            _ => true,
        };
        if !goes_on {
            return Ok(false);
        }
    }
    Ok(true)
}
