//! Log files: their names, rotation, limits and contents.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use uuid::Uuid;
use watershed_api::documents::LogLine;

use super::FILE_BYTES;

/// The extension of log files.
const ENDING: &str = "jsonl";

fn present(folder: &Path, uid: Uuid) -> PathBuf {
    folder.join(format!("{uid}.{ENDING}"))
}

fn put_aside(folder: &Path, uid: Uuid) -> PathBuf {
    folder.join(format!("{uid}.old.{ENDING}"))
}

/// Appends whole lines to the log file of a resource. Returns the growth of the folder, in bytes.
///
/// # Errors
/// When the file can't be written, or the state folder is gone: it is not made anew.
pub(super) fn append(folder: &Path, uid: Uuid, lines: &[u8]) -> io::Result<i64> {
    let path = present(folder, uid);
    let open = || {
        OpenOptions::new()
            .create(true)
            .append(true)
            .read(true)
            // What is said is for the owner of the project.
            .mode(0o600)
            .open(&path)
    };
    let mut file = match open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir(folder)?;
            open()?
        }
        opened => opened?,
    };
    let mut length = file.metadata()?.len();
    let mut grown = 0;
    if length > 0 && length + lines.len() as u64 > FILE_BYTES {
        let aside = put_aside(folder, uid);
        let replaced = fs::metadata(&aside).map_or(0, |old| old.len());
        fs::rename(&path, aside)?;
        grown -= i64::try_from(replaced).unwrap_or(0);
        file = open()?;
        length = 0;
    }
    let torn = length > 0 && last_byte(&mut file)? != b'\n';
    if torn {
        file.write_all(b"\n")?;
    }
    // One write, so that lines of two processes never mix.
    file.write_all(lines)?;
    Ok(grown + i64::try_from(lines.len()).unwrap_or(0) + i64::from(torn))
}

fn last_byte(file: &mut File) -> io::Result<u8> {
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last[0])
}

/// Reads the newest lines of a resource, oldest first; unreadable lines are passed over.
pub(super) fn read(folder: &Path, uid: Uuid, limit: usize) -> io::Result<Vec<LogLine>> {
    let mut lines: Vec<LogLine> = Vec::new();
    for path in [put_aside(folder, uid), present(folder, uid)] {
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            bytes => bytes?,
        };
        let parsed = bytes.split(|byte| *byte == b'\n').map(serde_json::from_slice);
        lines.extend(parsed.filter_map(Result::ok));
    }
    lines.drain(..lines.len().saturating_sub(limit));
    Ok(lines)
}

/// The least age of the file whose time is taken as now for finding old files.
///
/// Age counts from the latest such file, so that a clock which is wrong once, and years ahead, makes nothing old.
const SIGHTING: Duration = Duration::from_secs(24 * 60 * 60);

