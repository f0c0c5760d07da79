//! Output files: watched until they grow, looked at while they do, copied and truncated when they are large.
//!
//! A process writes to its file by itself, so there is no pipe that could break. The price: what it writes between copy
//! and truncation is lost, and a file may exceed its bound by what is written in [`LOOK_EVERY_MS`]. Each look that finds the
//! file longer is noted beside it ([`times`]).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{WatchFlags, add_watch, remove_watch};

use crate::clock::unix_ms;
use crate::protocol::Output;
use crate::start_id::StartId;
use crate::times;

/// The time between two looks at a file that grows. A look costs a microsecond, its note ten.
pub(crate) const LOOK_EVERY_MS: u64 = 1_000;

/// Looks without growth after which a file is watched again instead.
const QUIET_LOOKS: u8 = 10;

/// The output files of living processes.
///
/// Invariant: each is either watched (one event, then the watch is gone) or growing.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    files: BTreeMap<StartId, Watched>,
    by_watch: HashMap<i32, StartId>,
    growing: BTreeSet<StartId>,
    next_look: Option<u64>,
}

#[derive(Debug)]
struct Watched {
    output: Output,
    watch: Option<i32>,
    /// The length of the last look.
    size: u64,
    quiet_looks: u8,
}

impl Outputs {
    /// Begins to watch the file of a process.
    pub(crate) fn add(&mut self, id: &StartId, output: &Output, inotify: &OwnedFd, now: u64) {
        let watched = Watched {
            output: output.clone(),
            watch: None,
            // It has one where another shim has watched it.
            size: look_at(output, 0).unwrap_or_default(),
            quiet_looks: 0,
        };
        self.files.insert(id.clone(), watched);
        self.watch(id, inotify, now);
    }

    /// Ends that, after a last look.
    pub(crate) fn remove(&mut self, id: &StartId, inotify: &OwnedFd) {
        self.growing.remove(id);
        if let Some(watched) = self.files.remove(id) {
            if let Some(watch) = watched.watch {
                self.by_watch.remove(&watch);
                let _ = remove_watch(inotify, watch);
            }
            let _ = look_at(&watched.output, watched.size);
        }
    }

    /// Takes note that a watched file has grown. Returns false for a watch of somebody else.
    pub(crate) fn grew(&mut self, watch: i32, now: u64) -> bool {
        let Some(id) = self.by_watch.remove(&watch) else {
            return false;
        };
        if let Some(watched) = self.files.get_mut(&id) {
            watched.watch = None;
            watched.quiet_looks = 0;
            self.growing.insert(id);
            self.next_look.get_or_insert(now + LOOK_EVERY_MS);
        }
        true
    }

    /// Returns the time of the next look.
    pub(crate) fn due(&self) -> Option<u64> {
        self.next_look
    }

    /// Looks at the files that grow, if it is time.
    pub(crate) fn look(&mut self, inotify: &OwnedFd, now: u64) {
        if self.next_look.is_none_or(|due| now < due) {
            return;
        }
        let mut quiet = Vec::new();
        for id in &self.growing {
            let Some(watched) = self.files.get_mut(id) else {
                continue;
            };
            let size = look_at(&watched.output, watched.size).unwrap_or_default();
            watched.quiet_looks = if size == watched.size {
                watched.quiet_looks + 1
            } else {
                0
            };
            watched.size = size;
            if watched.quiet_looks >= QUIET_LOOKS {
                quiet.push(id.clone());
            }
        }
        self.next_look = Some(now + LOOK_EVERY_MS);
        for id in quiet {
            self.growing.remove(&id);
            self.watch(&id, inotify, now);
        }
        if self.growing.is_empty() {
            self.next_look = None;
        }
    }

    /// Waits for the next write; where the system has no watch left, the file is looked at instead.
    fn watch(&mut self, id: &StartId, inotify: &OwnedFd, now: u64) {
        let Some(watched) = self.files.get_mut(id) else {
            return;
        };
        match add_watch(
            inotify,
            &watched.output.path,
            WatchFlags::MODIFY | WatchFlags::ONESHOT,
        ) {
            Ok(watch) => {
                watched.watch = Some(watch);
                self.by_watch.insert(watch, id.clone());
            }
            Err(_) => {
                watched.quiet_looks = 0;
                self.growing.insert(id.clone());
                self.next_look.get_or_insert(now + LOOK_EVERY_MS);
            }
        }
    }
}

/// Notes the length of a file if it is another one than before; copies and truncates it if it has reached its bound.
/// Returns its length then.
fn look_at(output: &Output, before: u64) -> io::Result<u64> {
    let size = fs::metadata(&output.path)?.len();
    if size < before {
        // Somebody else has truncated it, so its notes speak of other bytes.
        let _ = times::removed(&output.path);
    }
    if size != before {
        // Without a note more counts as new than is.
        let _ = times::note(&output.path, size, unix_ms());
    }
    if size < output.max_size.max(1) {
        return Ok(size);
    }
    rotate(output)?;
    Ok(fs::metadata(&output.path)?.len())
}

fn rotate(output: &Output) -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).write(true).open(&output.path)?;
    if output.keep > 0 {
        let part = numbered(&output.path, "part");
        let mut copy = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&part)?;
        io::copy(&mut file, &mut copy)?;
        for number in (1..output.keep).rev() {
            let [from, to] = [number, number + 1].map(|number| numbered(&output.path, &number.to_string()));
            // In this order no file ever has the notes of another.
            let _ = times::removed(&to);
            match fs::rename(&from, &to) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let _ = times::moved(&from, &to);
        }
        // What was written meanwhile, as near to the truncation as can be.
        io::copy(&mut file, &mut copy)?;
        let first = numbered(&output.path, "1");
        let _ = times::moved(&output.path, &part);
        file.set_len(0)?;
        let _ = times::removed(&first);
        fs::rename(&part, &first)?;
        let _ = times::moved(&part, &first);
        Ok(())
    } else {
        let _ = times::removed(&output.path);
        file.seek(SeekFrom::Start(0))?;
        file.set_len(0)
    }
}

/// Removes a file with its copies, and its folder if nothing else is in it.
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

fn numbered(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".");
    name.push(ending);
    name.into()
}

/// Makes sure that a path may be an output file: absolute, so that it means the same to everybody.
pub(crate) fn is_allowed(output: &Output) -> bool {
    output.path.is_absolute() && output.path.file_name().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// W19: copies are kept up to their number, the oldest goes.
    #[test]
    fn a_large_file_is_copied_truncated_and_its_oldest_copy_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/out");
        fs::create_dir(folder.path().join("logs")).unwrap();
        let output = Output {
            path: path.clone(),
            max_size: 4,
            keep: 2,
        };
        for text in ["one!", "two!", "three", "x"] {
            fs::write(&path, text).unwrap();
            look_at(&output, 0).unwrap();
        }
        let read = |ending: &str| fs::read_to_string(numbered(&path, ending)).unwrap();
        assert_eq!([read("1"), read("2")], ["three", "two!"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "x");
        assert!(!numbered(&path, "3").exists());
        let notes = |path: &Path| times::file_of(path).exists();
        assert!(notes(&path) && notes(&numbered(&path, "1")) && notes(&numbered(&path, "2")));
        assert!(!notes(&numbered(&path, "3")));
        remove_files(&output);
        assert!(!folder.path().join("logs").exists());
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
