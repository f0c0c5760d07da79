//! Notes of an output file's growth, from which the time of each part is known.
//!
//! A process writes to its file by itself, so nobody sees its lines. The shim looks at a file that grows once a second, and
//! notes its length then. A note says: what follows this place was written after this time. Notes lie in a file beside the
//! output, 16 bytes each, and are never synced. Their number is bounded: old ones are thinned out, so that those of an age
//! lie at most a 64th of that age apart, or a second.
//!
//! A reader may show a little more than what was written since a time, and never less: where notes are missing or damaged,
//! the part of the file that they would speak of counts as new.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Size of a note in bytes: the file's length and the milliseconds since 1970, both little-endian.
const BYTES: usize = 16;
/// Number of notes at which they are thinned: 64 KiB.
const NOTES_MAX: usize = 4_096;
/// Divisor of a note's age that gives the permitted distance to the next note.
const PART_OF_AGE: u64 = 64;
/// Distance between two notes that is permitted at any age, in milliseconds.
const APART_MS: u64 = 1_000;

/// A file's length at a point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Note {
    length: u64,
    at_ms: u64,
}

/// Returns the offset at which output after a time (in milliseconds since 1970) begins; none if the whole file may be
/// newer, and possibly part of the copy before.
pub fn written_since(output: &Path, since_ms: u64) -> Option<u64> {
    let length = fs::metadata(output).ok()?.len();
    let notes = valid(&read(&file_of(output)).unwrap_or_default(), length);
    let before = notes.iter().take_while(|note| note.at_ms <= since_ms);
    before.last().map(|note| note.length)
}

/// Returns the path of an output file's notes.
pub(crate) fn file_of(output: &Path) -> PathBuf {
    let mut name = OsString::from(output);
    name.push(".times");
    name.into()
}

/// Notes the current length of a file, if it differs from the last note.
///
/// # Errors
/// When the notes can't be written. Those that are there stay.
pub(crate) fn note(output: &Path, length: u64, now_ms: u64) -> io::Result<()> {
    let path = file_of(output);
    let mut file = OpenOptions::new().append(true).create(true).open(&path)?;
    let bytes = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    if bytes / BYTES >= NOTES_MAX || !bytes.is_multiple_of(BYTES) {
        // The second is what a crash of the machine leaves.
        write_anew(&path, length, now_ms)?;
        file = OpenOptions::new().append(true).open(&path)?;
    }
    file.write_all(&encoded(Note {
        length,
        at_ms: now_ms,
    }))
}

fn write_anew(path: &Path, length: u64, now_ms: u64) -> io::Result<()> {
    let kept = thinned(&valid(&read(path)?, length), now_ms);
    let bytes: Vec<u8> = kept.into_iter().flat_map(encoded).collect();
    let part = path.with_extension("times-part");
    fs::write(&part, bytes)?;
    fs::rename(part, path)
}

/// Moves the notes together with their file, replacing existing ones.
pub(crate) fn moved(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(file_of(from), file_of(to)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => removed(to),
        other => other,
    }
}

/// Returns true if the suffix of an output file's name is that of a notes file.
pub(crate) fn is_name(ending: &str) -> bool {
    ending == "times" || ending == "times-part"
}

/// Removes an output file's notes.
pub(crate) fn removed(output: &Path) -> io::Result<()> {
    match fs::remove_file(file_of(output)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn encoded(note: Note) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes[..8].copy_from_slice(&note.length.to_le_bytes());
    bytes[8..].copy_from_slice(&note.at_ms.to_le_bytes());
    bytes
}

fn read(path: &Path) -> io::Result<Vec<Note>> {
    let most = u64::try_from(2 * NOTES_MAX * BYTES).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    let number = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).unwrap_or_default();
    let note = |bytes: &[u8]| Note {
        length: number(&bytes[..8]),
        at_ms: number(&bytes[8..]),
    };
    Ok(bytes.chunks_exact(BYTES).map(note).collect())
}

/// Drops implausible notes: both numbers must ascend, within the file's length. After the clock was set back, notes
/// wait until it has caught up.
fn valid(notes: &[Note], length: u64) -> Vec<Note> {
    let mut kept: Vec<Note> = Vec::new();
    for note in notes.iter().filter(|note| note.length <= length) {
        let is_later = |last: &Note| note.length > last.length && note.at_ms >= last.at_ms;
        if note.length > 0 && kept.last().is_none_or(is_later) {
            kept.push(*note);
        }
    }
    kept
}

