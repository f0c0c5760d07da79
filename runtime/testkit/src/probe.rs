//! Invocations under observation: each poll is counted, and at a chosen point the invocation is held or its process
//! dies.
//!
//! What runs is the reconciler's own future, as the host runs it; the probe stands between the two.

use std::any::Any;
use std::collections::BTreeMap;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{self, Poll, Waker};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use watershed_controller::reconciler::{CancellationToken, Phase};
use watershed_controller::resource::Row;
use watershed_controller::store::BoxFuture;
use watershed_controller::{Context, Error, Outcome, Reconciler};

use crate::script::Point;
use crate::sync::lock;

/// End of an invocation: its result, or the payload of its panic.
type Ended = Result<Result<Outcome, Error>, Box<dyn Any + Send>>;

/// An invocation of the reconciler under test.
type Invocation = BoxFuture<'static, Result<Outcome, Error>>;

/// Maximum number of polls of one invocation: more mean an endless loop.
const POLLS: u64 = 10_000;

/// Life signs of a process. A dead process does nothing at all.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    dead: AtomicBool,
    /// True if the process is alive but can't store anything any more.
    evicted: AtomicBool,
    /// Number of invocations that have begun and neither ended nor were dropped.
    open: AtomicU64,
}

impl Pulse {
    pub(super) fn die(&self) {
        self.dead.store(true, Ordering::Relaxed);
    }

    pub(super) fn evict(&self) {
        self.evicted.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    pub(super) fn may_write(&self) -> bool {
        !self.is_dead() && !self.evicted.load(Ordering::Relaxed)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.load(Ordering::Relaxed) == 0
    }
}

/// Treatment of an invocation that reaches the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    /// The invocation is held until it is released.
    Hold,
    /// The process of the invocation dies.
    Die,
}

/// Control of invocations by a play.
#[derive(Default)]
pub(super) struct Control {
    shared: Mutex<Shared>,
    /// Notified when an invocation has reached the point, or ended.
    pub(super) happened: Notify,
}

#[derive(Default)]
struct Shared {
    armed: Option<(Point, Then)>,
    /// True if any invocation was polled since the point was set.
    worked: bool,
    reached: Option<Reached>,
    /// Wakers of held invocations, by the numbers of their holds.
    held: BTreeMap<u64, Waker>,
    holds: u64,
    counts: Counts,
    is_in_trouble: bool,
    /// Number of cancelled invocations that have not returned.
    leaving: usize,
    complaint: Option<Complaint>,
    /// Invocations of dead processes, whose destructors run only when nothing is observed any more.
    buried: Vec<Invocation>,
}

/// An invocation that reached the point.
#[derive(Debug, Clone)]
pub(super) struct Reached {
    pub(super) row: Row,
    pub(super) phase: Phase,
}

/// Counts of the invocations of a play.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) polls: u64,
    pub(super) invocations: u64,
    pub(super) cancelled: u64,
    pub(super) dropped: u64,
    /// Number of invocations that returned an error while the outside failed.
    pub(super) errors: u64,
}

/// A fault of an invocation that is visible without a comparison.
#[derive(Debug, Clone)]
pub(super) enum Complaint {
    /// The invocation continued for this long after its cancel.
    Late(String, Duration),
    /// The invocation panicked, with this message.
    Panicked(String, String),
    /// The invocation never ended.
    Endless(String),
}

impl Control {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        lock(&self.shared)
    }

    pub(super) fn arm(&self, armed: Option<(Point, Then)>) {
        let mut shared = self.lock();
        shared.armed = armed;
        shared.worked = false;
    }

    /// Takes the invocation that has reached the point since the last call.
    pub(super) fn take_reached(&self) -> Option<Reached> {
        self.lock().reached.take()
    }

    pub(super) fn is_reached(&self) -> bool {
        self.lock().reached.is_some()
    }

    /// Returns true if an invocation continues after its cancel.
    pub(super) fn has_cancelled(&self) -> bool {
        self.lock().leaving > 0
    }

    /// Releases all held invocations.
    pub(super) fn release(&self) {
        let held = std::mem::take(&mut self.lock().held);
        held.into_values().for_each(Waker::wake);
    }

    pub(super) fn counts(&self) -> Counts {
        self.lock().counts
    }

    pub(super) fn take_complaint(&self) -> Option<Complaint> {
        self.lock().complaint.take()
    }

    pub(super) fn trouble(&self, begins: bool) {
        self.lock().is_in_trouble = begins;
    }

    fn complain(&self, complaint: Complaint) {
        self.lock().complaint.get_or_insert(complaint);
        self.happened.notify_one();
    }

    /// Returns whether this commit, at which the process dies, becomes durable; none if the process lives.
    pub(super) fn dies_at_commit(&self) -> Option<bool> {
        let mut shared = self.lock();
        match shared.armed {
            Some((Point::Commit { durable }, _)) if shared.worked => {
                shared.armed = None;
                Some(durable)
            }
            _ => None,
        }
    }

    /// Drops the invocations of dead processes; nothing that this does is observed.
    pub(super) fn clear(&self) {
        let buried = std::mem::take(&mut self.lock().buried);
        drop(buried);
    }
}

