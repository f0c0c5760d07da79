//! The idempotency keys that a process works on, and the state of a service that keeps none on disk.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use tokio::sync::OnceCell;
use watershed_callers::state::{CallKey, State, StateError};
use watershed_locks::Unpoisoned as _;

/// The calls of a service that have a key. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Keys(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// State of a service that keeps none on disk, made for the first key.
    of_process: OnceCell<State>,
    /// Principals and keys of calls that are being carried out.
    working: Mutex<BTreeSet<(String, String)>>,
}

/// A call that this process carries out under a key, until dropped.
pub(super) struct Working {
    shared: Arc<Shared>,
    call: (String, String),
}

impl Drop for Working {
    fn drop(&mut self) {
        self.shared.working.lock().unpoisoned().remove(&self.call);
    }
}

impl Keys {
    /// Returns the state that ends with the process, for a service without a state on disk.
    ///
    /// # Errors
    /// When SQLite has no memory.
    pub(super) async fn of_process(&self) -> Result<&State, StateError> {
        self.0.of_process.get_or_try_init(State::in_memory).await
    }

    /// Marks a call as being carried out; none if one under its key is already.
    pub(super) fn work_on(&self, call: &CallKey<'_>) -> Option<Working> {
        let call = (call.principal.to_owned(), call.key.to_owned());
        let is_first = self.0.working.lock().unpoisoned().insert(call.clone());
        is_first.then(|| Working {
            shared: Arc::clone(&self.0),
            call,
        })
    }
}
