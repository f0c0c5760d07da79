//! Look-up of a project's resources, in a running controller or in a catalog at rest.

use std::sync::Arc;

use watershed_controller::{Handle, Select};
use watershed_core::{Key, Row, Timestamp};

/// Tells why a resource's rows count as too old at a time; none while they are fresh enough. The text changes only when
/// the limit does.
pub type Staleness = fn(&Row, Timestamp) -> Option<String>;

/// The resources of a project.
pub trait Resources: Send + Sync {
    /// Returns the live resource of a kind and name.
    fn find(&self, key: &Key) -> Option<Arc<Row>>;

    /// Returns all live resources except hidden ones, in order of their names.
    fn rows(&self) -> Vec<Arc<Row>>;
}

impl Resources for Handle {
    fn find(&self, key: &Key) -> Option<Arc<Row>> {
        self.get(key.clone()).ok().map(|found| found.row)
    }

    fn rows(&self) -> Vec<Arc<Row>> {
        let listed = self.list(Select::new()).resources.into_iter();
        listed.map(|found| found.row).collect()
    }
}
