//! Local files for a path or pattern, and detection of changes since they were read.
//!
//! A file is known by its time and size; only where these do not settle it is its content hashed.
//! All of this blocks, so it runs on a thread for blocking work.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use globset::{GlobBuilder, GlobMatcher};
use thiserror::Error;
use walkdir::WalkDir;

use crate::regular::{self, Oddity, ReadError};
use crate::sandbox::Sandbox;

/// A local file in its current state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileNow {
    /// Path relative to the project, or absolute outside of it.
    pub path: String,
    /// Time of the last change, in nanoseconds since 1970: the later of that of the content (`mtime`) and that of the inode
    /// (`ctime`). A copy that keeps its times, over a file of equal size, moves the second alone.
    pub modified_ns: i64,
    /// Size in bytes.
    pub size: u64,
    /// Hash of the content; none unless time and size are not sufficient.
    pub content: Option<[u8; 32]>,
}

/// The most files that one pattern may match, since each is checked in every run.
pub const MAX_MATCHES: usize = 100_000;

/// The error of listing or checking local files.
#[derive(Debug, Error)]
pub enum FilesError {
    /// The file does not exist.
    #[error("file \"{path}\" does not exist")]
    Missing {
        /// Path as the user wrote it.
        path: String,
    },
    /// The path is a folder.
    #[error("\"{path}\" is a folder, expected a file")]
    Folder {
        /// Path as the user wrote it.
        path: String,
    },
    /// The path is not a regular file, so that reading it might never end.
    #[error("\"{path}\" is {oddity}, expected a regular file")]
    Odd {
        /// Path as the user wrote it, or as found.
        path: String,
        /// Kind of the special file.
        oddity: Oddity,
    },
    /// The pattern matches no file.
    #[error("no file matches \"{pattern}\"")]
    NoMatch {
        /// Pattern as the user wrote it.
        pattern: String,
    },
    /// The pattern matches more than [`MAX_MATCHES`] files.
    #[error("more than {MAX_MATCHES} files match \"{pattern}\"")]
    TooMany {
        /// Pattern as the user wrote it.
        pattern: String,
    },
    /// The pattern is not valid.
    #[error("can't read the pattern \"{pattern}\"")]
    Pattern {
        /// Pattern as the user wrote it.
        pattern: String,
        /// The pattern's syntax error.
        source: globset::Error,
    },
    /// The file contains no data.
    #[error("\"{path}\" is empty: even the names of its columns are missing")]
    Empty {
        /// Path or address of the file.
        path: String,
    },
    /// The file's values are nested too deeply.
    #[error("values in \"{path}\" are nested in more than {most} levels")]
    TooDeep {
        /// Path of the file with the values.
        path: String,
        /// The most levels that are supported.
        most: usize,
    },
    /// The pattern matches several workbooks, of which SQL reads the first.
    #[error("\"{pattern}\" matches {count} workbooks, and a query reads the first of them alone")]
    Workbooks {
        /// Pattern as the user wrote it.
        pattern: String,
        /// Number of matches.
        count: usize,
    },
    /// The end of the file is missing.
    #[error("\"{path}\" is cut off: its end is missing")]
    CutOff {
        /// Path of the truncated file.
        path: String,
        /// The last line that exists; none in formats without lines.
        line: Option<u32>,
    },
    /// A row of a CSV file has another number of values than all others.
    #[error("expected {expected} columns, found {found}")]
    Uneven {
        /// Path of the file.
        path: String,
        /// Line on which the row begins.
        line: u32,
        /// Number of values in the other rows.
        expected: u32,
        /// Number of values in this row.
        found: u32,
    },
    /// The file holds bytes that its encoding does not have.
    #[error("\"{path}\" is not in {encoding}: line {line} has bytes that mean nothing there")]
    Undecodable {
        /// Path of the file.
        path: String,
        /// Name of the encoding.
        encoding: &'static str,
        /// Line with the first such bytes.
        line: u32,
    },
    /// The file is encoded as big-endian UTF-16, which is not supported.
    #[error("\"{path}\" is in UTF-16 with the high byte first (big endian), which is not read")]
    Utf16BigEndian {
        /// Path of the file that is encoded this way.
        path: String,
    },
    /// The path is outside the folders to which the project is confined.
    #[error("\"{path}\" is outside the sandbox")]
    Outside {
        /// Path as the user wrote it.
        path: String,
    },
    /// The file can't be opened or read.
    #[error("can't read \"{path}\"")]
    Io {
        /// Path at which the access failed.
        path: String,
        /// The system's error.
        source: io::Error,
    },
}

/// Returns the files that match a path or pattern, sorted by path, with time and size but no hashes. Paths are relative
/// to `root` if below it; symbolic links are followed. Patterns support `*`, `?`, `[...]`, `{a,b}` and `**`.
///
/// # Errors
/// When nothing matches, or something can't be read.
pub fn look(root: &Path, pattern: &str) -> Result<Vec<FileNow>, FilesError> {
    match glob_base(pattern) {
        None => Ok(vec![look_at(root, pattern)?]),
        Some(base) => look_below(root, pattern, base),
    }
}

