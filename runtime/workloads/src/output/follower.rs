//! Following an output file while it grows and is rotated.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use watershed_core::Timestamp;
use watershed_shim::{left_out, written_since};

use super::{MOST_READ, read_end, unsigned};

/// The most attempts to read a file that is rotated during the read, in one call.
const LOOKS: usize = 4;
/// The most copies that are searched for new ones. More appear only if a program writes faster than the follower reads.
const COPIES_MAX: u32 = 64;
/// The most bytes at the beginning of a copy that are searched for a marker line about missing output.
const LINE_READ: u64 = 4 << 10;
/// The most bytes of an incomplete line before its beginning is returned.
const LINE_MAX: usize = 4 << 20;

/// A reader that follows an output file through rotations.
///
/// The file is truncated when its text has been copied to `.1`, after `.1` was moved to `.2`, and so on. So the oldest copy that
/// was not there before is what the file was, and the place up to which it was read is a place in that copy.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    position: u64,
    /// Identity of the first copy at the last read; none without copies.
    first_copy: Option<CopyId>,
    /// True if the file was shorter than before without a new copy, which may be about to appear.
    waits_for_copy: bool,
    /// Copies to read before the file, kept open since they may be moved or removed.
    behind: VecDeque<File>,
    /// The beginning of an incomplete line.
    partial: Vec<u8>,
}

/// The identity of a copy, which survives a rename.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CopyId {
    length: u64,
    changed_at: Option<SystemTime>,
}

impl Follower {
    /// Opens a file for following. Returns its last lines, at most `limit`, and with `since` only lines written after
    /// that time. The time is known within a second for new lines, and within a 64th of their age for older ones.
    ///
    /// # Errors
    /// When it can't be read. One that is not there yet has no lines.
    pub fn begin(path: PathBuf, limit: usize, since: Option<Timestamp>) -> io::Result<(Self, Vec<String>)> {
        let mut follower = Self {
            path,
            position: 0,
            first_copy: None,
            waits_for_copy: false,
            behind: VecDeque::new(),
            partial: Vec::new(),
        };
        let mut text = Vec::new();
        for _ in 0..LOOKS {
            text.clear();
            follower.first_copy = follower.copy(1);
            follower.position = follower.read_last(since, &mut text)?;
            if follower.first_copy == follower.copy(1) {
                break;
            }
        }
        let mut lines = follower.take_lines(&text);
        lines.drain(..lines.len().saturating_sub(limit));
        Ok((follower, lines))
    }

    /// Reads the last lines, including the first copy if the file has few. Returns the length of the file.
    fn read_last(&self, since: Option<Timestamp>, text: &mut Vec<u8>) -> io::Result<u64> {
        let copy = self.copy_path(1);
        let place = |path: &Path| since.and_then(|since| written_since(path, unsigned(since)));
        let from = place(&self.path);
        let length = fs::metadata(&self.path).map_or(0, |found| found.len());
        if length < MOST_READ && from.is_none() {
            read_end(&copy, place(&copy), MOST_READ - length, text)?;
        }
        read_end(&self.path, from, MOST_READ, text)
    }

