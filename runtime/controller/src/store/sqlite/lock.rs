//! The lease on a catalog file: a lock of the operating system.
//!
//! It is gone with its process, however that ends, so there is no stale lock to clean up and no process id to
//! mistrust. The lock is on a file beside the catalog, because SQLite locks the catalog itself in its own ways.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use super::StoreError;

/// Held for as long as the catalog is open.
#[derive(Debug)]
pub(super) struct Lock {
    /// Dropping the file gives the lock back.
    _file: File,
}

impl Lock {
    /// Takes the lock, or says at once that another process has it.
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
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(StoreError::Locked {
                path: catalog.to_owned(),
            }),
            Err(TryLockError::Error(source)) => Err(io(source)),
        }
    }
}

/// The path of a file that belongs to the catalog: its name with `suffix` appended.
pub(super) fn beside(catalog: &Path, suffix: &str) -> PathBuf {
    let mut path = catalog.as_os_str().to_owned();
    path.push(suffix);
    PathBuf::from(path)
}
