//! The live executors of this process, so that their work is not taken for remains of a crash.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex};

use super::lock;

/// Ids of the live sessions of this process.
static LIVE: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// An executor together with the operations that it started, which may outlive it.
#[derive(Debug)]
pub(super) struct Session {
    id: String,
}

impl Session {
    /// Begins a session with an id that is unique across processes.
    pub(super) fn begin() -> Arc<Self> {
        let random = || RandomState::new().hash_one("session");
        let id = format!("{:016x}{:016x}", random(), random());
        lock(&LIVE).insert(id.clone());
        Arc::new(Self { id })
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Returns true if the id belongs to another live session of this process.
    pub(super) fn is_other_live(&self, id: &str) -> bool {
        self.id != id && lock(&LIVE).contains(id)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        lock(&LIVE).remove(&self.id);
    }
}
