//! Workers that run invocations, each taking one at a time from a shared queue.
//!
//! An invocation that finds nothing to do is over in its first poll, and a hundred thousand of them must not be a
//! hundred thousand tasks. So a worker polls each invocation once where it stands; only one that has to wait for
//! something becomes a task of its own.
//!
//! A worker has the loop take what its invocations left when it has run out of them, or has begun a good many. If one of
//! them blocks before that, what those before it left is taken at the next look: while any wait there is always one to
//! come.
//!
//! A reconciler that blocks its thread keeps one worker busy. As long as others are free nothing else waits; when
//! none is, [`Workers::check_for_stall`] adds one, so that what blocks is limited by nothing but the controller's limits.

pub(crate) mod invocation;
pub(crate) mod reconciler;
pub(crate) mod run_queue;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::yield_now;
use tokio::time::Instant;
use tracing::{Instrument, Span};

use crate::inbox::shared::Shared;
use crate::tasks;
use crate::workers::invocation::Invocation;
use crate::workers::run_queue::RunQueue;

/// Number of invocations after which a worker wakes the loop and yields its thread, unless it runs out of them sooner.
const BATCH: usize = 32;

/// Interval between checks for a stall: if no invocation was taken in one, a worker is added.
const STALL: Duration = Duration::from_millis(10);

/// The workers of one controller, which end when this is dropped.
#[derive(Debug)]
pub(crate) struct Workers {
    run_queue: Arc<RunQueue<Invocation>>,
    span: Span,
    shared: Arc<Shared>,
    count: usize,
    /// Number of invocations handed over so far.
    added: u64,
    /// Value of `added` at the last check for a stall.
    added_before: u64,
    /// Number of invocations taken from the queue by the last check.
    taken_before: u64,
    /// True if invocations waited at the last check.
    waited_before: bool,
    /// Time of the next check for a stall; none while no invocation waits or comes.
    next_stall_check: Option<Instant>,
}

impl Workers {
    /// Starts as many workers as the current runtime has threads.
    ///
    /// Invocations are inside `span`.
    pub(crate) fn spawn(shared: Arc<Shared>, span: Span) -> Self {
        let workers = Self {
            run_queue: Arc::new(RunQueue::new()),
            span,
            shared,
            count: Handle::current().metrics().num_workers(),
            added: 0,
            added_before: 0,
            taken_before: 0,
            waited_before: false,
            next_stall_check: None,
        };
        for _ in 0..workers.count {
            tasks::spawn_worker(workers.worker().work().instrument(workers.span.clone()));
        }
        workers
    }

    fn worker(&self) -> Worker {
        Worker {
            run_queue: Arc::clone(&self.run_queue),
            shared: Arc::clone(&self.shared),
            unreported: 0,
        }
    }

    /// Hands over invocations, which begin in this order; returns how many wait now.
    pub(crate) fn begin(&mut self, invocations: &mut Vec<Invocation>) -> usize {
        self.added += invocations.len() as u64;
        self.run_queue.add(invocations, self.count)
    }

    /// Returns the number of invocations that wait for a worker.
    pub(crate) fn queued(&self) -> usize {
        self.run_queue.len()
    }

    /// Adds a worker if invocations have waited since the last check and none was taken. Returns the time of the next
    /// check; none if none wait and none came.
    pub(crate) fn check_for_stall(&mut self) -> Option<Instant> {
        let now = Instant::now();
        if self.next_stall_check.is_some_and(|at| now < at) {
            return self.next_stall_check;
        }
        let is_new = self.added != self.added_before;
        let (waits, taken) = (self.queued() > 0, self.run_queue.taken());
        if waits && self.waited_before && taken == self.taken_before {
            tasks::spawn(self.worker().drain().instrument(self.span.clone()));
        }
        (self.added_before, self.waited_before, self.taken_before) = (self.added, waits, taken);
        self.next_stall_check = (waits || is_new).then(|| now + STALL);
        self.next_stall_check
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.run_queue.close();
    }
}

/// A worker: takes invocations from the run queue and begins them.
struct Worker {
    run_queue: Arc<RunQueue<Invocation>>,
    shared: Arc<Shared>,
    /// Number of invocations begun since the loop was last woken.
    unreported: usize,
}

impl Worker {
    /// Works until the controller has ended.
    async fn work(mut self) {
        while let Some(invocation) = self.next().await {
            self.begin(invocation).await;
            if self.unreported >= BATCH {
                self.report();
                yield_now().await;
            }
        }
    }

    /// Works until the queue is empty.
    async fn drain(mut self) {
        while let Some(invocation) = self.run_queue.try_take() {
            self.begin(invocation).await;
            self.report();
            yield_now().await;
        }
    }