/// Refuses a path or pattern that begins outside a sandbox, before any access. Links below the base of a pattern are
/// left to the engine, which refuses them.
///
/// # Errors
/// When it is outside.
pub fn refuse_outside(sandbox: &Sandbox, root: &Path, pattern: &str) -> Result<(), FilesError> {
    let place = root.join(glob_base(pattern).unwrap_or(pattern));
    if sandbox.holds(&place) {
        return Ok(());
    }
    let path = pattern.to_owned();
    Err(FilesError::Outside { path })
}

/// Hashes a file's content.
///
/// # Errors
/// When it can't be read.
pub fn hash(root: &Path, path: &str) -> Result<[u8; 32], FilesError> {
    let hashed = regular::open(&root.join(path)).and_then(|(file, size)| {
        let mut hasher = blake3::Hasher::new();
        // What is appended meanwhile gives the file another time, so it is noticed by whoever looks again.
        hasher.update_reader(file.take(size))?;
        Ok(hasher.finalize().into())
    });
    let path = path.to_owned();
    hashed.map_err(|error| match error {
        ReadError::Odd(oddity) => FilesError::Odd { path, oddity },
        error => FilesError::Io {
            path,
            source: error.into(),
        },
    })
}

/// Converts a time to nanoseconds since 1970; 0 for earlier times.
#[must_use]
pub fn nanos(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// Returns the file at a path without interpreting patterns.
///
/// # Errors
/// When there is none.
pub fn look_at(root: &Path, path: &str) -> Result<FileNow, FilesError> {
    let metadata = fs::metadata(root.join(path)).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FilesError::Missing {
            path: path.to_owned(),
        },
        _ => FilesError::Io {
            path: path.to_owned(),
            source,
        },
    })?;
    let path_said = path.to_owned();
    match Oddity::from_type(metadata.file_type()) {
        None => {}
        Some(Oddity::Folder) => return Err(FilesError::Folder { path: path_said }),
        Some(oddity) => {
            let path = path_said;
            return Err(FilesError::Odd { path, oddity });
        }
    }
    Ok(file_now(root, Path::new(path), &metadata))
}

fn file_now(root: &Path, path: &Path, metadata: &fs::Metadata) -> FileNow {
    let below = path.strip_prefix(root).unwrap_or(path);
    FileNow {
        path: below.to_string_lossy().into_owned(),
        modified_ns: changed_ns(metadata).max(metadata.modified().map(nanos).unwrap_or_default()),
        size: metadata.len(),
        content: None,
    }
}

/// Returns the time of the last change of a file's inode, in nanoseconds since 1970. Programs can't set it.
#[cfg(unix)]
fn changed_ns(metadata: &fs::Metadata) -> i64 {
    use std::os::unix::fs::MetadataExt as _;
    let seconds = metadata.ctime().saturating_mul(1_000_000_000);
    seconds.saturating_add(metadata.ctime_nsec())
}

#[cfg(not(unix))]
fn changed_ns(_: &fs::Metadata) -> i64 {
    0
}

/// Returns the base folder of a pattern's matches; none for a plain path.
#[must_use]
pub fn glob_base(pattern: &str) -> Option<&str> {
    let special = pattern.find(['*', '?', '[', '{'])?;
    Some(
        pattern[..special]
            .rsplit_once('/')
            .map_or("", |(base, _)| if base.is_empty() { "/" } else { base }),
    )
}

fn look_below(root: &Path, pattern: &str, base: &str) -> Result<Vec<FileNow>, FilesError> {
    let folder = root.join(base);
    // From the folder on: what stands in the project's own path is no pattern.
    let matcher = matcher(below(pattern, base), pattern)?;
    let mut found = Vec::new();
    for entry in WalkDir::new(&folder)
        .follow_links(true)
        .max_depth(depth(pattern, base))
    {
        let entry = match entry {
            Ok(entry) => entry,
            // What is not there matches nothing; a loop of links is left alone.
            Err(error) if error.depth() == 0 || error.loop_ancestor().is_some() => continue,
            Err(error) => return Err(walk_error(pattern, error)),
        };
        let path = entry.path().strip_prefix(&folder).unwrap_or(entry.path());
        if !entry.file_type().is_dir() && matcher.is_match(path) {
            let metadata = entry.metadata().map_err(|error| walk_error(pattern, error))?;
            let file = file_now(root, entry.path(), &metadata);
            // The engine, which is handed the pattern, would open it.
            if let Some(oddity) = Oddity::from_type(metadata.file_type()) {
                let path = file.path;
                return Err(FilesError::Odd { path, oddity });
            }
            found.push(file);
        }
        if found.len() > MAX_MATCHES {
            return Err(FilesError::TooMany {
                pattern: pattern.to_owned(),
            });
        }
    }
    if found.is_empty() {
        return Err(FilesError::NoMatch {
            pattern: pattern.to_owned(),
        });
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Compiles `whole`, a pattern or a part of one. Errors quote `pattern`.
///
/// # Errors
/// When it is none.
pub fn matcher(whole: &str, pattern: &str) -> Result<GlobMatcher, FilesError> {
    let glob = GlobBuilder::new(whole).literal_separator(true).build();
    let glob = glob.map_err(|source| FilesError::Pattern {
        pattern: pattern.to_owned(),
        source,
    })?;
    Ok(glob.compile_matcher())
}

/// Returns the maximum depth of matches below the base, so that `data/*.csv` walks no deep tree.
#[must_use]
pub fn depth(pattern: &str, base: &str) -> usize {
    if pattern.contains("**") {
        return usize::MAX;
    }
    below(pattern, base).split('/').count()
}

/// Returns the part of a pattern after its base.
#[must_use]
pub fn below<'a>(pattern: &'a str, base: &str) -> &'a str {
    pattern
        .strip_prefix(base)
        .unwrap_or(pattern)
        .trim_start_matches('/')
}

