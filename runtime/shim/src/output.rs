//! Output files: watched for growth, and copied and truncated at their size limit.
//!
//! A process writes to its file by itself, so there is no pipe that could break. The price: what it writes between copy
//! and truncation is lost, and a file may exceed its bound by what is written between two looks. The faster a file grows, the
//! sooner it is looked at again, so that this is what a process writes in a few milliseconds. What is kept of a file is
//! bounded whatever its speed ([`rotate`]). Once a second in which a file grew, its length is noted beside it ([`times`]).

mod rotate;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::fd::OwnedFd;

use rustix::fs::inotify::{WatchFlags, add_watch, remove_watch};

use crate::clock::{since_boot_ms, unix_ms};
use crate::protocol::Output;
use crate::start_id::StartId;
use crate::times;

pub(crate) use self::rotate::remove_files;

/// Interval between two notes of a growing file's length, in milliseconds. A note costs ten microseconds.
const NOTE_EVERY_MS: u64 = 1_000;

/// The longest delay between a write and the check of its file, in milliseconds, as a slow file may begin to grow fast.
/// A check costs some microseconds.
const LOOK_WITHIN_MS: u64 = 20;

/// The shortest delay between two checks of a file, and between the first write after a pause and its check, in
/// milliseconds.
const LOOK_SOONEST_MS: u64 = 2;

/// Interval between two checks of a file that can't be watched, in milliseconds.
const LOOK_UNWATCHED_MS: u64 = 200;

/// Pause after checks as a multiple of the time that they took, copies included, so that a fast writer can't keep the
/// shim from other work.
const LOOK_SHARE: u64 = 2;

/// The output files of living processes.
///
/// Invariant: each is watched (one event, then the watch is gone) or due to be looked at, or both.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    files: BTreeMap<StartId, Watched>,
    by_watch: HashMap<i32, StartId>,
    /// Time before which no file is checked, in milliseconds since boot.
    looks_from: u64,
}

#[derive(Debug)]
struct Watched {
    output: Output,
    watch: Option<i32>,
    /// Time of the next check, in milliseconds since boot; none while no growth is known.
    due: Option<u64>,
    /// Length at the last check, in bytes, and the time of the check.
    size: u64,
    looked_at: u64,
    /// Delay between a write and the next check, adapted to the speed of growth.
    pace: u64,
    /// Length and time of the last note; none before the first.
    noted: Option<(u64, u64)>,
}

impl Outputs {
    /// Starts watching the output file of a process, which may be long already if an earlier shim watched it.
    pub(crate) fn add(&mut self, id: &StartId, output: &Output, inotify: &OwnedFd, now: u64) {
        let mut watched = Watched {
            output: output.clone(),
            watch: None,
            due: None,
            size: 0,
            looked_at: now,
            pace: LOOK_SOONEST_MS,
            noted: None,
        };
        watched.look(now);
        self.files.insert(id.clone(), watched);
        self.watch(id, inotify, now);
    }

    /// Stops watching the output file of a start, after a last check.
    pub(crate) fn remove(&mut self, id: &StartId, inotify: &OwnedFd, now: u64) {
        if let Some(mut watched) = self.files.remove(id) {
            if let Some(watch) = watched.watch {
                self.by_watch.remove(&watch);
                let _ = remove_watch(inotify, watch);
            }
            watched.noted = watched.noted.map(|(size, _)| (size, 0));
            watched.look(now);
        }
    }

    /// Records that a watched file has grown. Returns false if the watch belongs to something else.
    pub(crate) fn grew(&mut self, watch: i32, now: u64) -> bool {
        let Some(id) = self.by_watch.remove(&watch) else {
            return false;
        };
        if let Some(watched) = self.files.get_mut(&id) {
            watched.watch = None;
            let has_rested = now.saturating_sub(watched.looked_at) >= LOOK_WITHIN_MS;
            let pace = if has_rested { LOOK_SOONEST_MS } else { watched.pace };
            watched.look_by(now + pace);
        }
        true
    }

    /// Returns the time of the next check; none if no check is planned.
    pub(crate) fn due(&self) -> Option<u64> {
        let first = self.files.values().filter_map(|watched| watched.due).min();
        first.map(|due| due.max(self.looks_from))
    }

