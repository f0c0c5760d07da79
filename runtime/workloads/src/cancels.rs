//! Starts of jobs whose runs a person has cancelled.

use std::collections::BTreeMap;
use std::sync::Mutex;

use watershed_core::Uid;
use watershed_locks::Unpoisoned;

/// Starts of jobs whose runs a person has cancelled, until the next run stops their processes.
///
/// Not stored: a program that dies in between leaves a run that goes on, for no stop of it was stored.
#[derive(Debug, Default)]
pub(crate) struct Cancels(Mutex<BTreeMap<Uid, u64>>);

impl Cancels {
    /// Records that a start was cancelled.
    pub(crate) fn add(&self, uid: Uid, counter: u64) {
        self.0.lock().unpoisoned().insert(uid, counter);
    }

    /// Returns true if this start was cancelled, and removes the record of that.
    pub(crate) fn take(&self, uid: Uid, counter: u64) -> bool {
        self.0.lock().unpoisoned().remove(&uid) == Some(counter)
    }

    /// Removes the records of a job.
    pub(crate) fn forget(&self, uid: Uid) {
        self.0.lock().unpoisoned().remove(&uid);
    }
}