    async fn next(&mut self) -> Option<Invocation> {
        if let Some(next) = self.run_queue.try_take() {
            return Some(next);
        }
        if self.unreported > 0 {
            self.report();
        }
        self.run_queue.take().await
    }

    /// Wakes the loop to take the results.
    fn report(&mut self) {
        self.unreported = 0;
        self.shared.wake();
    }

    /// Polls an invocation once; if it must wait, it continues as a task of its own.
    async fn begin(&mut self, invocation: Invocation) {
        self.unreported += 1;
        let channel = invocation.channel();
        let mut run = invocation.run();
        let over = poll_fn(|cx| Poll::Ready(run.as_mut().poll(cx).is_ready())).await;
        if over {
            return;
        }
        channel.goes_on_in(tasks::spawn(run).abort_handle());
        // From now on it tells the loop itself; what it left before is taken here.
        self.report();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Semaphore;
    use watershed_core::{Error, Key, KindOptions, Limits, Outcome, Stage};

    use super::*;
    use crate::tests::support::{SOON, things};
    use crate::{Context, Controller, Reconciler, Resource};

    async fn start<R: Reconciler>(count: usize, reconciler: R) -> Controller {
        let limits = Limits::default().concurrency(1_000);
        let options = KindOptions::new("thing");
        let controller = Controller::builder().limits(limits).kind(options, reconciler);
        let controller = controller.start().await.expect("it starts");
        controller.edit(things(count)).await.expect("the batch is taken");
        controller
    }

    async fn finish(controller: Controller) {
        controller.wait_until_idle(SOON).await.expect("everything runs");
        controller.shutdown(SOON).await.expect("it stops in order");
    }

    async fn run<R: Reconciler>(count: usize, reconciler: R) {
        finish(start(count, reconciler).await).await;
    }

    /// A reconciler whose invocations return once a number of them run together.
    struct Together(Arc<Barrier>);

    impl Reconciler for Together {
        type Spec = ();
        type State = ();

        async fn reconcile(&self, _context: Context<Self>) -> Result<Outcome, Error> {
            let barrier = Arc::clone(&self.0);
            tokio::task::block_in_place(|| barrier.wait());
            Ok(Outcome::default())
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn invocations_that_block_their_threads_do_not_keep_others_from_beginning() {
        run(8, Together(Arc::new(Barrier::new(8)))).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_caller_who_never_rests_does_not_keep_them_from_beginning_either() {
        let controller = start(8, Together(Arc::new(Barrier::new(8)))).await;
        let handle = controller.handle();
        let asking =
            tokio::spawn(async move { while handle.explain(Key::new("thing", "0")).await.is_ok() {} });
        controller
            .wait_until_idle(SOON)
            .await
            .expect("all have begun together");
        finish(controller).await;
        asking.await.expect("it asks until the controller has stopped");
    }

    /// A reconciler in which resources with an odd number block their threads until released.
    struct Blocking(Arc<Semaphore>);

    impl Reconciler for Blocking {
        type Spec = ();
        type State = ();

        async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
            let number: usize = context.name().as_str().parse().expect("a number");
            if number % 2 == 1 {
                let goes_on = self.0.acquire();
                let permit = tokio::task::block_in_place(|| Handle::current().block_on(goes_on));
                drop(permit.expect("nobody closes it"));
            }
            Ok(Outcome::default())
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_has_returned_is_taken_though_the_next_one_blocks() {
        let may_go_on = Arc::new(Semaphore::new(0));
        let controller = start(16, Blocking(Arc::clone(&may_go_on))).await;
        for number in (0..16).step_by(2) {
            let key = Key::new("thing", format!("{number}").as_str());
            let has_run = |found: Option<&Resource>| {
                found.is_some_and(|found| matches!(found.status.stage, Stage::Settled(_)))
            };
            let waited = controller.wait_until(key, has_run, SOON).await;
            waited.expect("its return is taken");
        }
        may_go_on.add_permits(1);
        finish(controller).await;
    }

    /// A reconciler that records the largest number of tasks in the runtime.
    struct Counting(Arc<AtomicUsize>);

    impl Reconciler for Counting {
        type Spec = ();
        type State = ();

        async fn reconcile(&self, _context: Context<Self>) -> Result<Outcome, Error> {
            let tasks = Handle::current().metrics().num_alive_tasks();
            self.0.fetch_max(tasks, Ordering::Relaxed);
            Ok(Outcome::default())
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn invocations_that_wait_for_nothing_are_no_tasks() {
        let most = Arc::new(AtomicUsize::new(0));
        run(10_000, Counting(Arc::clone(&most))).await;
        assert!(most.load(Ordering::Relaxed) < 20, "{most:?}");
    }
}
