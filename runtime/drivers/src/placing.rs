//! Atomic replacement of a file or folder: readers see the old or the new one as a whole.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::crash;

/// Renames `part`, a complete file or folder, to the free path `target`.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] when something came to stand there, which stays; `part` is as it was then.
pub fn put(part: &Path, target: &Path) -> io::Result<()> {
    sync(part)?;
    crash::point("drivers::place::before");
    rename_to_nothing(part, target)?;
    crash::point("drivers::place::after");
    sync_folder_of(target);
    Ok(())
}

/// Exchanges `part`, a complete file or folder, with the one at `target`, which is then at `part`.
///
/// # Errors
/// When one of them is not there, or the system refuses. Then both are as they were, as far as it allows.
pub fn swap(part: &Path, target: &Path) -> io::Result<()> {
    sync(part)?;
    crash::point("drivers::place::before");
    exchange(part, target)?;
    crash::point("drivers::place::after");
    sync_folder_of(target);
    Ok(())
}

/// Removes a file or a folder with its content; succeeds if there is none.
///
/// # Errors
/// When the system refuses.
pub fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(any(target_os = "linux", target_vendor = "apple"))]
fn rename_to_nothing(part: &Path, target: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, part, CWD, target, RenameFlags::NOREPLACE) {
        Err(error) if is_unknown(error) => rename_if_nothing(part, target),
        renamed => Ok(renamed?),
    }
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn rename_to_nothing(part: &Path, target: &Path) -> io::Result<()> {
    rename_if_nothing(part, target)
}

#[cfg(any(target_os = "linux", target_vendor = "apple"))]
fn exchange(part: &Path, target: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, part, CWD, target, RenameFlags::EXCHANGE) {
        Err(error) if is_unknown(error) => exchange_by_three(part, target),
        renamed => Ok(renamed?),
    }
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn exchange(part: &Path, target: &Path) -> io::Result<()> {
    exchange_by_three(part, target)
}

/// Returns true if the file system does not support such a rename.
#[cfg(any(target_os = "linux", target_vendor = "apple"))]
fn is_unknown(error: rustix::io::Errno) -> bool {
    use rustix::io::Errno;
    [Errno::INVAL, Errno::NOSYS, Errno::NOTSUP].contains(&error)
}

/// Renames without the system's support for free targets: an object that appears meanwhile is lost.
fn rename_if_nothing(part: &Path, target: &Path) -> io::Result<()> {
    match target.symlink_metadata() {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(part, target),
    }
}

/// Exchanges without the system's support: for a moment, nothing is at `target`.
fn exchange_by_three(part: &Path, target: &Path) -> io::Result<()> {
    let aside = aside(part);
    fs::rename(target, &aside)?;
    if let Err(error) = fs::rename(part, target) {
        fs::rename(&aside, target)?;
        return Err(error);
    }
    fs::rename(&aside, part)
}

/// Returns the path to which an existing file is moved out of the way of a part.
#[must_use]
pub fn aside(part: &Path) -> PathBuf {
    let mut name = part.as_os_str().to_owned();
    name.push(".old");
    name.into()
}

/// Syncs a file or folder with its content to disk.
fn sync(path: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    if found.is_dir() {
        for entry in fs::read_dir(path)? {
            sync(&entry?.path())?;
        }
    }
    match File::open(path)?.sync_all() {
        // Some file systems can't do that for folders; what is in them is there all the same.
        Err(_) if found.is_dir() => Ok(()),
        synced => synced,
    }
}

fn sync_folder_of(target: &Path) {
    if let Some(folder) = target.parent() {
        // Some file systems can't; the file is there all the same.
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    fn read(path: &Path) -> String {
        fs::read_to_string(path).unwrap()
    }

    #[test]
    fn what_stands_there_is_never_replaced_by_a_part_that_expects_nothing() {
        for put in [put, rename_if_nothing] {
            let temp = folder();
            let (part, target) = (temp.path().join("part"), temp.path().join("target"));
            fs::write(&part, "new").unwrap();
            fs::write(&target, "old").unwrap();
            let refused = put(&part, &target).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
            assert_eq!((read(&part), read(&target)), ("new".into(), "old".into()));
            fs::remove_file(&target).unwrap();
            put(&part, &target).unwrap();
            assert_eq!(read(&target), "new");
            assert!(!part.exists());
        }
    }

    #[test]
    fn folders_and_files_change_places_whole() {
        for swap in [swap, exchange_by_three] {
            let temp = folder();
            let (part, target) = (temp.path().join("part"), temp.path().join("target"));
            fs::create_dir_all(part.join("deep")).unwrap();
            fs::write(part.join("deep/a"), "new").unwrap();
            fs::write(&target, "old").unwrap();
            swap(&part, &target).unwrap();
            assert_eq!(
                (read(&target.join("deep/a")), read(&part)),
                ("new".into(), "old".into())
            );
            assert!(!aside(&part).exists());
            remove(&target).unwrap();
            assert!(swap(&part, &target).is_err(), "nothing stands there");
            assert_eq!(read(&part), "old");
            remove(&part).unwrap();
            remove(&part).unwrap();
        }
    }
}
