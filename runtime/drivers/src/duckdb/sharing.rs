//! Sharing of the engine's file with other programs.
//!
//! The engine locks its file for as long as it has it open, so one process alone writes to it, and no other reads it
//! meanwhile. The file is waited for while another process has it open, and given up while nobody works in it.
//!
//! Invariants:
//! 1. The file is given up with the gate held whole and no name claimed: no transaction is open then, and all that was
//!    committed stands in the file or its log.
//! 2. The proof of how it was left is taken before the lock is let go, and compared after the lock is taken again. So
//!    every change by another process is noticed at the latest when the file is opened, before any work in it.
//! 3. Such a change is counted before the work that noticed it begins: whoever asks for the count afterwards knows.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use watershed_locks::Unpoisoned;

use super::proof::FileProof;
use crate::olap::OpenError;

/// Time for which an abandoned wait spares others from waiting as long again.
const GIVEN_UP_FOR: Duration = Duration::from_secs(1);

/// The state of the file in relation to other processes.
pub(super) struct Sharing {
    path: PathBuf,
    state: Mutex<State>,
    changes: watch::Sender<u64>,
    /// Process for which work waits to close the file; none if nothing waits.
    holder: watch::Sender<Option<String>>,
}

struct State {
    held: Held,
    last_used: Instant,
    /// End and length of the last abandoned wait, so that work right after it does not wait again.
    given_up_wait: Option<(Instant, Duration)>,
    /// Number of waiting units of work.
    waiting: usize,
}

/// The holder of the file, as known to this process.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Held {
    /// Held by this process, or closed by it for a moment behind its own gate.
    Here,
    /// Possibly held by another process; the proof of the file when this process last held or read it, none for a
    /// missing file.
    Anywhere(Option<FileProof>),
    /// Possibly held by another process, and its proof could not be read.
    Unseen,
}

impl Held {
    fn seen(path: &Path) -> Self {
        FileProof::read(path).map_or(Self::Unseen, Self::Anywhere)
    }
}

/// An opening in progress, with the proof of the file before it.
pub(super) struct Opening {
    before: Held,
    now: Held,
}

