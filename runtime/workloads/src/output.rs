//! The output of programs: one file for each start, of which the last two are kept.

mod follower;

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use watershed_core::Timestamp;

pub use self::follower::Follower;

/// Bytes of a file that are read for its last lines, at most.
const MOST_READ: u64 = 4 << 20;
/// Bytes of a line of which the beginning is not read, from which on its end is shown.
const LINE_SHOWN: usize = 64 << 10;
/// Stands in the place of the beginning of a line that is too long.
const CUT: &str = "...";
/// Bytes before a place that are searched for the beginning of its line.
const LONGEST_LINE: u64 = 64 << 10;

/// Returns the file of a start, below the folder of programs' output.
pub fn file_of(folder: &Path, uid: &str, counter: u64) -> PathBuf {
    folder.join(uid).join(format!("{counter}.log"))
}

/// Removes the files of starts before one.
pub(crate) fn prune(folder: &Path, uid: &str, oldest: u64) {
    for entry in fs::read_dir(folder.join(uid)).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let counter = name
            .to_str()
            .and_then(|name| name.split('.').next()?.parse::<u64>().ok());
        if counter.is_some_and(|counter| counter < oldest) {
            // What can't be removed now is removed with the next start.
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn unsigned(at: Timestamp) -> u64 {
    u64::try_from(at.0).unwrap_or(0)
}

/// Reads the end of a file, or what follows a place in it: of more than `most` bytes the last, from the first whole line
/// on. Of a line that is longer its end is read. Returns the length of the file; 0 for one that is not there.
fn read_end(path: &Path, place: Option<u64>, most: u64, into: &mut Vec<u8>) -> io::Result<u64> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    let place = place.map_or(Ok(0), |place| line_at(&mut file, place.min(length)))?;
    let bound = length.saturating_sub(most);
    let from = bound.max(place);
    file.seek(SeekFrom::Start(from))?;
    let mut text = Vec::new();
    let read = file.take(most).read_to_end(&mut text)?;
    let end = text.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
    match end.filter(|end| *end < text.len()) {
        _ if from == place => {}
        Some(end) => drop(text.drain(..end)),
        // All of it is one line.
        None if text.len() >= LINE_SHOWN => into.extend_from_slice(CUT.as_bytes()),
        None => text.clear(),
    }
    into.extend_from_slice(&text);
    Ok(from + u64::try_from(read).unwrap_or(0))
}

/// Returns the beginning of the line in which a place lies, or the place itself if that is far.
fn line_at(file: &mut File, place: u64) -> io::Result<u64> {
    let from = place.saturating_sub(LONGEST_LINE);
    file.seek(SeekFrom::Start(from))?;
    let mut before = Vec::new();
    file.take(place - from).read_to_end(&mut before)?;
    let end = before.iter().rposition(|byte| *byte == b'\n');
    Ok(match end {
        Some(end) => from + u64::try_from(end + 1).unwrap_or(0),
        None if from == 0 => 0,
        None => place,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_earlier_starts_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("u")).unwrap();
        for name in [
            "1.log",
            "1.log.times",
            "2.log",
            "2.log.1",
            "2.log.1.times",
            "3.log",
            "10.log",
            "other",
        ] {
            fs::write(folder.path().join("u").join(name), "").unwrap();
        }
        prune(folder.path(), "u", 3);
        let left = fs::read_dir(folder.path().join("u")).unwrap();
        let mut left: Vec<String> = left
            .map(|one| one.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["10.log", "3.log", "other"]);
    }
}
