//! The lease on a catalog file: a lock of the operating system.
//!
//! It is gone with its process, however that ends, so there is no stale lock to clean up and no process id to
//! mistrust. The lock is on a file beside the catalog, because SQLite locks the catalog itself in its own ways.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use super::StoreError;
use crate::sync::Unpoisoned;

/// The files that are locked by this process, so that an error can tell it from others.
static LOCKED_HERE: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Links that are followed one after the other: as many as the system follows. With more, no file can be opened.
const LINKS_MAX: usize = 40;

/// Held for as long as the catalog is open.
#[derive(Debug)]
pub(super) struct Lock {
    /// Given up when this is dropped.
    file: Option<File>,
    /// The resolved path of the file.
    path: PathBuf,
}

impl Lock {
    /// Takes the lock, or says at once who else has it.
    pub(super) fn take(catalog: &Path) -> Result<Self, StoreError> {
        let path = beside(catalog, ".lock");
        let io = |source| StoreError::Io {
            path: path.clone(),
            source,
        };
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(io)?;
        let resolved = path.canonicalize().map_err(io)?;
        // Held over the attempt: a lock that is given up meanwhile is free and gone from the list, or neither.
        let mut locked_here = locked_here();
        match file.try_lock() {
            Ok(()) => {
                locked_here.insert(resolved.clone());
                Ok(Self {
                    file: Some(file),
                    path: resolved,
                })
            }
            Err(TryLockError::WouldBlock) => {
                let path = catalog.to_owned();
                Err(match locked_here.contains(&resolved) {
                    true => StoreError::InUseHere { path },
                    false => StoreError::Locked { path },
                })
            }
            Err(TryLockError::Error(source)) => Err(io(source)),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let mut locked_here = locked_here();
        drop(self.file.take());
        locked_here.remove(&self.path);
    }
}

/// A panic elsewhere leaves the list whole.
fn locked_here() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    LOCKED_HERE.lock().unpoisoned()
}

/// The path of a file that belongs to the catalog: its name with `suffix` appended. Where the catalog's path is a link,
/// that file lies beside the catalog itself, as SQLite's own files do: whoever comes by another path must find it.
pub(super) fn beside(catalog: &Path, suffix: &str) -> PathBuf {
    let mut path = follow(catalog).into_os_string();
    path.push(suffix);
    PathBuf::from(path)
}

/// Follows the links that a path ends in, also to a file that is still to be made. Links to folders are followed by
/// whoever opens it.
fn follow(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(target) = fs::read_link(&path) else {
            break;
        };
        // A relative one counts from the folder of the link; an absolute one takes its place.
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    path
}
