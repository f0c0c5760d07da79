//! The engine's file between an instance and other programs.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use watershed_controller::resource::Target;
use watershed_controller::{Handle, Select};
use watershed_drivers::olap::Olap;

/// Nobody has worked in the engine for so long when its file is given up: longer than a person pauses between two edits
/// that belong together, shorter than it takes to turn to a notebook.
pub(super) const REST: Duration = Duration::from_secs(3);

/// The processes that work waits for; nothing to follow where no file is shared.
pub(crate) struct Holder(Option<watch::Receiver<Option<String>>>);

impl Holder {
    pub(crate) fn from_engine(engine: &dyn Olap) -> Self {
        let holder = engine.upkeep().map(|file| {
            let mut holder = file.watch_holder();
            // One that is waited for already is news too.
            holder.mark_changed();
            holder
        });
        Self(holder.ok())
    }

    /// The next one. Cancel-safe.
    pub(crate) async fn next(&mut self) -> String {
        if let Some(holder) = &mut self.0 {
            while holder.changed().await.is_ok() {
                if let Some(holder) = holder.borrow_and_update().clone() {
                    return holder;
                }
            }
        }
        // The engine has gone, or has no file.
        std::future::pending().await
    }
}

/// Asks for everything to be looked at each time that another process is found to have changed the engine's file, as a
/// start does, until the instance is closed.
pub(super) async fn look_after_changes(engine: Arc<dyn Olap>, handle: Handle, leaving: CancellationToken) {
    let Ok(mut changes) = engine.upkeep().map(|file| file.watch_changes_by_others()) else {
        return;
    };
    drop(engine);
    loop {
        let changed = tokio::select! {
            () = leaving.cancelled() => return,
            changed = changes.changed() => changed,
        };
        if changed.is_err() {
            // The engine has gone.
            return;
        }
        for resource in handle.list(Select::all()).resources {
            // One that is gone by now needs no look; a controller that ends looks at nothing.
            let _ = handle.nudge(Target::Uid(resource.row.uid)).await;
        }
    }
}
