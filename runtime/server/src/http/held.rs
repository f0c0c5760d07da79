//! Instances that count as attended while a connection that has called them is open.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use watershed_locks::Unpoisoned;

use crate::instance::{Attended, Instance};

/// Instances that count as attended while a connection is open, by their address in memory. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Held(Arc<Mutex<BTreeMap<usize, Attended>>>);

impl Held {
    /// Marks an instance as attended until the connection ends.
    pub(super) fn hold(&self, instance: &Arc<Instance>) {
        let mut held = self.0.lock().unpoisoned();
        held.entry(Arc::as_ptr(instance) as usize)
            .or_insert_with(|| instance.attend());
    }
}
