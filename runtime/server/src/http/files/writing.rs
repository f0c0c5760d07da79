//! Changes of files below a folder's handle, each made whole or not at all.
//!
//! Invariants:
//! 1. A path is walked from the handle part by part without following a link, as it is for reading.
//! 2. A file is written under another name, which no reader knows, synced and then renamed. A process that dies leaves the
//!    old file or the new one, and at most a leftover under such a name.
//! 3. Of those who change files of a folder at once each has the folder's lock in turn, in whatever process.
//! 4. The version is compared again directly before the rename, so that edits by hand are overwritten only if they are made
//!    in the moment between both.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use watershed_drivers::crash_point;

use super::folder::{Folder, Unread, enter};

/// The time that a change waits for others.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause between two looks at the lock.
const PAUSE: Duration = Duration::from_millis(2);
/// The beginning and the end of the names of files that are being written.
const UNFINISHED: (&str, &str) = (".watershed-", ".tmp");
/// The permissions of a new file with variables.
const SECRET: u32 = 0o600;
/// The permissions of other new files, of which the process's mask is taken off.
const USUAL: u32 = 0o666;

/// The reason why a file was not changed, or not for certain.
#[derive(Debug)]
pub(super) enum Unchanged {
    /// Something other than a regular file has the name, or a folder in its path does.
    Occupied,
    /// The file has another version than the change is for: its content, or none if there is no such file.
    Stale(Option<Vec<u8>>),
    /// The file is larger than the files that are read.
    TooLarge,
    /// A file or folder has the same name but for small and capital letters: the path of that one.
    OtherCase(String),
    /// Others change files of the folder for too long.
    Busy,
    /// The system refused the change.
    Refused(io::Error),
    /// The file was changed, but the disk did not confirm it: a loss of power may undo the change.
    Unconfirmed(io::Error),
}

impl From<Errno> for Unchanged {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOTDIR | Errno::LOOP | Errno::ISDIR | Errno::NAMETOOLONG => Self::Occupied,
            error => Self::Refused(error.into()),
        }
    }
}

impl From<io::Error> for Unchanged {
    fn from(error: io::Error) -> Self {
        Self::Refused(error)
    }
}

/// A file to be written.
pub(super) struct Writing<'w> {
    /// Path below the folder, whose parts are no links and do not lead up.
    pub(super) path: &'w str,
    /// The new content.
    pub(super) bytes: &'w [u8],
    /// Decides whether the file of this content, or no file, may be replaced.
    pub(super) may_replace: &'w dyn Fn(Option<&[u8]>) -> bool,
    /// True if a new file is for its owner alone.
    pub(super) is_secret: bool,
    /// The largest file that is compared, in bytes.
    pub(super) most: usize,
}

/// A folder that nobody else changes through this interface while the value lives.
pub(super) struct Locked<'f>(&'f Folder);

