//! The initial snapshot for readers. A large one is filled in another thread while the core loads the catalog.

use std::panic::resume_unwind;
use std::sync::Arc;

use tokio::task::JoinHandle;
use watershed_core::Stored;

use crate::inbox::shared::Shared;
use crate::tasks;

/// Least number of resources for which a thread of its own is worthwhile: filling takes some milliseconds.
const LARGE: usize = 10_000;

/// The view while it is being filled; none if it was filled at once.
pub(crate) struct InitialSnapshot(Option<JoinHandle<()>>);

impl InitialSnapshot {
    /// Begins to fill the view, before the first read or publish.
    pub(crate) fn begin(shared: &Arc<Shared>, stored: &Stored) -> Self {
        let rows = stored.rows.iter().map(|stored| Arc::clone(&stored.row));
        let rows = Vec::from_iter(rows);
        if rows.len() < LARGE {
            shared.view.fill(rows);
            return Self(None);
        }
        let shared = Arc::clone(shared);
        Self(Some(tasks::spawn_blocking(move || shared.view.fill(rows))))
    }

    /// Waits until the view is filled.
    pub(crate) async fn end(self) {
        let Some(snapshot) = self.0 else { return };
        if let Err(error) = snapshot.await
            && error.is_panic()
        {
            resume_unwind(error.into_panic());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::task::{Context as TaskContext, Poll, Waker};

    use tokio::runtime::Handle;
    use tokio::task::yield_now;
    use watershed_core::{Key, KindOptions};

    use super::*;
    use crate::store::MemoryStore;
    use crate::tests::support::{Nothing, SOON, things};
    use crate::{Builder, Controller, Select};

    fn builder(store: &MemoryStore) -> Builder {
        let builder = Controller::builder().store(store.clone());
        builder.kind(KindOptions::new("thing"), Nothing)
    }

    async fn large() -> MemoryStore {
        let store = MemoryStore::new();
        let controller = builder(&store).start().await.expect("it starts");
        controller.edit(things(LARGE)).await.expect("the batch is taken");
        controller.shutdown(SOON).await.expect("it stops in order");
        store
    }

    #[tokio::test]
    async fn a_large_catalog_is_shown_whole_when_the_start_returns() {
        let store = large().await;
        let controller = builder(&store).start().await.expect("it starts");
        assert_eq!(
            controller.list(Select::new().with_deleted()).resources.len(),
            LARGE
        );
        assert!(controller.get(Key::new("thing", "0")).is_ok());
        controller.shutdown(SOON).await.expect("it stops in order");
    }

    #[tokio::test]
    async fn a_start_that_is_given_up_leaves_no_task() {
        let store = large().await;
        let mut starting = Box::pin(builder(&store).start());
        // Where the other thread was quick it has started; then it ends by being dropped.
        let first = starting
            .as_mut()
            .poll(&mut TaskContext::from_waker(Waker::noop()));
        if let Poll::Ready(started) = first {
            drop(started.expect("it starts"));
        }
        drop(starting);
        let tasks = || Handle::current().metrics().num_alive_tasks();
        let ended = async {
            while tasks() > 0 {
                yield_now().await;
            }
        };
        let in_time = tokio::time::timeout(SOON, ended).await;
        assert!(in_time.is_ok(), "{} tasks are left", tasks());
    }
}