/// A reconciler under observation, which wraps the one under test.
pub(super) struct Probed<R> {
    reconciler: Arc<R>,
    control: Arc<Control>,
    pulse: Arc<Pulse>,
    cancel_within: Duration,
}

impl<R: Reconciler> Probed<R> {
    pub(super) fn new(
        reconciler: R,
        control: Arc<Control>,
        pulse: Arc<Pulse>,
        cancel_within: Duration,
    ) -> Self {
        Self {
            reconciler: Arc::new(reconciler),
            control,
            pulse,
            cancel_within,
        }
    }

    /// Returns the reconciler under test, and the invocation as it sees it.
    fn inner(&self, context: &Context<Self>) -> (Arc<R>, Context<R>) {
        (Arc::clone(&self.reconciler), context.delegate())
    }

    /// Runs an invocation of the reconciler under test under observation.
    fn observe(
        &self,
        context: &Context<Self>,
        inner: Invocation,
    ) -> impl Future<Output = Result<Outcome, Error>> + Send + use<R> {
        self.pulse.open.fetch_add(1, Ordering::Relaxed);
        let probe = Probe {
            inner: Some(inner),
            ended: None,
            who: Reached {
                row: context.row().clone(),
                phase: context.phase(),
            },
            cancellation: context.cancellation().clone(),
            control: Arc::clone(&self.control),
            pulse: Arc::clone(&self.pulse),
            polls: 0,
            waited: 0,
            hold: None,
            cancelled_at: None,
            cancel_within: self.cancel_within,
        };
        async move {
            match probe.await {
                Ok(result) => result,
                Err(panic) => resume_unwind(panic),
            }
        }
    }
}

impl<R: Reconciler> Reconciler for Probed<R> {
    type Spec = R::Spec;
    type State = R::State;

    fn reconcile(&self, context: Context<Self>) -> impl Future<Output = Result<Outcome, Error>> + Send {
        let (inner, its_context) = self.inner(&context);
        let invocation = Box::pin(async move { inner.reconcile(its_context).await });
        self.observe(&context, invocation)
    }

    fn rename(&self, context: Context<Self>) -> impl Future<Output = Result<Outcome, Error>> + Send {
        let (inner, its_context) = self.inner(&context);
        let invocation = Box::pin(async move { inner.rename(its_context).await });
        self.observe(&context, invocation)
    }

    fn delete(&self, context: Context<Self>) -> impl Future<Output = Result<Outcome, Error>> + Send {
        let (inner, its_context) = self.inner(&context);
        let invocation = Box::pin(async move { inner.delete(its_context).await });
        self.observe(&context, invocation)
    }
}

/// One invocation under observation.
struct Probe {
    inner: Option<Invocation>,
    /// Result of the invocation, if it has ended and is still held back.
    ended: Option<Ended>,
    who: Reached,
    cancellation: CancellationToken,
    control: Arc<Control>,
    pulse: Arc<Pulse>,
    polls: u64,
    /// Number of times that the invocation had to wait.
    waited: usize,
    /// Number of the invocation's hold; none while it is not held.
    hold: Option<u64>,
    cancelled_at: Option<Instant>,
    cancel_within: Duration,
}