impl Folder {
    /// Waits until no other change goes on, and keeps others waiting until the folder's handle is closed. Blocks.
    ///
    /// # Errors
    /// `Busy` after ten seconds, and `Refused` when the system knows no locks of folders.
    #[allow(
        clippy::disallowed_methods,
        reason = "the system tells nobody when a lock is free, and waiting for it has a bound here alone"
    )]
    pub(super) fn lock(&self) -> Result<Locked<'_>, Unchanged> {
        let begun = Instant::now();
        loop {
            match rustix::fs::flock(self.handle(), FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Locked(self)),
                Err(Errno::WOULDBLOCK | Errno::INTR) if begun.elapsed() < PATIENCE => {
                    std::thread::sleep(PAUSE)
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => return Err(Unchanged::Busy),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Locked<'_> {
    /// Writes a file, whose folders are made where they are missing. Blocks.
    ///
    /// # Errors
    /// The reason why nothing was changed; only after `Unconfirmed` the file is changed.
    pub(super) fn write(&self, writing: &Writing<'_>) -> Result<(), Unchanged> {
        let found = self.read(writing.path, writing.most)?;
        if !(writing.may_replace)(found.as_deref()) {
            return Err(Unchanged::Stale(found));
        }
        if found.is_none() {
            self.refuse_other_case(writing.path, None)?;
        }
        let mut made = Made::default();
        let written = self.write_in(writing, found.is_some(), &mut made);
        if written.is_err() {
            made.remove();
        }
        written
    }

    fn write_in(&self, writing: &Writing<'_>, is_there: bool, made: &mut Made) -> Result<(), Unchanged> {
        let (folder, name) = self.folder_of(writing.path, Some(made))?;
        let mode = match is_there {
            true => match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => Some(found.st_mode & 0o777),
                // By hand the file was removed meanwhile.
                Err(Errno::NOENT) => return Err(Unchanged::Stale(None)),
                Err(error) => return Err(error.into()),
            },
            false => None,
        };
        let unfinished = Unfinished::write(folder.as_fd(), writing, mode)?;
        crash_point("files::before_rename");
        // By hand something else may have been saved meanwhile.
        let now = self.read(writing.path, writing.most)?;
        if now.is_some() != is_there || !(writing.may_replace)(now.as_deref()) {
            return Err(Unchanged::Stale(now));
        }
        match is_there {
            true => unfinished.replace(name)?,
            false => unfinished.create(name)?,
        }
        crash_point("files::after_rename");
        confirm(&folder)
    }

    /// Deletes a file of at most `most` bytes. Blocks.
    ///
    /// # Errors
    /// The reason why nothing was changed; only after `Unconfirmed` the file is changed.
    pub(super) fn delete(
        &self,
        path: &str,
        most: usize,
        may_delete: &dyn Fn(Option<&[u8]>) -> bool,
    ) -> Result<(), Unchanged> {
        let found = self.read_of_any_size(path, most, may_delete)?;
        if found.is_none() || !may_delete(found.as_deref()) {
            return Err(Unchanged::Stale(found));
        }
        let (folder, name) = self.folder_of(path, None)?;
        crash_point("files::before_delete");
        rustix::fs::unlinkat(&folder, name, AtFlags::empty())?;
        confirm(&folder)
    }

    /// Renames a file of at most `most` bytes. Nothing may have the new path. Blocks.
    ///
    /// # Errors
    /// As [`write`](Self::write); `Occupied` also where something has the new path.
    pub(super) fn rename(
        &self,
        from: &str,
        to: &str,
        most: usize,
        may_rename: &dyn Fn(Option<&[u8]>) -> bool,
    ) -> Result<(), Unchanged> {
        let found = self.read(from, most)?;
        if found.is_none() || !may_rename(found.as_deref()) {
            return Err(Unchanged::Stale(found));
        }
        self.refuse_other_case(to, Some(from))?;
        let mut made = Made::default();
        let renamed = (|| {
            let (target, new) = self.folder_of(to, Some(&mut made))?;
            let (source, old) = self.folder_of(from, None)?;
            crash_point("files::before_rename");
            match rustix::fs::renameat_with(&source, old, &target, new, RenameFlags::NOREPLACE) {
                Ok(()) => {}
                Err(Errno::EXIST) => return Err(Unchanged::Occupied),
                Err(error) => return Err(error.into()),
            }
            crash_point("files::after_rename");
            confirm(&target)?;
            confirm(&source)
        })();
        if renamed.is_err() {
            made.remove();
        }
        renamed
    }

    /// Removes what changes of processes that died have left in folders that `wants` accepts. Blocks.
    ///
    /// # Errors
    /// When a folder can't be listed.
    pub(super) fn remove_leftovers(&self, wants: &impl Fn(&str) -> bool) -> io::Result<()> {
        let mut found = Vec::new();
        let wanted = |kind, path: &str| match kind {
            super::folder::Found::Folder => wants(path),
            super::folder::Found::File => is_unfinished(path.rsplit('/').next().unwrap_or_default()),
        };
        self.0.walk(&wanted, &mut |path, _| {
            found.push(path);
            true
        })?;
        for path in found {
            if let Ok((folder, name)) = self.folder_of(&path, None) {
                let _ = rustix::fs::unlinkat(&folder, name, AtFlags::empty());
            }
        }
        Ok(())
    }

    /// Reads a file; none if there is nothing of this name.
    fn read(&self, path: &str, most: usize) -> Result<Option<Vec<u8>>, Unchanged> {
        match self.0.read(path, most) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Unread::Missing) if self.is_occupied(path) => Err(Unchanged::Occupied),
            Err(Unread::Missing) => Ok(None),
            Err(Unread::TooLarge(_)) => Err(Unchanged::TooLarge),
            Err(Unread::Refused(error)) => Err(Unchanged::Refused(error)),
        }
    }

    /// Reads a file as [`read`](Self::read) does, but takes one beyond the limit as an empty one where the version does
    /// not matter.
    fn read_of_any_size(
        &self,
        path: &str,
        most: usize,
        may_delete: &dyn Fn(Option<&[u8]>) -> bool,
    ) -> Result<Option<Vec<u8>>, Unchanged> {
        match self.read(path, most) {
            Err(Unchanged::TooLarge) if may_delete(Some(b"")) => Ok(Some(Vec::new())),
            other => other,
        }
    }

    /// Returns true if a link, a folder or another oddity has the path, or one has the path of a folder on the way.
    fn is_occupied(&self, path: &str) -> bool {
        let mut folder = None::<OwnedFd>;
        for part in path.split('/') {
            let at = folder.as_ref().map_or(self.0.handle(), AsFd::as_fd);
            if rustix::fs::statat(at, part, AtFlags::SYMLINK_NOFOLLOW).is_err() {
                return false;
            }
            match enter(at, part) {
                Ok(inner) => folder = Some(inner),
                Err(_) => return true,
            }
        }
        true
    }

    /// Returns the folder of a path and the name in that folder. Missing folders are made and recorded in `made`.
    fn folder_of<'p>(
        &self,
        path: &'p str,
        mut made: Option<&mut Made>,
    ) -> Result<(OwnedFd, &'p str), Unchanged> {
        let mut folder = self.0.handle().try_clone_to_owned()?;
        let (way, name) = path.rsplit_once('/').unwrap_or(("", path));
        for part in way.split('/').filter(|part| !part.is_empty()) {
            folder = match (enter(folder.as_fd(), part), made.as_deref_mut()) {
                (Err(Errno::NOENT), Some(made)) => {
                    match rustix::fs::mkdirat(&folder, part, Mode::from_raw_mode(0o777)) {
                        Ok(()) => {
                            rustix::fs::fsync(&folder)?;
                            made.add(&folder, part)?;
                        }
                        // Somebody else has made it.
                        Err(Errno::EXIST) => {}
                        Err(error) => return Err(error.into()),
                    }
                    enter(folder.as_fd(), part)?
                }
                (entered, _) => entered?,
            };
        }
        Ok((folder, name))
    }

    /// Refuses a new path of which a part is there already in other letters; `except` is a path that is about to go.
    fn refuse_other_case(&self, path: &str, except: Option<&str>) -> Result<(), Unchanged> {
        let mut folder = self.0.handle().try_clone_to_owned()?;
        let mut way = String::new();
        for part in path.split('/') {
            let folded = part.to_lowercase();
            for entry in Dir::read_from(&folder)? {
                let entry = entry?;
                let Ok(name) = entry.file_name().to_str() else {
                    continue;
                };
                let there = format!("{way}{name}");
                if name != part && name.to_lowercase() == folded && except != Some(there.as_str()) {
                    return Err(Unchanged::OtherCase(there));
                }
            }
            way.push_str(part);
            way.push('/');
            match enter(folder.as_fd(), part) {
                Ok(inner) => folder = inner,
                // From here on all is new.
                Err(Errno::NOENT) => return Ok(()),
                Err(Errno::NOTDIR | Errno::LOOP) if path == way.trim_end_matches('/') => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Waits until the disk has the names of a folder in which one was changed.
fn confirm(folder: &OwnedFd) -> Result<(), Unchanged> {
    rustix::fs::fsync(folder).map_err(|error| Unchanged::Unconfirmed(error.into()))
}

/// Returns true for the name of a file that is being written.
fn is_unfinished(name: &str) -> bool {
    let (start, end) = UNFINISHED;
    let middle = name.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
    middle.is_some_and(|middle| uuid::Uuid::try_parse(middle).is_ok())
}

/// The folders that a change has made, which go again if it fails.
#[derive(Default)]
struct Made(Vec<(OwnedFd, String)>);

impl Made {
    fn add(&mut self, folder: &OwnedFd, name: &str) -> io::Result<()> {
        self.0.push((folder.try_clone()?, name.to_owned()));
        Ok(())
    }

    fn remove(self) {
        // Those that others use by now are not empty, and stay.
        for (folder, name) in self.0.iter().rev() {
            let _ = rustix::fs::unlinkat(folder, name.as_str(), AtFlags::REMOVEDIR);
        }
    }
}

/// A file that is written and has no name of its own yet; it goes when dropped.
struct Unfinished<'f> {
    folder: BorrowedFd<'f>,
    name: String,
}

impl<'f> Unfinished<'f> {
    fn write(folder: BorrowedFd<'f>, writing: &Writing<'_>, mode: Option<u32>) -> Result<Self, Unchanged> {
        let (start, end) = UNFINISHED;
        let name = format!("{start}{}{end}", uuid::Uuid::new_v4());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Nobody else reads it before it is known who may.
        let first = if mode.is_some() || writing.is_secret {
            SECRET
        } else {
            USUAL
        };
        let file = rustix::fs::openat(folder, &name, flags, Mode::from_raw_mode(first))?;
        let unfinished = Self { folder, name };
        if let Some(mode) = mode {
            rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
        }
        let mut file = File::from(file);
        file.write_all(writing.bytes)?;
        file.sync_all()?;
        Ok(unfinished)
    }

    /// Gives the file the name of one that is there.
    fn replace(self, name: &str) -> Result<(), Unchanged> {
        rustix::fs::renameat(self.folder, &self.name, self.folder, name)?;
        Ok(())
    }

    /// Gives the file a name that nothing has.
    fn create(self, name: &str) -> Result<(), Unchanged> {
        match rustix::fs::renameat_with(self.folder, &self.name, self.folder, name, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => Err(Unchanged::Occupied),
            // Some file systems know no such rename. A second name is refused where there is one, too.
            Err(Errno::INVAL | Errno::NOSYS) => {
                match rustix::fs::linkat(self.folder, &self.name, self.folder, name, AtFlags::empty()) {
                    Ok(()) => Ok(()),
                    Err(Errno::EXIST) => Err(Unchanged::Occupied),
                    Err(error) => Err(error.into()),
                }
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        // After a rename there is none.
        let _ = rustix::fs::unlinkat(self.folder, &self.name, AtFlags::empty());
    }
}

#[cfg(test)]
mod tests;
