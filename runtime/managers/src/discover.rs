//! The search for orphans: things outside that belong to no resource. They are only reported.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use watershed_controller::{Error, Handle, Kind, Resource, Select, Uid};

use crate::manager::{DiscoveredItem, Manager};
use crate::teardown::{Remains, teardown_kind};

/// The time between two searches.
pub const DISCOVER_EVERY: Duration = Duration::from_secs(300);

/// The search for orphans of one kind. Its findings are for people; nothing else depends on them.
pub struct Discovery<M> {
    manager: Arc<M>,
}

impl<M> fmt::Debug for Discovery<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Discovery").finish_non_exhaustive()
    }
}

impl<M: Manager> Discovery<M> {
    pub(crate) fn new(manager: Arc<M>) -> Self {
        Self { manager }
    }

    /// Returns the things outside that belong neither to a resource nor to a teardown.
    ///
    /// # Errors
    /// If the manager can't list.
    pub async fn orphans(&self, handle: &Handle) -> Result<Vec<DiscoveredItem>, Error> {
        // The list first: what is created after it is in it only if its resource is there.
        let mut found = self.manager.discover().await?;
        let known = Self::known(handle);
        found.retain(|one| one.uid.is_none_or(|uid| !known.contains(&uid)));
        Ok(found)
    }

    /// Searches for orphans at once and then every [`DISCOVER_EVERY`], and reports the result each time. Never returns.
    ///
    /// Cancel-safe.
    pub async fn run(&self, handle: Handle, mut report: impl FnMut(Result<Vec<DiscoveredItem>, Error>)) {
        loop {
            report(self.orphans(&handle).await);
            tokio::time::sleep(DISCOVER_EVERY).await;
        }
    }

    fn known(handle: &Handle) -> BTreeSet<Uid> {
        let select = |kind: Kind| Select::kind(kind).with_hidden().with_deleted();
        let live = handle.list(select(Kind::from(M::KIND))).resources;
        let left = handle.list(select(teardown_kind(M::KIND))).resources;
        let of_left = left
            .iter()
            .filter_map(|row| Some(Resource::spec_of::<Remains<M>>(&row.row).ok()?.uid));
        live.iter().map(|row| row.row.uid).chain(of_left).collect()
    }
}