    /// Returns the lines written since the last call, up to a bound per call.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn more(&mut self) -> io::Result<Vec<String>> {
        let mut lines = Vec::new();
        for _ in 0..LOOKS {
            if !self.behind.is_empty() {
                lines.extend(self.read_behind()?);
                break;
            }
            let first_copy = self.copy(1);
            if first_copy != self.first_copy {
                lines.extend(self.go_behind(first_copy)?);
                continue;
            }
            let Some(text) = self.read_file()? else { break };
            if self.copy(1) == first_copy {
                self.position += u64::try_from(text.len()).unwrap_or(0);
                lines.extend(self.take_lines(&text));
                break;
            }
            // It was truncated while it was read: of which text this is nobody knows.
        }
        Ok(lines)
    }

    /// Reads the file from the current position; none if the file is missing, or a copy of it is about to appear.
    fn read_file(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let is_shorter = file.metadata()?.len() < self.position;
        if is_shorter && !self.waits_for_copy {
            self.waits_for_copy = true;
            return Ok(None);
        }
        self.waits_for_copy = false;
        if is_shorter {
            // It was truncated without a copy.
            self.position = 0;
        }
        file.seek(SeekFrom::Start(self.position))?;
        let mut text = Vec::new();
        file.take(MOST_READ).read_to_end(&mut text)?;
        Ok(Some(text))
    }

    /// Opens new copies, to be read before the file. Returns an incomplete line whose end was lost.
    fn go_behind(&mut self, first_copy: Option<CopyId>) -> io::Result<Option<String>> {
        let mut copies = VecDeque::new();
        let mut number = 1;
        let mut is_known = self.first_copy.is_none();
        while number <= COPIES_MAX {
            let found = self.copy(number);
            if found.is_none() || found == self.first_copy {
                is_known |= found.is_some();
                break;
            }
            copies.extend(File::open(self.copy_path(number)).ok());
            number += 1;
        }
        if self.copy(1) != first_copy {
            // Moved on meanwhile; the next look finds all of them.
            return Ok(None);
        }
        let mut cut = None;
        // The newest stands first, and the oldest has the place.
        if let Some(oldest) = copies.back_mut() {
            let place = place_in(oldest, self.position)?.filter(|_| is_known);
            if place.is_none() {
                cut = self.rest();
            }
            oldest.seek(SeekFrom::Start(place.unwrap_or(0)))?;
        }
        self.behind = copies.into_iter().rev().collect();
        (self.first_copy, self.position, self.waits_for_copy) = (first_copy, 0, false);
        Ok(cut)
    }

    fn read_behind(&mut self) -> io::Result<Vec<String>> {
        let mut text = Vec::new();
        while let Some(copy) = self.behind.front_mut() {
            let left = MOST_READ.saturating_sub(u64::try_from(text.len()).unwrap_or(MOST_READ));
            if left == 0 {
                break;
            }
            if copy.take(left).read_to_end(&mut text)? == 0 {
                self.behind.pop_front();
            }
        }
        Ok(self.take_lines(&text))
    }

    /// Returns an incomplete last line, if any.
    pub fn rest(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.partial);
        (!rest.is_empty()).then(|| String::from_utf8_lossy(&rest).into_owned())
    }

    fn copy_path(&self, number: u32) -> PathBuf {
        PathBuf::from(format!("{}.{number}", self.path.display()))
    }

    fn copy(&self, number: u32) -> Option<CopyId> {
        let found = fs::metadata(self.copy_path(number)).ok()?;
        Some(CopyId {
            length: found.len(),
            changed_at: found.modified().ok(),
        })
    }

    fn take_lines(&mut self, text: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for piece in text.split_inclusive(|byte| *byte == b'\n') {
            self.partial.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.partial.len() >= LINE_MAX {
                let line = std::mem::take(&mut self.partial);
                let line = String::from_utf8_lossy(&line);
                lines.push(line.trim_end_matches(['\n', '\r']).to_owned());
            }
        }
        lines
    }
}