    /// Checks the files that are due.
    pub(crate) fn look(&mut self, inotify: &OwnedFd, now: u64) {
        if self.due().is_none_or(|due| now < due) {
            return;
        }
        let mut looked_at = Vec::new();
        for (id, watched) in &mut self.files {
            if watched.due.is_some_and(|due| due <= now) {
                watched.look(now);
                looked_at.push(id.clone());
            }
        }
        for id in looked_at {
            self.watch(&id, inotify, now);
        }
        let took = since_boot_ms().saturating_sub(now);
        self.looks_from = now + took * LOOK_SHARE;
    }

    /// Waits for the next write; if the system has no watches left, schedules a check instead.
    fn watch(&mut self, id: &StartId, inotify: &OwnedFd, now: u64) {
        let Some(watched) = self.files.get_mut(id).filter(|watched| watched.watch.is_none()) else {
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
                // What was written since the look has no event.
                if fs::metadata(&watched.output.path).is_ok_and(|found| found.len() != watched.size) {
                    watched.look_by(now + watched.pace);
                }
            }
            Err(_) => watched.look_by(now + LOOK_UNWATCHED_MS),
        }
    }
}

impl Watched {
    fn look_by(&mut self, due: u64) {
        self.due = Some(self.due.map_or(due, |before| before.min(due)));
    }

    /// Checks the file: notes its length, and rotates it if it has reached its size limit.
    fn look(&mut self, now: u64) {
        let Output { path, max_size, .. } = &self.output;
        let (before, elapsed) = (self.size, now.saturating_sub(self.looked_at));
        let found = fs::metadata(path).map_or(0, |found| found.len());
        self.looked_at = now;
        self.due = None;
        if found < before {
            // Somebody else has truncated it, so its notes speak of other bytes.
            let _ = times::removed(path);
        }
        let most = (*max_size).max(1);
        let is_full = found >= most;
        self.note(found, now, is_full);
        self.size = found;
        if is_full {
            rotate::rotate(&self.output, unix_ms());
            self.size = fs::metadata(&self.output.path).map_or(0, |found| found.len());
            self.noted = None;
        }
        let grown = found.saturating_sub(before);
        let left = most.saturating_sub(self.size);
        self.pace = pace(grown, elapsed, left);
    }

    /// Notes the length of the file, either at once or a second after the last note.
    fn note(&mut self, size: u64, now: u64, at_once: bool) {
        match self.noted {
            Some((noted, _)) if noted == size => {}
            None if size == 0 => {}
            Some((_, at)) if !at_once && now < at + NOTE_EVERY_MS => self.look_by(at + NOTE_EVERY_MS),
            _ => {
                // Without a note more counts as new than is.
                let _ = times::note(&self.output.path, size, unix_ms());
                self.noted = Some((size, now));
            }
        }
    }
}

/// Returns the delay until the next check of a file, from its growth in the last interval: half the time until its size
/// limit at that speed.
fn pace(grown: u64, elapsed_ms: u64, left: u64) -> u64 {
    let until_full = left.saturating_mul(elapsed_ms.max(1)).checked_div(grown);
    let half = until_full.unwrap_or(u64::MAX) / 2;
    half.clamp(LOOK_SOONEST_MS, LOOK_WITHIN_MS)
}

/// Returns true if a path may be an output file: absolute, and with a file name.
pub(crate) fn is_allowed(output: &Output) -> bool {
    output.path.is_absolute() && output.path.file_name().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faster_a_file_grows_the_sooner_it_is_looked_at_again() {
        const MB: u64 = 1 << 20;
        for (grown, elapsed, left, expected) in [
            (0, 1_000, MB, LOOK_WITHIN_MS),
            (100, 20, MB, LOOK_WITHIN_MS),
            (MB, 50, MB, LOOK_WITHIN_MS),
            (MB, 10, MB, 5),
            (4 * MB, 2, MB, LOOK_SOONEST_MS),
            (MB, 0, 0, LOOK_SOONEST_MS),
            (u64::MAX, u64::MAX, u64::MAX, LOOK_SOONEST_MS),
        ] {
            assert_eq!(pace(grown, elapsed, left), expected, "{grown} in {elapsed}");
        }
    }
}
