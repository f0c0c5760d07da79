//! The driver: the loop's own task, which makes the turns that no caller or worker makes.

use std::any::Any;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{coop, yield_now};
use watershed_core::Input;

use crate::event_loop::call::{Inbox, changed};
use crate::event_loop::combining::{AfterLoan, Lend, LentTo};
use crate::event_loop::host::{AfterTurn, Host, Stop, Turn};
use crate::event_loop::shared::Shared;
use crate::event_loop::timer::Timer;

/// The most turns of one loan, which makes its caller wait: a write that is committed at once takes two.
const TURNS: usize = 4;

impl Lend for Host {
    fn run_lent_turns(&mut self) -> AfterLoan {
        self.run_turns()
    }
}

impl Host {
    /// Runs until the core stops, then gives everything back.
    pub(crate) async fn run(self: Box<Self>) -> (Stop, Inbox) {
        let shared = Arc::clone(&self.shared);
        let mut shutdown = self.inbox.shutdown.clone();
        let mut timer = Timer::new();
        let driver = shared.combiner.driver();
        let mut host = self;
        loop {
            let mut grace = None;
            match host.turn(Turn::Own) {
                AfterTurn::Stopped(stop) => {
                    drop(driver);
                    host.end(&stop).await;
                    return (stop, host.inbox);
                }
                AfterTurn::CommitDelayed => yield_now().await,
                // What is at hand is taken without waiting; other tasks of the thread get their turn all the same.
                AfterTurn::MoreWaits | AfterTurn::NeedsDriver => coop::consume_budget().await,
                AfterTurn::Idle => {
                    let due = host.next_wakeup();
                    if let Some(back) = driver.rest(host) {
                        host = own(back);
                    } else {
                        grace = tokio::select! {
                            biased;
                            grace = changed(&mut shutdown) => Some(grace),
                            () = driver.woken() => None,
                            () = timer.at(due) => None,
                        };
                        host = own(driver.take().await.unwrap_or_else(|panic| resume_unwind(panic)));
                    }
                }
            }
            if let Some(grace) = grace.or_else(|| asked(&mut shutdown)) {
                host.inject(Input::Shutdown { grace });
            }
        }
    }

    /// Runs turns in the task of a caller or worker.
    fn run_turns(&mut self) -> AfterLoan {
        // A store's timers belong where the loop's task is, wherever the visitor comes from.
        let (runtime, span) = (self.runtime.clone(), self.span.clone());
        let (_inside, _within) = (runtime.enter(), span.enter());
        for _ in 0..TURNS {
            match self.turn(Turn::Lent) {
                AfterTurn::Idle if self.wakes_too_late() => return AfterLoan::NeedsDriver,
                AfterTurn::Idle => return AfterLoan::Idle,
                AfterTurn::MoreWaits => {}
                AfterTurn::CommitDelayed | AfterTurn::NeedsDriver | AfterTurn::Stopped(_) => {
                    return AfterLoan::NeedsDriver;
                }
            }
        }
        AfterLoan::NeedsDriver
    }
}

impl Shared {
    /// Runs a turn here if the host is idle; else whoever has the host makes another turn.
    pub(crate) fn run_or_wake(&self, visitor: LentTo) {
        self.combiner.run_or_wake(visitor, |host| host.run_lent_turns());
    }
}

/// Returns the host that the driver has lent.
fn own(host: Box<dyn Lend>) -> Box<Host> {
    let host: Box<dyn Any> = host;
    host.downcast()
        .unwrap_or_else(|_| unreachable!("the driver lends nothing else"))
}

/// The grace period of a shutdown that was asked for since the last look.
fn asked(shutdown: &mut watch::Receiver<Option<Duration>>) -> Option<Duration> {
    let is_new = shutdown.has_changed().unwrap_or(false);
    is_new.then(|| *shutdown.borrow_and_update()).flatten()
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::{Context as TaskContext, Poll, Waker};

    use watershed_core::{Batch, Edit, Key, KindOptions, Now, Ref, Refusal, Uid, Update};

    use crate::api::error::EditError;
    use crate::event_loop::host::MANY;
    use crate::store::Store;
    use crate::tests::support::{Nothing, SOON, thing};
    use crate::{Clock, Controller, Expect, Handle, ShutdownError, SystemClock};

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

    #[tokio::test]
    async fn a_write_that_is_committed_at_once_is_answered_in_its_first_poll() {
        let controller = start_in_memory().await;
        for name in ["first", "second"] {
            // Whatever was under way is over.
            controller.wait_until_idle(SOON).await.expect("everything runs");
            let mut creating = pin!(create(&controller, name));
            let first = creating
                .as_mut()
                .poll(&mut TaskContext::from_waker(Waker::noop()));
            assert!(matches!(first, Poll::Ready(Ok(_))), "{first:?}");
        }
        controller.wait_until_idle(SOON).await.expect("everything runs");
        let handle = controller.handle();
        let without_a_runtime = std::thread::spawn(move || {
            let creating = pin!(create(&handle, "third"));
            creating
                .poll(&mut TaskContext::from_waker(Waker::noop()))
                .is_ready()
        });
        assert!(without_a_runtime.join().expect("it calls"));
        controller.shutdown(SOON).await.expect("it stops in order");
    }

    #[tokio::test]
    async fn a_call_that_reaches_many_resources_is_left_to_the_loops_own_task() {
        let controller = start_in_memory().await;
        create(&controller, "root").await.expect("it is taken");
        let below = |name: usize| thing(&name.to_string()).with_refs([Ref::completed("thing", "root")]);
        let edits = (0..2 * MANY).map(|name| Edit::create(below(name)));
        let edits = edits.collect();
        controller.apply(Batch { edits }).await.expect("it is taken");
        controller.wait_until_idle(SOON).await.expect("everything runs");
        for (name, at_once) in [("root", false), ("7", true), ("root", false)] {
            let mut asked = pin!(controller.reconcile(name));
            let first = asked.as_mut().poll(&mut TaskContext::from_waker(Waker::noop()));
            assert_eq!(first.is_ready(), at_once, "{name}");
            controller.wait_until_idle(SOON).await.expect("everything runs");
        }
        controller.shutdown(SOON).await.expect("it stops in order");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn nothing_waits_inside_once_a_wait_for_rest_is_over() {
        let controller = start_in_memory().await;
        for round in 0..50 {
            let edits = (0..40).map(|number| Edit::create(thing(&format!("{round}-{number}"))));
            let edits = edits.collect();
            controller.apply(Batch { edits }).await.expect("it is taken");
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
        create(&controller, "thing").await.expect("it is taken");
        let calling = (0..3).map(|_| {
            let handle = controller.handle();
            tokio::spawn(async move {
                loop {
                    let key = Key::new("thing", "thing");
                    let update = handle.update(key, Update::default(), Expect::default());
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

    /// Goes until it breaks.
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
    async fn a_panic_in_a_callers_turn_is_the_loops() {
        let is_broken = Arc::new(AtomicBool::new(false));
        let clock = Breaking {
            clock: SystemClock::new(),
            is_broken: Arc::clone(&is_broken),
        };
        let controller = start(crate::store::MemoryStore::new(), clock).await;
        is_broken.store(true, Ordering::SeqCst);
        let error = create(&controller, "thing").await.expect_err("it panics");
        let unknown = EditError::Refused(Refusal::OutcomeUnknown).to_string();
        assert_eq!(error.to_string(), unknown);
        assert!(matches!(controller.run().await, Err(ShutdownError::Panicked)));
        assert!(create(&controller, "thing").await.is_err());
    }
}