fn walk_error(pattern: &str, error: walkdir::Error) -> FilesError {
    let path = error
        .path()
        .map_or_else(|| PathBuf::from(pattern), Path::to_path_buf);
    FilesError::Io {
        path: path.to_string_lossy().into_owned(),
        source: error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        root
    }

    fn paths(root: &Path, pattern: &str) -> Vec<String> {
        look(root, pattern)
            .unwrap()
            .into_iter()
            .map(|file| file.path)
            .collect()
    }

    #[test]
    fn a_plain_path_is_one_file_with_its_size() {
        let root = project(&["data/a.csv"]);
        let files = look(root.path(), "data/a.csv").unwrap();
        assert_eq!(files.len(), 1);
        assert_eq!((files[0].path.as_str(), files[0].size), ("data/a.csv", 10));
        assert!(files[0].modified_ns > 0);
    }

    #[test]
    fn a_folder_that_looks_like_a_pattern_is_none() {
        let root = project(&["odd[1]/data/a.csv", "odd[1]/data/deep/b.csv", "odd1/data/c.csv"]);
        let odd = root.path().join("odd[1]");
        assert_eq!(paths(&odd, "data/*.csv"), ["data/a.csv"]);
        assert_eq!(paths(&odd, "**/*.csv"), ["data/a.csv", "data/deep/b.csv"]);
    }

    #[test]
    fn an_absolute_path_below_the_project_is_the_same_file() {
        let root = project(&["data/a.csv"]);
        let absolute = root.path().join("data/a.csv");
        assert_eq!(paths(root.path(), absolute.to_str().unwrap()), ["data/a.csv"]);
    }

    #[test]
    fn a_pattern_matches_files_of_one_folder_in_order() {
        let root = project(&[
            "data/b.csv",
            "data/a.csv",
            "data/c.txt",
            "data/deep/d.csv",
            "e.csv",
        ]);
        assert_eq!(paths(root.path(), "data/*.csv"), ["data/a.csv", "data/b.csv"]);
        assert_eq!(paths(root.path(), "*.csv"), ["e.csv"]);
        assert_eq!(paths(root.path(), "*/[ab].csv"), ["data/a.csv", "data/b.csv"]);
    }

    #[test]
    fn two_stars_match_any_depth() {
        let root = project(&["data/a.csv", "data/x/y/b.csv"]);
        assert_eq!(
            paths(root.path(), "data/**/*.csv"),
            ["data/a.csv", "data/x/y/b.csv"]
        );
    }

    #[test]
    fn what_is_not_there_is_named() {
        let root = project(&["data/a.csv"]);
        let message = |pattern: &str| look(root.path(), pattern).unwrap_err().to_string();
        assert_eq!(message("data/b.csv"), "file \"data/b.csv\" does not exist");
        assert_eq!(
            message("data/a.csv/b.csv"),
            "file \"data/a.csv/b.csv\" does not exist"
        );
        assert_eq!(message("data"), "\"data\" is a folder, expected a file");
        assert_eq!(message("data/*.json"), "no file matches \"data/*.json\"");
        assert_eq!(message("other/*.json"), "no file matches \"other/*.json\"");
    }

    #[cfg(unix)]
    #[test]
    fn a_loop_of_links_ends() {
        let root = project(&["data/a.csv"]);
        std::os::unix::fs::symlink(root.path().join("data"), root.path().join("data/loop")).unwrap();
        assert_eq!(paths(root.path(), "data/**/*.csv"), ["data/a.csv"]);
    }

    #[test]
    fn equal_content_has_equal_hashes() {
        let root = project(&["a", "b"]);
        fs::write(root.path().join("b"), "a").unwrap();
        assert_eq!(hash(root.path(), "a").unwrap(), hash(root.path(), "b").unwrap());
        fs::write(root.path().join("b"), "c").unwrap();
        assert_ne!(hash(root.path(), "a").unwrap(), hash(root.path(), "b").unwrap());
    }
}