/// Drops notes whose neighbours are close enough together for their age.
fn thinned(notes: &[Note], now_ms: u64) -> Vec<Note> {
    let mut kept: Vec<Note> = Vec::new();
    for (index, note) in notes.iter().enumerate().rev() {
        let apart = (now_ms.saturating_sub(note.at_ms) / PART_OF_AGE).max(APART_MS);
        let older = index.checked_sub(1).map(|older| notes[older].at_ms);
        let is_needed = match (kept.last(), older) {
            (Some(newer), Some(older)) => newer.at_ms.saturating_sub(older) > apart,
            _ => true,
        };
        if is_needed {
            kept.push(*note);
        }
    }
    // With a clock that stands still or jumps there may still be too many.
    kept.truncate(NOTES_MAX / 2);
    kept.reverse();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(of: &[(u64, u64)]) -> Vec<Note> {
        of.iter().map(|&(length, at_ms)| Note { length, at_ms }).collect()
    }

    #[test]
    fn what_was_written_since_a_time_begins_at_the_last_note_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("1.log");
        assert_eq!(written_since(&output, 5), None, "there is no file");
        fs::write(&output, [b'x'; 100]).unwrap();
        assert_eq!(written_since(&output, 5), None, "there are no notes");
        for (length, at_ms) in [(10, 1_000), (40, 2_000), (100, 9_000)] {
            note(&output, length, at_ms).unwrap();
        }
        for (since, expected) in [
            (0, None),
            (999, None),
            (1_000, Some(10)),
            (1_999, Some(10)),
            (2_000, Some(40)),
            (8_999, Some(40)),
            (9_000, Some(100)),
            (u64::MAX, Some(100)),
        ] {
            assert_eq!(written_since(&output, since), expected, "{since}");
        }
        fs::write(&output, [b'x'; 50]).unwrap();
        assert_eq!(
            written_since(&output, 9_000),
            Some(40),
            "notes beyond the end say nothing"
        );
    }

    #[test]
    fn damaged_notes_and_a_clock_that_goes_back_leave_nothing_out() {
        for (found, expected) in [
            (&[(0, 0), (0, 0)][..], &[][..]),
            (&[(5, 10), (0, 0), (9, 20)], &[(5, 10), (9, 20)]),
            (&[(5, 10), (4, 30), (6, 40)], &[(5, 10), (6, 40)]),
            (&[(5, 100), (6, 50), (7, 60), (8, 100)], &[(5, 100), (8, 100)]),
            (&[(5, 10), (1_000, 20)], &[(5, 10)]),
        ] {
            assert_eq!(valid(&notes(found), 100), notes(expected), "{found:?}");
        }
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("1.log");
        fs::write(&output, [b'x'; 100]).unwrap();
        fs::write(file_of(&output), b"torn").unwrap();
        assert_eq!(written_since(&output, 5), None);
        note(&output, 50, 5).unwrap();
        assert_eq!(
            written_since(&output, 5),
            Some(50),
            "torn notes are dropped with the next one"
        );
    }

    /// Covers the bound of notes: dense where new, sparse where old.
    #[test]
    fn notes_are_bounded_and_apart_by_a_part_of_their_age() {
        let mut kept: Vec<Note> = Vec::new();
        let month = 30 * 24 * 3_600;
        for second in 1..=month {
            kept.push(Note {
                length: second,
                at_ms: second * 1_000,
            });
            if kept.len() >= NOTES_MAX {
                kept = thinned(&kept, second * 1_000);
            }
        }
        assert!(kept.len() <= NOTES_MAX, "{}", kept.len());
        let now = month * 1_000;
        for pair in kept.windows(2) {
            let apart = pair[1].at_ms - pair[0].at_ms;
            let age = now - pair[0].at_ms;
            assert!(apart <= (age / PART_OF_AGE).max(APART_MS), "{apart} at {age}");
        }
        assert_eq!(kept[0].at_ms, 1_000, "the oldest one stays");
    }

    #[test]
    fn a_file_of_notes_is_thinned_when_it_is_full() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("1.log");
        let last = 3 * u64::try_from(NOTES_MAX).unwrap();
        fs::write(&output, vec![b'x'; usize::try_from(last).unwrap()]).unwrap();
        for second in 1..=last {
            note(&output, second, second * 1_000).unwrap();
        }
        let bytes = fs::metadata(file_of(&output)).unwrap().len();
        assert!(bytes <= u64::try_from(NOTES_MAX * BYTES).unwrap(), "{bytes}");
        assert_eq!(written_since(&output, (last - 5) * 1_000), Some(last - 5));
    }
}
