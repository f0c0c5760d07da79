//! Showing readers a catalog as it was found: a large one in another thread, while the core takes it up in this one.

use std::panic::resume_unwind;
use std::sync::Arc;

use tokio::task::JoinHandle;
use watershed_core::Stored;

use crate::handle::Shared;
use crate::task;

/// So many resources take some milliseconds, and another thread is worth it.
const LARGE: usize = 10_000;

/// A catalog that is being shown.
pub(crate) struct Filling(Option<JoinHandle<()>>);

impl Filling {
    /// Begins to show it, before anybody reads or publishes.
    pub(crate) fn begin(shared: &Arc<Shared>, stored: &Stored) -> Self {
        let rows = stored.rows.iter().map(|stored| Arc::clone(&stored.row));
        let rows = Vec::from_iter(rows);
        if rows.len() < LARGE {
            shared.view.fill(rows);
            return Self(None);
        }
        let shared = Arc::clone(shared);
        Self(Some(task::spawn_blocking(move || shared.view.fill(rows))))
    }

    /// Waits until it is shown whole.
    pub(crate) async fn end(self) {
        let Some(filling) = self.0 else { return };
        if let Err(error) = filling.await
            && error.is_panic()
        {
            resume_unwind(error.into_panic());
        }
    }
}