impl Future for Probe {
    type Output = Ended;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Ended> {
        let this = &mut *self;
        if this.pulse.is_dead() || this.still_held(cx) {
            return Poll::Pending;
        }
        if this.polls == 0 && this.inner.is_some() && this.stops_at(Point::Await(0), cx) {
            return Poll::Pending;
        }
        if let Some(ended) = this.ended.take() {
            return this.over(ended);
        }
        let Some(inner) = &mut this.inner else {
            return Poll::Pending;
        };
        if this.cancellation.is_cancelled() && this.cancelled_at.is_none() {
            this.cancelled_at = Some(Instant::now());
            this.control.lock().leaving += 1;
        }
        this.polls += 1;
        this.control.count(this.polls == 1);
        // A future that panicked is dropped and never polled again, as the controller does it.
        let polled = catch_unwind(AssertUnwindSafe(|| inner.as_mut().poll(cx)));
        match polled.map_or_else(|panic| Poll::Ready(Err(panic)), |poll| poll.map(Ok)) {
            Poll::Pending => this.waits(cx),
            Poll::Ready(ended) => {
                this.inner = None;
                if this.stops_at(Point::End, cx) {
                    this.ended = Some(ended);
                    return Poll::Pending;
                }
                this.over(ended)
            }
        }
    }
}

impl Control {
    fn count(&self, is_first: bool) {
        let mut shared = self.lock();
        shared.worked = true;
        shared.counts.polls += 1;
        shared.counts.invocations += u64::from(is_first);
    }

    fn returned(&self, is_cancelled: bool, has_failed: bool) {
        let mut shared = self.lock();
        let in_trouble = has_failed && shared.is_in_trouble;
        shared.counts.cancelled += u64::from(is_cancelled);
        shared.counts.errors += u64::from(in_trouble);
    }

    /// Stops an invocation at a point, if it is to stop there, and notifies the play. Returns the number of its hold if
    /// it is held.
    fn stops(&self, point: Point, probe: &Reached, pulse: &Pulse, waker: &Waker) -> Option<Option<u64>> {
        let mut shared = self.lock();
        let (_, then) = shared.armed.filter(|(armed, _)| *armed == point)?;
        shared.armed = None;
        shared.reached = Some(probe.clone());
        self.happened.notify_one();
        match then {
            Then::Hold => {
                shared.holds += 1;
                let number = shared.holds;
                shared.held.insert(number, waker.clone());
                Some(Some(number))
            }
            Then::Die => {
                pulse.die();
                Some(None)
            }
        }
    }
}

impl Probe {
    fn stops_at(&mut self, point: Point, cx: &task::Context<'_>) -> bool {
        let stops = self.control.stops(point, &self.who, &self.pulse, cx.waker());
        self.hold = stops.flatten();
        stops.is_some()
    }

    /// Returns true if the invocation is held, even if what it waits for has woken it.
    fn still_held(&mut self, cx: &task::Context<'_>) -> bool {
        let Some(hold) = self.hold else {
            return false;
        };
        match self.control.lock().held.get_mut(&hold) {
            Some(waker) => waker.clone_from(cx.waker()),
            None => self.hold = None,
        }
        self.hold.is_some()
    }

    fn waits(&mut self, cx: &task::Context<'_>) -> Poll<Ended> {
        self.waited += 1;
        if self.polls > POLLS {
            // It is not polled again, so that the play comes to an end.
            self.control.complain(Complaint::Endless(self.what()));
            return Poll::Pending;
        }
        let _ = self.stops_at(Point::Await(self.waited), cx);
        Poll::Pending
    }

    fn over(&mut self, ended: Ended) -> Poll<Ended> {
        self.control
            .returned(self.cancellation.is_cancelled(), matches!(ended, Ok(Err(_))));
        let took = self.cancelled_at.map(|at| at.elapsed()).unwrap_or_default();
        if took > self.cancel_within {
            self.control.complain(Complaint::Late(self.what(), took));
        }
        if let Err(panic) = &ended {
            let message = panic_message(panic.as_ref());
            self.control.complain(Complaint::Panicked(self.what(), message));
        }
        Poll::Ready(ended)
    }

    fn what(&self) -> String {
        self.who.to_string()
    }
}

/// Returns the message of a panic: the text of `panic!`, or a note that it has none.
fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}

impl std::fmt::Display for Reached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let phase = match self.phase {
            Phase::Delete => "delete",
            Phase::Rename => "rename",
            Phase::Reconcile => "reconcile",
        };
        write!(f, "the {phase} of \"{}\"", self.row.name)
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.pulse.open.fetch_sub(1, Ordering::Relaxed);
        self.control.lock().leaving -= usize::from(self.cancelled_at.is_some());
        let Some(inner) = self.inner.take() else {
            return;
        };
        if self.pulse.is_dead() {
            self.control.lock().buried.push(inner);
        } else {
            self.control.lock().counts.dropped += 1;
        }
    }
}
