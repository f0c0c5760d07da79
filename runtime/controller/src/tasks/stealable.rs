//! A wrapper that keeps the crate's own tasks where every thread of the runtime can take them.
//!
//! A task that is woken from a worker thread of tokio goes into a slot of that thread (its LIFO slot), from which no
//! other thread takes it. If the code that woke it then blocks the thread, as a synchronous driver inside a reconciler
//! does, the woken task waits for the end of the block though other threads are free. The event loop must not wait for
//! that. A second task that is woken pushes the first out of the slot into the thread's queue, which idle threads steal
//! from. So each wake-up of a [`Stealable`] spawns an empty task after it.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};

use tokio::runtime::Handle;

/// A future whose wake-ups leave its task in a queue that all threads take from. Must be the whole of its task.
pub(crate) struct Stealable<F> {
    future: Pin<Box<F>>,
    rewake: Arc<Rewake>,
    waker: Waker,
}

struct Rewake {
    runtime: Handle,
    /// The task's own waker, the same in every poll.
    task: OnceLock<Waker>,
    /// True if the task was woken since its last poll began: one empty task per poll is enough.
    is_woken: AtomicBool,
}

impl<F: Future> Stealable<F> {
    pub(crate) fn new(future: F, runtime: Handle) -> Self {
        let rewake = Arc::new(Rewake {
            runtime,
            task: OnceLock::new(),
            is_woken: AtomicBool::new(false),
        });
        Self {
            future: Box::pin(future),
            waker: Waker::from(Arc::clone(&rewake)),
            rewake,
        }
    }
}

impl<F: Future> Future for Stealable<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        this.rewake.task.get_or_init(|| cx.waker().clone());
        // Before the poll: a wake-up during it must lead to another one. Read and written at once, so that what was
        // done before a wake-up that found the flag set is seen here.
        this.rewake.is_woken.swap(false, Ordering::AcqRel);
        this.future.as_mut().poll(&mut Context::from_waker(&this.waker))
    }
}

impl Wake for Rewake {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.is_woken.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Some(task) = self.task.get() {
            task.wake_by_ref();
            displace(&self.runtime);
        }
    }
}

/// Pushes the last woken task out of the thread's own slot.
pub(crate) fn displace(runtime: &Handle) {
    drop(runtime.spawn(std::future::ready(())));
}
