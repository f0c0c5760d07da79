//! Rotation of an output file at its size limit: the file is copied and truncated, and the oldest copy removed.
//!
//! A copy has at most twice the bound, so on disk there are at most `keep` times that beside the file. Of a file that is longer,
//! because it grew faster than anybody looked, its end is copied. A line in its place says how much is missing. Where there is
//! no room for a copy the file is truncated all the same, since a full disk is worse for everybody than output that is gone.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::left_out;
use crate::protocol::Output;
use crate::times;

/// The largest size of a copy, as a multiple of the size limit: the check comes a little late, and writes during the
/// copy are included.
const COPY_FACTOR: u64 = 2;

/// Reason in the marker line if a process wrote faster than its output could be copied.
const TOO_FAST: &str = "it came faster than it could be copied";

/// Copies an output file that has reached its size limit, and truncates it, even if no copy can be made.
pub(super) fn rotate(output: &Output, now_ms: u64) {
    let Ok(mut file) = OpenOptions::new().read(true).append(true).open(&output.path) else {
        return;
    };
    let copied = match output.keep {
        0 => Ok(()),
        _ => copy(output, &mut file, now_ms),
    };
    if let Err(error) = copied {
        let _ = fs::remove_file(part_of(output));
        let lost = file.metadata().map_or(0, |found| found.len());
        truncate(output, &file);
        // There is room for it now, unless others were quicker.
        let _ = file.write_all(left_out::line(lost, &format!("it can't be copied ({error})")).as_bytes());
    } else if output.keep == 0 {
        truncate(output, &file);
    }
}

fn truncate(output: &Output, file: &File) {
    let _ = times::removed(&output.path);
    let _ = file.set_len(0);
}

/// Copies the file to its first copy after shifting the existing copies, and truncates it.
fn copy(output: &Output, file: &mut File, now_ms: u64) -> io::Result<()> {
    move_on(output)?;
    let (part, first) = (part_of(output), numbered(&output.path, "1"));
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut copy = options.open(&part)?;
    let most = output.max_size.max(1);
    let length = file.metadata()?.len();
    let is_cut = length > most.saturating_mul(COPY_FACTOR);
    if is_cut {
        let missing = length - most;
        copy.write_all(left_out::line(missing, TOO_FAST).as_bytes())?;
        file.seek(SeekFrom::Start(missing))?;
    }
    let kept = most.min(length);
    let copied = io::copy(&mut file.take(if is_cut { kept } else { length }), &mut copy)?;
    // What was written meanwhile, as near to the truncation as can be.
    let room = most.saturating_mul(COPY_FACTOR).saturating_sub(copied);
    io::copy(&mut file.take(room), &mut copy)?;
    let missing = file.metadata()?.len().saturating_sub(file.stream_position()?);
    if missing > 0 {
        copy.write_all(left_out::line(missing, TOO_FAST).as_bytes())?;
    }
    if is_cut {
        // Its notes speak of other places; all of it was written before now.
        let _ = times::removed(&part);
        let _ = times::removed(&output.path);
        let _ = times::note(&part, copy.metadata()?.len(), now_ms);
    } else {
        let _ = times::moved(&output.path, &part);
    }
    file.set_len(0)?;
    let _ = times::removed(&first);
    fs::rename(&part, &first)?;
    let _ = times::moved(&part, &first);
    Ok(())
}

/// Shifts the existing copies to free the first place; the oldest is removed before anything is written.
fn move_on(output: &Output) -> io::Result<()> {
    let _ = fs::remove_file(part_of(output));
    let copy = |number: u32| numbered(&output.path, &number.to_string());
    // Where one is missing, as it could not be made, there is place already.
    let there = (1..=output.keep).take_while(|number| copy(*number).exists());
    let last = there.last().unwrap_or(0);
    if last == output.keep {
        let _ = times::removed(&copy(last));
        fs::remove_file(copy(last))?;
    }
    for number in (1..=last.min(output.keep.saturating_sub(1))).rev() {
        let (from, to) = (copy(number), copy(number + 1));
        // In this order no file ever has the notes of another.
        let _ = times::removed(&to);
        fs::rename(&from, &to)?;
        let _ = times::moved(&from, &to);
    }
    Ok(())
}

/// Removes an output file, its copies, and its folder if empty.
pub(crate) fn remove_files(output: &Output) {
    let _ = fs::remove_file(&output.path);
    let Some(folder) = output.path.parent() else {
        return;
    };
    let Some(name) = output.path.file_name().and_then(|name| name.to_str()) else {
        return;
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let found = entry.file_name();
        let ending = found
            .to_str()
            .and_then(|found| found.strip_prefix(name)?.strip_prefix('.'));
        let is_copy = |ending: &str| ending == "part" || ending.parse::<u32>().is_ok();
        let is_ours = |ending: &str| {
            let of_copy = ending
                .split_once('.')
                .map(|(copy, rest)| is_copy(copy) && times::is_name(rest));
            is_copy(ending) || times::is_name(ending) || of_copy == Some(true)
        };
        if ending.is_some_and(is_ours) {
            let _ = fs::remove_file(entry.path());
        }
    }
    let _ = fs::remove_dir(folder);
}