/// Converts a position in the file to one in its copy; none if that part was left out of the copy.
fn place_in(copy: &mut File, position: u64) -> io::Result<Option<u64>> {
    let mut beginning = Vec::new();
    copy.rewind()?;
    copy.take(LINE_READ).read_to_end(&mut beginning)?;
    let Some(line) = left_out(&beginning) else {
        return Ok(Some(position));
    };
    Ok(position.checked_sub(line.bytes).map(|place| place + line.length))
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
        assert!(follower.more().unwrap().is_empty(), "a copy may be about to come");
        assert_eq!(follower.more().unwrap(), ["e"]);
        let (mut again, lines) = Follower::begin(path.clone(), 5, None).unwrap();
        assert_eq!((lines, again.rest()), (vec!["e".to_owned()], None));
        fs::write(format!("{}.1", path.display()), "x\ny\n").unwrap();
        let (_, lines) = Follower::begin(path, 2, None).unwrap();
        assert_eq!(lines, ["y", "e"]);
    }

    /// Writes the notes beside an output file in the shim's format.
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

    /// A file that is written, copied and truncated in the shim's way.
    struct Written {
        path: PathBuf,
        written: u32,
        copies: u32,
    }

    impl Written {
        fn write(&mut self, lines: u32) {
            let mut file = fs::OpenOptions::new();
            let mut file = file.append(true).create(true).open(&self.path).unwrap();
            for _ in 0..lines {
                self.written += 1;
                writeln!(file, "{}", self.written).unwrap();
            }
        }

        /// Rotates the file and keeps three copies. A copy of more than `most` lines loses its beginning.
        fn rotate(&mut self, most: usize) {
            for number in [2, 1] {
                let to = format!("{}.{}", self.path.display(), number + 1);
                let _ = fs::rename(format!("{}.{number}", self.path.display()), to);
            }
            let text = fs::read_to_string(&self.path).unwrap();
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let (missing, kept) = lines.split_at(lines.len().saturating_sub(most));
            let bytes: usize = missing.iter().map(|line| line.len()).sum();
            let line = match bytes {
                0 => String::new(),
                _ => format!("watershed: {bytes} bytes of output are left out here: why\n"),
            };
            fs::write(format!("{}.1", self.path.display()), line + &kept.concat()).unwrap();
            self.copies += 1;
            let copy = File::options()
                .write(true)
                .open(format!("{}.1", self.path.display()))
                .unwrap();
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(self.copies.into());
            copy.set_modified(time).unwrap();
            fs::write(&self.path, "").unwrap();
        }
    }

    /// Covers rotation between two reads: each line is returned once and in order, as long as a file has it.
    #[test]
    fn what_was_written_before_a_file_is_copied_away_is_not_left_out() {
        use rand::rngs::SmallRng;
        use rand::{Rng, SeedableRng};
        for seed in 0..200 {
            let mut random = SmallRng::seed_from_u64(seed);
            let folder = tempfile::tempdir().unwrap();
            let mut file = Written {
                path: folder.path().join("1.log"),
                written: 0,
                copies: 0,
            };
            file.write(random.random_range(0..30));
            let (mut follower, mut told) = Follower::begin(file.path.clone(), usize::MAX, None).unwrap();
            for _ in 0..30 {
                for _ in 0..random.random_range(0..3) {
                    file.write(random.random_range(0..30));
                    file.rotate(usize::MAX);
                }
                file.write(random.random_range(0..30));
                told.extend(follower.more().unwrap());
            }
            // Where the file is shorter than it was read, it is read with the next look.
            for _ in 0..3 {
                told.extend(follower.more().unwrap());
            }
            let expected: Vec<String> = (1..=file.written).map(|line| line.to_string()).collect();
            assert_eq!(told, expected, "seed {seed}");
        }
    }

    #[test]
    fn what_was_left_out_of_a_copy_or_has_no_copy_any_more_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = Written {
            path: folder.path().join("1.log"),
            written: 0,
            copies: 0,
        };
        file.write(5);
        let (mut follower, lines) = Follower::begin(file.path.clone(), 9, None).unwrap();
        assert_eq!(lines, ["1", "2", "3", "4", "5"]);
        file.write(5);
        file.rotate(3);
        let line = "watershed: 14 bytes of output are left out here: why";
        assert_eq!(follower.more().unwrap(), [line, "8", "9", "10"]);
        file.write(5);
        assert_eq!(follower.more().unwrap(), ["11", "12", "13", "14", "15"]);
        file.write(1);
        file.rotate(3);
        assert_eq!(follower.more().unwrap(), ["16"], "the rest of it was told");
        for _ in 0..4 {
            file.write(1);
            file.rotate(9);
        }
        file.write(1);
        let told = [follower.more().unwrap(), follower.more().unwrap()].concat();
        assert_eq!(told, ["18", "19", "20", "21"], "three copies are kept");
    }

    #[test]
    fn a_line_of_any_length_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.log");
        let long = "x".repeat(usize::try_from(MOST_READ).unwrap() + 1_000);
        for (end, rest) in [("", true), ("\n", false)] {
            fs::write(&path, format!("first\n{long}{end}")).unwrap();
            let (mut follower, mut lines) = Follower::begin(path.clone(), 5, None).unwrap();
            lines.extend(follower.rest().filter(|_| rest));
            let shown = lines.concat();
            assert!(
                shown.starts_with("...xxx") && shown.ends_with('x'),
                "{}",
                lines.len()
            );
            assert!(shown.len() >= usize::try_from(MOST_READ).unwrap());
        }
        let (mut follower, _) = Follower::begin(path.clone(), 0, None).unwrap();
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        for _ in 0..3 {
            file.write_all(long.as_bytes()).unwrap();
        }
        let mut told = 0;
        for _ in 0..4 {
            told += follower.more().unwrap().concat().len();
            assert!(follower.partial.len() <= LINE_MAX);
        }
        told += follower.rest().map_or(0, |rest| rest.len());
        assert_eq!(told, 3 * long.len(), "in pieces");
    }
}
