//! Names of instances in a store of the embedder.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use watershed_controller::store::Store;
use watershed_locks::Unpoisoned;

use super::OpenError;

/// A store, with the names of the instances that this process has open in it.
#[derive(Clone)]
pub(super) struct NamedStore {
    store: Arc<dyn Store>,
    in_use: Arc<Mutex<BTreeSet<String>>>,
}

/// The exclusive use of a name in a store, released when dropped.
pub(crate) struct Claim {
    name: String,
    in_use: Arc<Mutex<BTreeSet<String>>>,
}

impl NamedStore {
    pub(super) fn new(store: impl Store) -> Self {
        Self {
            store: Arc::new(store),
            in_use: Arc::default(),
        }
    }

    /// Claims a name for one instance.
    ///
    /// # Errors
    /// When another instance of this process has the name: opened twice, each would take the catalog from the other.
    pub(super) fn claim(&self, name: &str) -> Result<(Arc<dyn Store>, Option<Claim>), OpenError> {
        if !self.in_use.lock().unpoisoned().insert(name.to_owned()) {
            return Err(OpenError::NameInUse(name.to_owned()));
        }
        let claim = Claim {
            name: name.to_owned(),
            in_use: Arc::clone(&self.in_use),
        };
        Ok((Arc::clone(&self.store), Some(claim)))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.in_use.lock().unpoisoned().remove(&self.name);
    }
}
