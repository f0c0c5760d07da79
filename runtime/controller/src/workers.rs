//! Who runs invocations: a few workers that take them one by one.
//!
//! An invocation that finds nothing to do is over in its first poll, and a hundred thousand of them must not be a
//! hundred thousand tasks. So a worker polls each invocation once where it stands; only one that has to wait for
//! something becomes a task of its own.
//!
//! A reconciler that blocks its thread keeps one worker busy. As long as others are free that holds nobody up; when
//! none is, [`Workers::look`] adds one, so that what blocks is limited by nothing but the controller's limits.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;
use tracing::{Instrument, Span};

use crate::backlog::Backlog;
use crate::runner::Invocation;
use crate::task;

/// Invocations that a worker begins before it lets other tasks have its thread.
const STRETCH: usize = 32;

/// How long nobody may take the next invocation before a worker is added.
const STALL: Duration = Duration::from_millis(10);

/// The workers of one controller. They end when this is dropped.
#[derive(Debug)]
pub(crate) struct Workers {
    backlog: Arc<Backlog<Invocation>>,
    span: Span,
    count: usize,
    /// How many invocations had been taken at the last look.
    taken_before: u64,
    /// When to look again, while any wait.
    next_look: Option<Instant>,
}

impl Workers {
    /// As many as the current runtime has threads.
    ///
    /// Invocations are inside `span`.
    pub(crate) fn spawn(span: Span) -> Self {
        let backlog = Arc::new(Backlog::new());
        let count = Handle::current().metrics().num_workers();
        for _ in 0..count {
            task::spawn(work(Arc::clone(&backlog)).instrument(span.clone()));
        }
        Self {
            backlog,
            span,
            count,
            taken_before: 0,
            next_look: None,
        }
    }

    /// Hands invocations over, which begin in this order, and says how many wait now.
    pub(crate) fn begin(&self, invocations: &mut Vec<Invocation>) -> usize {
        self.backlog.add(invocations, self.count)
    }

    /// How many invocations wait for a worker.
    pub(crate) fn backlog(&self) -> usize {
        self.backlog.len()
    }

    /// Adds a worker if invocations have waited for a while and none was taken meanwhile. Says when to look again; never
    /// if none waits.
    pub(crate) fn look(&mut self) -> Option<Instant> {
        if self.backlog() == 0 {
            self.next_look = None;
            return None;
        }
        let now = Instant::now();
        if self.next_look.is_some_and(|at| now < at) {
            return self.next_look;
        }
        let taken = self.backlog.taken();
        if self.next_look.is_some() && taken == self.taken_before {
            task::spawn(help(Arc::clone(&self.backlog)).instrument(self.span.clone()));
        }
        self.taken_before = taken;
        self.next_look = Some(now + STALL);
        self.next_look
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.backlog.close();
    }
}

/// Works until the controller has ended.
async fn work(backlog: Arc<Backlog<Invocation>>) {
    let mut begun = 0;
    while let Some(invocation) = backlog.take().await {
        begin(invocation).await;
        begun += 1;
        if begun % STRETCH == 0 {
            tokio::task::yield_now().await;
        }
    }
}

/// Works until nothing is left to begin.
async fn help(backlog: Arc<Backlog<Invocation>>) {
    while let Some(invocation) = backlog.try_take() {
        begin(invocation).await;
        tokio::task::yield_now().await;
    }
}

/// Polls an invocation once. What has to wait goes on as a task of its own.
async fn begin(invocation: Invocation) {
    let link = invocation.link();
    let mut run = invocation.run();
    let over = poll_fn(|cx| Poll::Ready(run.as_mut().poll(cx).is_ready())).await;
    if !over {
        link.goes_on_in(task::spawn(run).abort_handle());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use watershed_core::{Batch, Edit, Error, Key, KindOptions, Limits, NewResource, Outcome};

    use super::*;
    use crate::{Context, Controller, Reconciler, fresh_uid};

    /// Longer than any of this takes.
    const SOON: Duration = Duration::from_secs(60);

    async fn start<R: Reconciler>(count: usize, reconciler: R) -> Controller {
        let limits = Limits {
            concurrency: 1_000,
            ..Limits::default()
        };
        let options = KindOptions::new("thing");
        let controller = Controller::builder().limits(limits).kind(options, reconciler);
        let controller = controller.start().await.expect("it starts");
        let things = (0..count).map(|number| {
            let mut new = NewResource::new(fresh_uid(), "thing", format!("{number}").as_str(), Vec::new());
            new.spec_format = 0;
            Edit::create(new)
        });
        let edits = things.collect();
        controller
            .apply(Batch { edits })
            .await
            .expect("the batch is taken");
        controller
    }

    async fn finish(controller: Controller) {
        controller.wait_until_idle(SOON).await.expect("everything runs");
        controller.shutdown(SOON).await.expect("it stops in order");
    }

    async fn run<R: Reconciler>(count: usize, reconciler: R) {
        finish(start(count, reconciler).await).await;
    }

    /// Returns once so many of its invocations run.
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

    /// Counts the tasks of the runtime.
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
