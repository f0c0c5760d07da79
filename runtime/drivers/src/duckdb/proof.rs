//! Proof that nobody has written to the engine's file since it was closed.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::olap::{self, Failure, OpenError};

/// Stamps of the engine's file and its write-ahead log. Equal proofs mean equal content, since every writer changes
/// size or time, and a replaced file has another inode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileProof {
    /// Stamp of the database file.
    pub file: Stamp,
    /// Stamp of its write-ahead log; none after an orderly close.
    pub wal: Option<Stamp>,
}

/// Identity, size and time of a file in the file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The inode number of the file (0 if there is none).
    pub inode: u64,
    /// Size in bytes.
    pub size: u64,
    /// Modification time in nanoseconds since 1970 (negative before).
    pub modified_ns: i64,
}

impl FileProof {
    /// Reads the stamps without opening the engine's file; `None` if the file does not exist.
    ///
    /// # Errors
    /// What the file system says, except that a file is missing.
    pub fn read(path: &Path) -> io::Result<Option<Self>> {
        let Some(file) = Stamp::read(path)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            file,
            wal: Stamp::read(&wal_path(path))?,
        }))
    }

    /// Returns the stamp as text, for storing. Equal proofs have equal texts in all versions.
    pub fn to_stamp(&self) -> olap::Stamp {
        let json = |stamp: &Stamp| {
            let Stamp {
                inode,
                size,
                modified_ns,
            } = stamp;
            format!(r#"{{"inode":{inode},"size":{size},"modified_ns":{modified_ns}}}"#)
        };
        let wal = self.wal.as_ref().map_or("null".to_owned(), json);
        olap::Stamp::new(format!(r#"{{"file":{},"wal":{wal}}}"#, json(&self.file)))
    }
}

/// Returns the stamp of the engine's file in the callers' form; none if there is no file.
pub(super) fn stamp(path: &Path) -> Result<Option<olap::Stamp>, Failure> {
    FileProof::read(path)
        .map(|proof| proof.map(|proof| proof.to_stamp()))
        .map_err(|error| {
            let (path, message) = (path.to_owned(), error.to_string());
            Failure::Open(OpenError::Io { path, message })
        })
}

/// Returns the stamp of a lake whose catalog is in a file, from that file and its log; none if there is no file. A log without
/// anything in it is none: whoever reads a catalog of SQLite makes one.
pub(super) fn stamp_of_catalog(file: &Path) -> Result<Option<olap::Stamp>, Failure> {
    let read = || -> io::Result<Option<olap::Stamp>> {
        let Some(proof) = FileProof::read(file)? else {
            return Ok(None);
        };
        let mut log = file.as_os_str().to_owned();
        log.push("-wal");
        let log = Stamp::read(Path::new(&log))?.filter(|log| log.size > 0);
        let wal = proof.wal.or(log);
        Ok(Some(FileProof { wal, ..proof }.to_stamp()))
    };
    read().map_err(|error| {
        let (path, message) = (file.to_owned(), error.to_string());
        Failure::Open(OpenError::Io { path, message })
    })
}

/// Returns the stamp of a lake whose catalog a server has, from its newest snapshot.
pub(super) fn stamp_of_snapshot(snapshot: i64) -> olap::Stamp {
    olap::Stamp::new(format!(r#"{{"snapshot":{snapshot}}}"#))
}

impl Stamp {
    /// Reads the stamp of a file; `None` if the file does not exist.
    ///
    /// # Errors
    /// What the file system says, except that the file is missing.
    pub fn read(path: &Path) -> io::Result<Option<Self>> {
        match std::fs::metadata(path) {
            Ok(metadata) => Ok(Some(Self::from_metadata(&metadata))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates the stamp from a file's metadata.
    pub fn from_metadata(metadata: &Metadata) -> Self {
        Self {
            inode: inode(metadata),
            size: metadata.len(),
            modified_ns: modified_ns(metadata),
        }
    }
}

#[cfg(unix)]
fn inode(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> u64 {
    0
}

fn modified_ns(metadata: &Metadata) -> i64 {
    let Ok(time) = metadata.modified() else { return 0 };
    let ns = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i128::try_from(after.as_nanos()).unwrap_or(i128::MAX),
        Err(before) => -i128::try_from(before.duration().as_nanos()).unwrap_or(i128::MAX),
    };
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// Returns the path of a file's write-ahead log.
pub(crate) fn wal_path(path: &Path) -> PathBuf {
    let mut wal = path.as_os_str().to_owned();
    wal.push(".wal");
    wal.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_the_text_that_was_always_stored() {
        let stamp = |size| Stamp {
            inode: 7,
            size,
            modified_ns: -5,
        };
        let mut proof = FileProof {
            file: stamp(4096),
            wal: None,
        };
        let file = r#"{"file":{"inode":7,"size":4096,"modified_ns":-5},"wal":"#;
        assert_eq!(proof.to_stamp().as_str(), format!("{file}null}}"));
        proof.wal = Some(stamp(1));
        let wal = r#"{"inode":7,"size":1,"modified_ns":-5}}"#;
        assert_eq!(proof.to_stamp().as_str(), format!("{file}{wal}"));
    }
}
