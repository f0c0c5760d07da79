//! The output of programs: one file for each start, of which the last two are kept.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use watershed_core::Timestamp;
use watershed_shim::written_since;

/// Bytes of a file that are read for its last lines, at most.
const MOST_READ: u64 = 4 << 20;
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

/// A file of output as it is followed.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    position: u64,
    /// The beginning of a line that has no end yet.
    partial: Vec<u8>,
}

impl Follower {
    /// Begins to follow a file. Returns its last lines so far, at most `limit`, and with `since` those that were written
    /// after that time: up to a second more of what is new, and of older output a 64th of its age.
    ///
    /// # Errors
    /// When it can't be read. One that is not there yet has no lines.
    pub fn begin(path: PathBuf, limit: usize, since: Option<Timestamp>) -> io::Result<(Self, Vec<String>)> {
        let mut follower = Self {
            path,
            position: 0,
            partial: Vec::new(),
        };
        let mut text = Vec::new();
        // What was moved to the last copy, where the file itself has little.
        let copy = PathBuf::from(format!("{}.1", follower.path.display()));
        let place = |path: &Path| since.and_then(|since| written_since(path, unsigned(since)));
        let from = place(&follower.path);
        let length = fs::metadata(&follower.path).map_or(0, |found| found.len());
        if length < MOST_READ && from.is_none() {
            read_end(&copy, place(&copy), MOST_READ - length, &mut text)?;
        }
        follower.position = read_end(&follower.path, from, MOST_READ, &mut text)?;
        let mut lines = follower.take_lines(&text);
        lines.drain(..lines.len().saturating_sub(limit));
        Ok((follower, lines))
    }

    /// Returns the lines that were written since.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn more(&mut self) -> io::Result<Vec<String>> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let length = file.metadata()?.len();
        if length < self.position {
            // It was copied away and begun anew.
            self.position = 0;
        }
        file.seek(SeekFrom::Start(self.position))?;
        let mut text = Vec::new();
        let read = file.take(MOST_READ).read_to_end(&mut text)?;
        self.position += u64::try_from(read).unwrap_or(0);
        Ok(self.take_lines(&text))
    }

    /// Returns what is left: a last line without an end.
    pub fn rest(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.partial);
        (!rest.is_empty()).then(|| String::from_utf8_lossy(&rest).into_owned())
    }

    fn take_lines(&mut self, text: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for piece in text.split_inclusive(|byte| *byte == b'\n') {
            self.partial.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.partial);
                let line = String::from_utf8_lossy(&line);
                lines.push(line.trim_end_matches(['\n', '\r']).to_owned());
            }
        }
        lines
    }
}

fn unsigned(at: Timestamp) -> u64 {
    u64::try_from(at.0).unwrap_or(0)
}

/// Reads the end of a file, or what follows a place in it: of more than `most` bytes the last, from the first whole line
/// on. Returns its length; 0 for one that is not there.
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
    let skipped = match from == place {
        true => 0,
        false => text
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(text.len(), |at| at + 1),
    };
    into.extend(text.drain(skipped..));
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
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_is_followed_line_by_line_also_when_it_is_begun_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.log");
        let (mut follower, lines) = Follower::begin(path.clone(), 2, None).unwrap();
        assert!(lines.is_empty());
        fs::write(&path, "a\nb\nc").unwrap();
        assert_eq!(follower.more().unwrap(), ["a", "b"]);
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"d\n").unwrap();
        assert_eq!(follower.more().unwrap(), ["cd"]);
        fs::write(&path, "e\n").unwrap();
        assert_eq!(follower.more().unwrap(), ["e"]);
        let (mut again, lines) = Follower::begin(path.clone(), 5, None).unwrap();
        assert_eq!((lines, again.rest()), (vec!["e".to_owned()], None));
        fs::write(format!("{}.1", path.display()), "x\ny\n").unwrap();
        let (_, lines) = Follower::begin(path, 2, None).unwrap();
        assert_eq!(lines, ["y", "e"]);
    }

    /// The notes beside a file, as the parent of processes writes them.
    fn note(path: &Path, notes: &[(u64, u64)]) {
        let bytes = notes
            .iter()
            .flat_map(|(length, at)| [length.to_le_bytes(), at.to_le_bytes()]);
        fs::write(
            format!("{}.times", path.display()),
            bytes.collect::<Vec<_>>().concat(),
        )
        .unwrap();
    }

    #[test]
    fn what_was_written_since_a_time_begins_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.log");
        let copy = folder.path().join("1.log.1");
        fs::write(&copy, "a\nb\n").unwrap();
        fs::write(&path, "c\nlong\ne\n").unwrap();
        let since = |at: i64| {
            let found = Follower::begin(path.clone(), 100, Some(Timestamp(at)));
            found.unwrap().1.join(" ")
        };
        assert_eq!(
            since(5_000),
            "a b c long e",
            "without notes all of it counts as new"
        );
        note(&copy, &[(2, 1_000), (4, 2_000)]);
        note(&path, &[(4, 3_000), (9, 4_000)]);
        for (at, expected) in [
            (500, "a b c long e"),
            (1_000, "b c long e"),
            (2_999, "c long e"),
            (3_000, "long e"),
            (4_000, ""),
            (9_000, ""),
        ] {
            assert_eq!(since(at), expected, "{at}");
        }
    }

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