fn part_of(output: &Output) -> PathBuf {
    numbered(&output.path, "part")
}

fn numbered(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".");
    name.push(ending);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::left_out::left_out;

    const BOUND: u64 = 1_000;

    fn output(folder: &Path, keep: u32) -> Output {
        fs::create_dir_all(folder.join("logs")).unwrap();
        Output {
            path: folder.join("logs/out"),
            max_size: BOUND,
            keep,
        }
    }

    fn text(path: &Path, ending: &str) -> String {
        fs::read_to_string(numbered(path, ending)).unwrap()
    }

    /// Covers W19: the number of copies is bounded, and the oldest goes first.
    #[test]
    fn a_large_file_is_copied_truncated_and_its_oldest_copy_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let output = output(folder.path(), 2);
        let path = &output.path;
        let texts = ["a", "b", "c"].map(|letter| letter.repeat(1_500));
        for text in &texts {
            fs::write(path, text).unwrap();
            times::note(path, 1_500, 1).unwrap();
            rotate(&output, 1);
        }
        assert_eq!([text(path, "1"), text(path, "2")], [&*texts[2], &*texts[1]]);
        assert_eq!(fs::metadata(path).unwrap().len(), 0);
        let notes = |path: &Path| times::file_of(path).exists();
        assert!(!notes(path) && notes(&numbered(path, "1")) && notes(&numbered(path, "2")));
        let left = fs::read_dir(folder.path().join("logs")).unwrap().count();
        assert_eq!(left, 5, "the file, two copies and their notes");
        remove_files(&output);
        assert!(!folder.path().join("logs").exists());
    }

    /// Covers W19: a copy has a size limit and says how much output is missing.
    #[test]
    fn of_a_file_that_grew_too_fast_the_end_is_copied_and_the_rest_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let output = output(folder.path(), 1);
        let path = &output.path;
        let all: String = (0..1_000).map(|number| format!("line {number}\n")).collect();
        fs::write(path, &all).unwrap();
        times::note(path, 500, 1).unwrap();
        rotate(&output, 7);
        let copy = text(path, "1");
        let found = left_out(copy.as_bytes()).unwrap();
        assert_eq!(found.bytes, all.len() as u64 - BOUND);
        assert_eq!(
            copy[usize::try_from(found.length).unwrap()..],
            all[usize::try_from(found.bytes).unwrap()..]
        );
        let length = copy.len() as u64;
        assert_eq!(
            times::written_since(&numbered(path, "1"), 7),
            Some(length),
            "it is not new for ever"
        );
        assert_eq!(times::written_since(&numbered(path, "1"), 6), None);
    }

    /// Covers W19: truncation happens even if no copy can be made.
    #[test]
    fn where_no_copy_can_be_made_the_file_is_truncated_and_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let output = output(folder.path(), 2);
        let path = &output.path;
        // A folder in its place can't be written to, whoever tries.
        fs::create_dir_all(numbered(path, "part").join("in")).unwrap();
        for _ in 0..2 {
            fs::write(path, "x".repeat(1_234)).unwrap();
            rotate(&output, 1);
            let said = fs::read_to_string(path).unwrap();
            assert_eq!(left_out(said.as_bytes()).unwrap().bytes, 1_234, "{said}");
            assert!(!numbered(path, "1").exists());
        }
    }

    #[test]
    fn without_copies_a_file_is_truncated_and_any_number_of_copies_can_be_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        for (keep, copies) in [(0, 0), (u32::MAX, 3)] {
            let output = output(&folder.path().join(keep.to_string()), keep);
            for _ in 0..3 {
                fs::write(&output.path, "x".repeat(1_000)).unwrap();
                rotate(&output, 1);
                assert_eq!(fs::metadata(&output.path).unwrap().len(), 0);
            }
            let there = (1..9).filter(|number| numbered(&output.path, &number.to_string()).exists());
            assert_eq!(there.count(), copies);
        }
    }

    #[test]
    fn a_folder_with_files_of_others_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        for name in ["out", "out.1", "out.x", "other"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        remove_files(&Output {
            path,
            max_size: 1,
            keep: 1,
        });
        let left = ["out", "out.1", "out.x", "other"].map(|name| folder.path().join(name).exists());
        assert_eq!(left, [false, false, true, true]);
    }
}
