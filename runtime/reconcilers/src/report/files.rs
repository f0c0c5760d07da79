//! The files of reports in one folder, written atomically, kept as long as their messages and within a total size.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The time for which a file is kept, equal to that of undelivered messages.
const KEPT: Duration = Duration::from_secs(31 * 24 * 3_600);
/// The largest total size of all files, in bytes.
const ROOM: u64 = 1 << 30;

/// The folder with the files of reports.
#[derive(Debug, Clone)]
pub struct Files {
    folder: PathBuf,
}

impl Files {
    /// Returns the store of files in a folder, which is created on the first write.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// Returns the path of a file, after creating the folder.
    ///
    /// # Errors
    /// When the folder can't be made.
    pub(super) fn place(&self, name: &str) -> io::Result<PathBuf> {
        std::fs::create_dir_all(&self.folder)?;
        Ok(self.folder.join(name))
    }

    /// Removes files that are too old, and the oldest ones while the total size is too large, but never `newest`. Files
    /// that can't be removed are left for the next time.
    pub(super) fn make_room(&self, newest: &Path) {
        self.make_room_within(newest, ROOM, SystemTime::now());
    }

    fn make_room_within(&self, newest: &Path, room: u64, now: SystemTime) {
        let Ok(entries) = std::fs::read_dir(&self.folder) else {
            return;
        };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in entries.flatten() {
            let Ok(about) = entry.metadata() else { continue };
            if about.is_file() {
                let written = about.modified().unwrap_or(now);
                files.push((written, about.len(), entry.path()));
            }
        }
        files.sort();
        let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (written, bytes, path) in files {
            let age = now.duration_since(written).unwrap_or_default();
            if path == newest || (age < KEPT && total <= room) {
                continue;
            }
            if std::fs::remove_file(&path).is_ok() {
                total = total.saturating_sub(bytes);
            }
        }
    }
}

/// Returns the hash of a file's content. Blocks.
///
/// # Errors
/// When it can't be read.
pub(super) fn hash(file: &Path) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(std::fs::File::open(file)?)?;
    Ok(hasher.finalize().to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_files_go_and_the_oldest_where_there_is_no_room() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::new(folder.path().join("exports"));
        let now = SystemTime::now();
        let write = |name: &str, days: u64| {
            let path = files.place(name).unwrap();
            std::fs::write(&path, [0; 100]).unwrap();
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(now - Duration::from_secs(days * 24 * 3_600))
                .unwrap();
            path
        };
        for (name, days) in [("a", 40), ("b", 20), ("c", 10)] {
            write(name, days);
        }
        let newest = write("d", 50);
        let names = || {
            let entries = std::fs::read_dir(folder.path().join("exports")).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        files.make_room_within(&newest, 1_000, now);
        assert_eq!(names(), ["b", "c", "d"]);
        files.make_room_within(&newest, 250, now);
        assert_eq!(names(), ["c", "d"]);
        files.make_room_within(&newest, 10, now);
        assert_eq!(names(), ["d"], "the newest stays whatever its size");
    }
}
