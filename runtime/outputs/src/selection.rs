//! The resources that a run applies to, where it does not apply to all.
//!
//! What is not chosen is recorded as its files declare it, deleted and renamed with them, and otherwise left as it is:
//! its runs are passed over, so that a later run finds all of it still to be done. Connectors are set up in any case,
//! and components and themes, which touch nothing.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex},
};

use watershed_core::{Row, Uid};
use watershed_locks::Unpoisoned;

/// A resource from which a selection is made.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// The resource as declared in the files.
    pub row: &'a Row,
    /// True if the resource was edited since its last run, or was never run.
    pub is_modified: bool,
}

impl<'a> From<&'a Row> for Candidate<'a> {
    fn from(row: &'a Row) -> Self {
        let seen = row.last_run.as_ref().and_then(|run| run.seen.as_ref());
        Self {
            row,
            is_modified: seen.is_none_or(|seen| seen.spec_version != row.spec_version),
        }
    }
}

/// A function that selects from all declared resources.
pub type Choose = dyn Fn(&[Candidate<'_>]) -> BTreeSet<Uid> + Send + Sync;

/// The selection of a run, outside of which reconcilers do nothing. Clones share it.
#[derive(Clone, Default)]
pub struct Chosen(Arc<Mutex<State>>);

#[derive(Default)]
enum State {
    #[default]
    All,
    /// No resources yet: the function selects once the files are parsed.
    Awaiting(Arc<Choose>),
    Only(BTreeSet<Uid>),
}

impl Chosen {
    /// Creates a selection that `choose` computes once the files are parsed; empty until then.
    #[must_use]
    pub fn by(choose: Arc<Choose>) -> Self {
        Self(Arc::new(Mutex::new(State::Awaiting(choose))))
    }

    /// Returns true if a resource is selected.
    #[must_use]
    pub fn holds(&self, uid: Uid) -> bool {
        match &*self.0.lock().unpoisoned() {
            State::All => true,
            State::Awaiting(_) => false,
            State::Only(uids) => uids.contains(&uid),
        }
    }

    /// Adds resources that another caller requested to the selection.
    pub fn add(&self, more: impl IntoIterator<Item = Uid>) {
        if let State::Only(uids) = &mut *self.0.lock().unpoisoned() {
            uids.extend(more);
        }
    }

    /// Extends the selection to all resources, since another caller requested everything.
    pub fn add_all(&self) {
        *self.0.lock().unpoisoned() = State::All;
    }

    /// Computes the selection from the declared resources, after the first parse; later calls do nothing.
    pub fn choose<'a>(&self, candidates: impl Iterator<Item = Candidate<'a>>) {
        let mut state = self.0.lock().unpoisoned();
        if let State::Awaiting(choose) = &*state {
            let chosen = choose(&candidates.collect::<Vec<_>>());
            *state = State::Only(chosen);
        }
    }
}

impl fmt::Debug for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0.lock().unpoisoned() {
            State::All => f.write_str("All"),
            State::Awaiting(_) => f.write_str("Awaiting"),
            State::Only(uids) => f.debug_set().entries(uids).finish(),
        }
    }
}
