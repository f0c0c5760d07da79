//! The note that the last process ended because the disk was full.
//!
//! Nothing else tells a new process: the catalog is on that disk as well.
//!
//! The disk space of the note is reserved beforehand; then the note is written over it.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::Path,
};

use watershed_api::documents::EndedEarly;

/// The name of the note's file in the state folder.
const FILE: &str = "disk-full";

/// Size of the note's file, in bytes: a block of most disks, and more than a message has.
const ROOM: usize = 4_096;

/// Clears the note in a state folder, and reserves the disk space for a new one.
pub fn forget(folder: &Path) {
    let is_blank = |held: Vec<u8>| held.len() == ROOM && held.iter().all(|byte| *byte == b' ');
    if !fs::read(folder.join(FILE)).is_ok_and(is_blank) {
        tell(write(folder, ""));
    }
}

/// Writes a note into a state folder that this process ends early.
pub(crate) fn note(folder: &Path, ended: &EndedEarly) {
    let note = serde_json::to_string(ended).map_err(io::Error::from);
    tell(note.and_then(|note| write(folder, &note)));
}

/// Returns the note that the last process left in a state folder; none if it did not end early.
pub fn read(folder: &Path) -> Option<EndedEarly> {
    let held = fs::read(folder.join(FILE)).ok()?;
    serde_json::from_slice(&held).ok()
}

/// Overwrites the note in place, so that no more disk space is needed.
fn write(folder: &Path, note: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(folder.join(FILE))?;
    let mut held = note.as_bytes().to_vec();
    held.resize(ROOM, b' ');
    file.write_all(&held)
}

/// Logs a failure to write the note, for which no command fails.
fn tell(written: io::Result<()>) {
    if let Err(error) = written {
        tracing::debug!(%error, "the note about a full disk could not be written");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use watershed_api::documents::Time;

    #[test]
    fn a_note_takes_the_room_that_was_kept_for_it_and_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let size = || fs::metadata(folder.path().join(FILE)).unwrap().len();
        assert_eq!(read(folder.path()), None, "there is no file");
        forget(folder.path());
        assert_eq!((read(folder.path()), size()), (None, ROOM as u64));
        let ended = EndedEarly {
            at: Time::from_millis(1_000),
            message: "the disk is full".to_owned(),
        };
        note(folder.path(), &ended);
        assert_eq!((read(folder.path()), size()), (Some(ended), ROOM as u64));
        forget(folder.path());
        assert_eq!((read(folder.path()), size()), (None, ROOM as u64));
    }
}