impl Sharing {
    /// Reads the proof of a file that this process has not opened yet.
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            state: Mutex::new(State {
                held: Held::seen(path),
                last_used: Instant::now(),
                given_up_wait: None,
                waiting: 0,
            }),
            changes: watch::Sender::new(0),
            holder: watch::Sender::new(None),
        }
    }

    /// Returns how often another process was found to have changed the file. Checks a file that this process does not
    /// hold, which costs two system calls.
    pub(super) fn changes_by_others(&self) -> u64 {
        let mut state = self.state();
        if matches!(state.held, Held::Anywhere(_) | Held::Unseen) {
            let now = Held::seen(&self.path);
            if now != state.held || now == Held::Unseen {
                state.held = now;
                self.count_change();
            }
        }
        *self.changes.borrow()
    }

    pub(super) fn watch_changes_by_others(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(super) fn watch_holder(&self) -> watch::Receiver<Option<String>> {
        self.holder.subscribe()
    }

    /// Records that work uses the file.
    pub(super) fn note_use(&self) {
        self.state().last_used = Instant::now();
    }

    /// Returns the time since the last work on the file.
    pub(super) fn idle(&self) -> Duration {
        self.state().last_used.elapsed()
    }

    /// Begins an opening of the file.
    pub(super) fn begin_opening(&self) -> Opening {
        let mut state = self.state();
        let now = Held::seen(&self.path);
        let before = std::mem::replace(&mut state.held, Held::Here);
        Opening { before, now }
    }

    /// Ends an opening that failed.
    pub(super) fn end_opening_in_vain(&self, opening: Opening) {
        self.state().held = opening.before;
    }

    /// Ends an opening that succeeded, before anything is written.
    pub(super) fn end_opening(&self, opening: Opening) {
        let Opening { before, now } = opening;
        let opened = Held::seen(&self.path);
        // A file is made, and a log is replayed, by the opening itself: there the look just before has to do.
        let is_changed_by_opening = match &now {
            Held::Anywhere(None) => true,
            Held::Anywhere(Some(proof)) => proof.wal.is_some(),
            Held::Here | Held::Unseen => false,
        };
        let is_as_left = before == now && (now == opened || is_changed_by_opening);
        let mut state = self.state();
        state.given_up_wait = None;
        if before != Held::Here && !is_as_left {
            self.count_change();
        }
    }

    /// Records that the file was opened and closed again because it could not be read.
    pub(super) fn end_reading_in_vain(&self) {
        let seen = Held::seen(&self.path);
        self.state().held = seen;
    }

    /// Records that the file was closed for other programs, with its proof at that moment.
    pub(super) fn let_go(&self, left: std::io::Result<Option<FileProof>>) {
        self.state().held = left.map_or(Held::Unseen, Held::Anywhere);
    }

    /// Returns the proof of the file when this process closed it, without later changes; none while the file is held.
    pub(super) fn left_as(&self) -> Option<Option<FileProof>> {
        match &self.state().held {
            Held::Anywhere(left) => Some(left.clone()),
            Held::Here | Held::Unseen => None,
        }
    }

    /// Records that a wait for the file was abandoned.
    pub(super) fn give_up_waiting(&self, patience: Duration) {
        self.state().given_up_wait = Some((Instant::now(), patience));
    }

    /// Returns true if a wait of this length was abandoned just now, so that concurrent work need not wait as long
    /// again.
    pub(super) fn has_waited(&self, patience: Duration) -> bool {
        let given_up = self.state().given_up_wait;
        given_up.is_some_and(|(at, waited)| waited >= patience && at.elapsed() < GIVEN_UP_FOR)
    }

    /// Starts a wait for the holder of the file.
    pub(super) fn wait(&self) -> Waiting<'_> {
        self.state().waiting += 1;
        Waiting(self)
    }

    /// Counts a change of the data by somebody else.
    pub(super) fn count_change(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unpoisoned()
    }
}

/// A wait for the file, which ends when dropped.
pub(super) struct Waiting<'a>(&'a Sharing);

impl Waiting<'_> {
    /// Records the process that holds the file.
    pub(super) fn name(&self, locked: &OpenError) {
        let holder = Some(locked.holder());
        self.0.holder.send_if_modified(|told| {
            let is_news = *told != holder;
            if is_news {
                tracing::info!("waiting until {} closes the engine's file", locked.holder());
                *told = holder;
            }
            is_news
        });
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.waiting -= 1;
        if state.waiting == 0 {
            self.0.holder.send_replace(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_while_the_file_is_not_held_is_counted_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "1").unwrap();
        let sharing = Sharing::new(&path);
        assert_eq!(sharing.changes_by_others(), 0);
        std::fs::write(&path, "22").unwrap();
        assert_eq!((sharing.changes_by_others(), sharing.changes_by_others()), (1, 1));
        let opening = sharing.begin_opening();
        sharing.end_opening(opening);
        std::fs::write(&path, "333").unwrap();
        assert_eq!(sharing.changes_by_others(), 1, "it is this process that writes");
        assert_eq!(sharing.left_as(), None);
        sharing.let_go(FileProof::read(&path));
        assert_eq!(sharing.left_as(), Some(FileProof::read(&path).unwrap()));
        std::fs::write(&path, "4444").unwrap();
        let opening = sharing.begin_opening();
        sharing.end_opening(opening);
        assert_eq!(sharing.changes_by_others(), 2);
    }

    #[test]
    fn the_holder_is_told_while_somebody_waits_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let sharing = Sharing::new(&folder.path().join("file"));
        let holder = sharing.watch_holder();
        let locked = OpenError::Locked {
            path: "file".into(),
            holder: Some("a notebook".to_owned()),
        };
        let (one, other) = (sharing.wait(), sharing.wait());
        one.name(&locked);
        drop(one);
        assert_eq!(holder.borrow().as_deref(), Some("a notebook"));
        drop(other);
        assert_eq!(*holder.borrow(), None);
    }
}
