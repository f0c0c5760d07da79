//! The engine's file as shared between an instance and other programs.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use watershed_controller::resource::Target;
use watershed_controller::{Handle, Select};
use watershed_drivers::olap::Olap;

/// The idle time after which the engine's file is closed for other programs.
///
/// Longer than a person pauses between two edits that belong together, shorter than it takes to turn to a notebook.
pub(super) const REST: Duration = Duration::from_secs(3);

/// The number of those who are connected to an instance.
#[derive(Default)]
pub(super) struct Attendance {
    number: Arc<watch::Sender<usize>>,
    /// A value that those who serve it have in common, of a type that they alone know.
    #[cfg(feature = "http")]
    common: std::sync::OnceLock<Box<dyn std::any::Any + Send + Sync>>,
}

/// One who is connected, for as long as this lives.
pub(crate) struct Attended(Arc<watch::Sender<usize>>);

impl Attendance {
    pub(super) fn begin(&self) -> Attended {
        self.number.send_modify(|number| *number += 1);
        Attended(Arc::clone(&self.number))
    }

    /// Returns what those who serve the instance have in common; made by the first one.
    #[cfg(feature = "http")]
    pub(super) fn common<T: Clone + Send + Sync + 'static>(&self, make: impl Fn() -> T) -> T {
        let common = self.common.get_or_init(|| Box::new(make()));
        // There is one type of those who serve.
        common.downcast_ref().cloned().unwrap_or_else(make)
    }

    /// Does something anew each time that nobody is connected any more, and drops it when somebody is. Does not return.
    pub(super) async fn while_unattended<F: Future<Output = ()>>(&self, begin: impl Fn() -> F) {
        let mut number = self.number.subscribe();
        loop {
            // The sender lives as long as this.
            let _ = number.wait_for(|number| *number == 0).await;
            tokio::select! {
                () = begin() => {}
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

/// The processes that have the engine's file open while work waits for it; none where no file is shared.
pub(crate) struct Holder(Option<watch::Receiver<Option<String>>>);

impl Holder {
    pub(crate) fn from_engine(engine: &dyn Olap) -> Self {
        let holder = engine.own_file().map(|file| {
            let mut holder = file.watch_holder();
            // One that is waited for already is news too.
            holder.mark_changed();
            holder
        });
        Self(holder.ok())
    }

    /// Returns the next process that work waits for. Cancel-safe.
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

/// Requests a reconcile of everything each time that another process has changed the engine's file, until `leaving` is
/// cancelled.
pub(super) async fn look_after_changes(engine: Arc<dyn Olap>, handle: Handle, leaving: CancellationToken) {
    let Ok(mut changes) = engine.own_file().map(|file| file.watch_changes_by_others()) else {
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// The number of futures that are alive.
    static ALIVE: AtomicUsize = AtomicUsize::new(0);

    struct Alive;

    impl Drop for Alive {
        fn drop(&mut self) {
            ALIVE.fetch_sub(1, Ordering::Relaxed);
        }
    }

    async fn becomes(number: usize) {
        while ALIVE.load(Ordering::Relaxed) != number {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn s_api37_the_file_is_shared_while_nobody_is_connected() {
        let attendance = Arc::new(Attendance::default());
        let sharing = tokio::spawn({
            let attendance = Arc::clone(&attendance);
            async move {
                attendance
                    .while_unattended(|| async {
                        ALIVE.fetch_add(1, Ordering::Relaxed);
                        let _alive = Alive;
                        std::future::pending::<()>().await;
                    })
                    .await;
            }
        });
        becomes(1).await;
        let (one, two) = (attendance.begin(), attendance.begin());
        becomes(0).await;
        drop(one);
        for _ in 0..10 {
            tokio::task::yield_now().await;
            assert_eq!(ALIVE.load(Ordering::Relaxed), 0, "one is still connected");
        }
        drop(two);
        becomes(1).await;
        sharing.abort();
    }
}
