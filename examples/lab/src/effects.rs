//! The story of what really happened outside: a line for each effect, written by whoever had it.
//!
//! A step may be performed twice, when a crash falls between its effect and its record; its effect must not happen twice.
//! So each effect has one winner: who makes a folder, who takes its lock, who moves it away.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Adds a line. One short write to the end of a file is whole or not there.
pub(crate) fn note(lab: &Path, line: &str) -> io::Result<()> {
    let path = lab.join("effects");
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(format!("{line}\n").as_bytes())
}

/// Returns all lines.
pub(crate) fn all(lab: &Path) -> Vec<String> {
    let text = fs::read_to_string(lab.join("effects")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Makes a folder; false if it was there.
pub(crate) fn make(path: &Path) -> io::Result<bool> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match fs::create_dir(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes a folder whole; false if it was gone. It is moved away first, so that nobody finds half of one.
pub(crate) fn remove(lab: &Path, path: &Path, mark: &str) -> io::Result<bool> {
    let away = lab.join(format!("removed-{mark}"));
    let is_first = match fs::rename(path, &away) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(error),
    };
    match fs::remove_dir_all(&away) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(is_first),
    }
}
