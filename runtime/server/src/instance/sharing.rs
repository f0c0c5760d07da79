//! The engine's file between an instance and other programs.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use watershed_controller::resource::Target;
use watershed_controller::{Handle, Select};
use watershed_drivers::olap::{Olap, Upkeep};

/// Nobody has worked in the engine for so long when its file is given up: longer than a person pauses between two edits
/// that belong together, shorter than it takes to turn to a notebook.
pub(super) const REST: Duration = Duration::from_secs(3);

/// The number of those who are connected to an instance.
#[derive(Default)]
pub(super) struct Attendance(Arc<watch::Sender<usize>>);

/// One who is connected, for as long as this lives.
pub(crate) struct Attended(Arc<watch::Sender<usize>>);

impl Attendance {
    pub(super) fn begin(&self) -> Attended {
        self.0.send_modify(|number| *number += 1);
        Attended(Arc::clone(&self.0))
    }

    /// Gives an engine's file up each time that nobody has worked in it for a moment, while nobody is connected. Does not
    /// return.
    pub(super) async fn share_unattended(&self, file: &dyn Upkeep) {
        let mut number = self.0.subscribe();
        loop {
            // The sender lives as long as this.
            let _ = number.wait_for(|number| *number == 0).await;
            tokio::select! {
                () = file.share_file(REST) => {}
                _ = number.wait_for(|number| *number > 0) => {}
            }
        }
    }
}

impl Drop for Attended {
    fn drop(&mut self) {
        self.0.send_modify(|number| *number -= 1);
    }
}

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
