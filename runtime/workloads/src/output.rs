//! Output files of programs: one for each start, of which the last two are kept.

mod follower;

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use watershed_core::Timestamp;

pub use self::follower::Follower;

/// The most bytes of a file that are read for its last lines.
const MOST_READ: u64 = 4 << 20;
/// The fewest bytes of a line's end that are shown if the beginning of the line is not read.
const LINE_SHOWN: usize = 64 << 10;
/// Text in place of the cut beginning of a long line.
const CUT: &str = "...";
/// The most bytes before a position that are searched for the beginning of a line.
const LONGEST_LINE: u64 = 64 << 10;

/// Returns the output file of a start in the output folder.
pub fn file_of(folder: &Path, uid: &str, counter: u64) -> PathBuf {
    folder.join(uid).join(format!("{counter}.log"))
}

/// Removes the output files of starts with lower counters.
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

/// Reads the end of a file, or all after a position: of more than `most` bytes only the last ones, from the first
/// complete line on, or the end of a longer line. Returns the length of the file; 0 if missing.
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

/// Returns the beginning of the line at a position, or the position itself if the beginning is too far away.
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
