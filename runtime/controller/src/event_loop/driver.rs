//! The driver: the task that runs the loop turn by turn.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{coop, yield_now};
use watershed_core::Input;

use crate::event_loop::host::{AfterTurn, Host, Stop};
use crate::event_loop::timer::Timer;
use crate::inbox::call::{Inbox, changed};

impl Host {
    /// Runs until the core stops, then releases all resources.
    pub(crate) async fn run(mut self: Box<Self>) -> (Stop, Inbox) {
        let shared = Arc::clone(&self.shared);
        let mut shutdown = self.inbox.shutdown.clone();
        let mut timer = Timer::new();
        loop {
            let mut grace = None;
            match self.turn() {
                AfterTurn::Stopped(stop) => {
                    self.end(&stop).await;
                    return (stop, self.inbox);
                }
                AfterTurn::CommitDelayed => yield_now().await,
                // What is at hand is taken without waiting; other tasks of the thread get their turn all the same.
                AfterTurn::MoreWaits => coop::consume_budget().await,
                AfterTurn::Idle => {
                    let due = self.next_wakeup();
                    // A wake-up during the turn is kept, so nothing that was sent is overlooked.
                    grace = tokio::select! {
                        biased;
                        grace = changed(&mut shutdown) => Some(grace),
                        () = shared.wake_up.notified() => None,
                        () = timer.at(due) => None,
                    };
                }
            }
            if let Some(grace) = grace.or_else(|| asked(&mut shutdown)) {
                self.inject(Input::Shutdown { grace });
            }
        }
    }
}

/// Returns the grace period of a shutdown requested since the last look; none without one.
fn asked(shutdown: &mut watch::Receiver<Option<Duration>>) -> Option<Duration> {
    let is_new = shutdown.has_changed().unwrap_or(false);
    is_new.then(|| *shutdown.borrow_and_update()).flatten()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use watershed_core::{Batch, Edit, Key, Now, Refusal, Uid, Update};

    use crate::clock::{Clock, SystemClock};
    use crate::shutdown::{ShutdownError, StopReason};
    use crate::store::Store;
    use crate::tests::support::{Nothing, SOON, thing};
    use crate::types::error::EditError;
    use crate::{Controller, Handle, KindOptions};

    use super::*;

    async fn start(store: impl Store, clock: impl Clock) -> Controller {
        let controller = Controller::builder().store(store).clock(clock);
        let controller = controller.kind(KindOptions::new("thing"), Nothing);
        let controller = controller.start().await.expect("it starts");
        controller.wait_until_idle(SOON).await.expect("it is empty");
        controller
    }

    async fn start_in_memory() -> Controller {
        start(crate::store::MemoryStore::new(), SystemClock::new()).await
    }

    async fn create(handle: &Handle, name: &str) -> Result<Uid, EditError> {
        handle.create(thing(name)).await
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn nothing_waits_inside_once_a_wait_for_rest_is_over() {
        let controller = start_in_memory().await;
        for round in 0..50 {
            let edits = (0..40).map(|number| Edit::create(thing(&format!("{round}-{number}"))));
            let edits = edits.collect();
            controller.edit(Batch { edits }).await.expect("it is taken");
            controller.wait_until_idle(SOON).await.expect("everything runs");
            for (queue, length) in controller.stats().waiting.queues() {
                // The loop learns a moment later that the wait is over.
                let most = u64::from(queue == "forgotten");
                assert!(length.now <= most, "{queue} in round {round}: {length:?}");
            }
        }
        controller.shutdown(SOON).await.expect("it stops in order");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn callers_who_never_rest_do_not_keep_the_loop_from_stopping() {
        let controller = start_in_memory().await;
        create(controller.as_ref(), "thing").await.expect("it is taken");
        let calling = (0..3).map(|_| {
            let handle = controller.handle();
            tokio::spawn(async move {
                loop {
                    let key = Key::new("thing", "thing");
                    let update = handle.update(key, Update::default());
                    if let Err(error) = update.await {
                        return error;
                    }
                }
            })
        });
        let calling = Vec::from_iter(calling);
        let stopped = tokio::time::timeout(SOON, controller.shutdown(SOON)).await;
        stopped
            .expect("it hears of the shutdown")
            .expect("it stops in order");
        for caller in calling {
            let error = caller.await.expect("it ends");
            let refusal = EditError::Refused(Refusal::ShuttingDown).to_string();
            assert_eq!(error.to_string(), refusal);
        }
    }

    #[cfg(feature = "sqlite")]
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_caller_may_come_from_a_runtime_that_knows_no_time() {
        use crate::store::SqliteStore;

        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(folder.path().join("catalog.db")).await;
        let controller = start(store.expect("it opens"), SystemClock::new()).await;
        let handle = controller.handle();
        let calling = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            let calls = async {
                for name in ["a", "b"] {
                    create(&handle, name).await.expect("it is taken");
                }
            };
            runtime.expect("a runtime").block_on(calls);
        });
        tokio::task::spawn_blocking(move || calling.join().expect("it calls"))
            .await
            .expect("it is waited for");
        controller.shutdown(SOON).await.expect("it stops in order");
    }

    #[cfg(feature = "sqlite")]
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn another_process_may_take_the_catalog_as_soon_as_a_shutdown_is_over() {
        use crate::store::{BoxFuture, Opened, SqliteStore, StoreError};

        #[derive(Debug)]
        struct Counted(
            SqliteStore,
            #[expect(dead_code, reason = "its share is counted")] Arc<()>,
        );

        impl Store for Counted {
            fn open<'a>(&'a self, instance: &'a str) -> BoxFuture<'a, Result<Opened, StoreError>> {
                self.0.open(instance)
            }
        }

        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("catalog.db");
        for _ in 0..5 {
            let store = SqliteStore::open(&path).await.expect("nobody holds the catalog");
            let shares = Arc::new(());
            let controller = start(Counted(store, Arc::clone(&shares)), SystemClock::new()).await;
            // What is asked no more would be let go of after the end was said, if it were held.
            assert_eq!(Arc::strong_count(&shares), 1);
            create(controller.as_ref(), "thing").await.ok();
            controller.shutdown(SOON).await.expect("it stops in order");
        }
    }

    /// A clock that panics once it is told to.
    struct Breaking {
        clock: SystemClock,
        is_broken: Arc<AtomicBool>,
    }

    impl Clock for Breaking {
        fn now(&self) -> Now {
            assert!(!self.is_broken.load(Ordering::SeqCst), "the clock is broken");
            self.clock.now()
        }

        fn start(&self) -> tokio::time::Instant {
            self.clock.start()
        }
    }

    #[tokio::test]
    async fn a_panic_in_a_turn_ends_the_controller_and_refuses_its_calls() {
        let is_broken = Arc::new(AtomicBool::new(false));
        let clock = Breaking {
            clock: SystemClock::new(),
            is_broken: Arc::clone(&is_broken),
        };
        let controller = start(crate::store::MemoryStore::new(), clock).await;
        let mut watch = controller.watch(controller.list(crate::Select::all()).revision);
        is_broken.store(true, Ordering::SeqCst);
        let error = create(controller.as_ref(), "thing").await.expect_err("it panics");
        let unknown = EditError::Refused(Refusal::OutcomeUnknown).to_string();
        assert_eq!(error.to_string(), unknown);
        assert!(matches!(controller.run().await, Err(ShutdownError::Panicked)));
        while watch.next().await.is_some() {}
        assert_eq!(controller.stopped(), Some(StopReason::Panicked));
        assert!(!controller.holds_instance());
        assert!(create(controller.as_ref(), "thing").await.is_err());
    }
}
