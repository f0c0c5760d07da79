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

/// Files locked by this process, so that errors can tell its locks from those of others.
static LOCKED_HERE: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Maximum number of links followed in a row, as in the operating system; beyond that no file can be opened.
const LINKS_MAX: usize = 40;

/// The lock on a catalog file, held while the catalog is open.
#[derive(Debug)]
pub(super) struct Lock {
    /// The locked file; closing it releases the lock.
    file: Option<File>,
    /// Resolved path of the lock file.
    path: PathBuf,
}

impl Lock {
    /// Takes the lock, or fails at once with its holder: another process, or another controller of this one.
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

/// Locks the list of locked files, which a panic elsewhere leaves complete.
fn locked_here() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    LOCKED_HERE.lock().unpoisoned()
}

/// Returns the path of a file that belongs to the catalog: the catalog's name with `suffix` appended. If the path is a
/// link, the file lies beside the link's target, so that it is found by every path.
pub(super) fn beside(catalog: &Path, suffix: &str) -> PathBuf {
    let mut path = follow(catalog).into_os_string();
    path.push(suffix);
    PathBuf::from(path)
}

/// Follows the links at the end of a path, even to a file that does not exist yet. Links to folders are resolved when
/// the file is opened.
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