/// Removes files older than `age`, then the oldest ones beyond `most` bytes in total. Returns the bytes that are left.
pub(super) fn sweep(folder: &Path, age: Duration, most: u64) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    let now = SystemTime::now();
    let mut kept: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        let Ok(meta) = entry.metadata() else { continue };
        if path.extension().is_none_or(|ending| ending != ENDING) {
            continue;
        }
        kept.push((meta.modified().unwrap_or(now), meta.len(), path));
    }
    let seen_before = |written: &SystemTime| now.duration_since(*written).is_ok_and(|ago| ago >= SIGHTING);
    let reference = kept
        .iter()
        .map(|(written, ..)| *written)
        .filter(seen_before)
        .max();
    let is_old = |written: SystemTime| {
        reference.is_some_and(|seen| seen.duration_since(written).is_ok_and(|old| old > age))
    };
    kept.retain(|(written, _, path)| !is_old(*written) || fs::remove_file(path).is_err());
    let mut total = kept.iter().map(|(_, length, _)| length).sum::<u64>();
    kept.sort();
    for (_, length, path) in kept {
        if total <= most {
            break;
        }
        if fs::remove_file(path).is_ok() {
            total -= length;
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use watershed_api::documents::{LogLevel, ResourceName, Time};

    fn line(id: u64, message: &str) -> LogLine {
        LogLine {
            id,
            at: Time::from_millis(1),
            level: LogLevel::Info,
            resource: ResourceName {
                kind: "model".into(),
                name: "a".into(),
            },
            run: "1-1".into(),
            message: message.into(),
            fields: BTreeMap::new(),
            target: "t".into(),
        }
    }

    fn bytes(line: &LogLine) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(line).unwrap();
        bytes.push(b'\n');
        bytes
    }

    fn ids(folder: &Path, limit: usize) -> Vec<u64> {
        let lines = read(folder, Uuid::nil(), limit).unwrap();
        lines.iter().map(|line| line.id).collect()
    }

    #[test]
    fn a_torn_line_costs_itself_alone() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("logs");
        append(&folder, Uuid::nil(), &bytes(&line(1, "a"))).unwrap();
        let whole = bytes(&line(2, "b"));
        for cut in 1..whole.len() {
            let path = present(&folder, Uuid::nil());
            fs::write(&path, [bytes(&line(1, "a")).as_slice(), &whole[..cut]].concat()).unwrap();
            append(&folder, Uuid::nil(), &bytes(&line(3, "c"))).unwrap();
            let found = ids(&folder, 10);
            // Cut before its end of line alone, it is whole.
            let expected: &[u64] = if cut == whole.len() - 1 {
                &[1, 2, 3]
            } else {
                &[1, 3]
            };
            assert_eq!(found, expected, "cut at {cut}");
        }
    }

    #[test]
    fn a_resource_has_two_files_of_bounded_size_and_the_newest_lines() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("logs");
        let long = "x".repeat(1_000);
        let mut total = 0;
        for id in 0..1_000 {
            total += append(&folder, Uuid::nil(), &bytes(&line(id, &long))).unwrap();
        }
        let sizes: Vec<u64> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .collect();
        assert_eq!(sizes.len(), 2);
        assert!(sizes.iter().all(|size| *size <= FILE_BYTES), "{sizes:?}");
        assert_eq!(
            total,
            sizes.iter().sum::<u64>() as i64,
            "the growth adds up to what is there"
        );
        assert_eq!(ids(&folder, 3), [997, 998, 999]);
        assert!(ids(&folder, usize::MAX).len() > 200);
    }

    #[test]
    fn the_oldest_files_go_when_there_are_too_many_and_old_ones_by_themselves() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("logs");
        let uid = |number: u128| Uuid::from_u128(number);
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        let begin = SystemTime::now() - 10 * DAY;
        for number in 0..10 {
            append(&folder, uid(number), &[b'x'; 100]).unwrap();
            let file = File::options()
                .append(true)
                .open(present(&folder, uid(number)))
                .unwrap();
            file.set_modified(begin + u32::try_from(number).unwrap() * DAY)
                .unwrap();
        }
        assert_eq!(
            sweep(&folder, 7 * DAY + DAY / 2, u64::MAX),
            800,
            "two are too old"
        );
        assert_eq!(sweep(&folder, 100 * DAY, 350), 300);
        assert!(!present(&folder, uid(6)).exists() && present(&folder, uid(7)).exists());
    }

    #[test]
    fn a_clock_that_is_years_ahead_for_once_makes_no_file_old() {
        const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("logs");
        // As if now were a false date: what there is was all written nine years before it.
        for number in 0..3 {
            append(&folder, Uuid::from_u128(number), b"x\n").unwrap();
            let path = present(&folder, Uuid::from_u128(number));
            let file = File::options().append(true).open(path).unwrap();
            file.set_modified(SystemTime::now() - 9 * YEAR).unwrap();
        }
        append(&folder, Uuid::from_u128(9), b"x\n").unwrap();
        assert_eq!(sweep(&folder, YEAR, u64::MAX), 8, "seen once");
        let file = File::options()
            .append(true)
            .open(present(&folder, Uuid::from_u128(9)));
        file.unwrap()
            .set_modified(SystemTime::now() - 2 * SIGHTING)
            .unwrap();
        assert_eq!(sweep(&folder, YEAR, u64::MAX), 2, "seen again");
    }

    #[test]
    fn a_state_folder_that_is_gone_is_not_made_anew() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("gone").join("logs");
        assert!(append(&folder, Uuid::nil(), b"x\n").is_err());
        assert!(!temp.path().join("gone").exists());
    }
}
