//! Start and stop of a controller.

mod operations;

use std::any::TypeId;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tracing::Instrument;
use watershed_core::{Epoch, Kind, KindOptions, Limits, Revision, StopReason, Stored};

use crate::cluster::participant::{Leadership, Participant, Role};
use crate::event_loop::host::{OnLeaseLost, Stop};
use crate::event_loop::initial_snapshot::InitialSnapshot;
use crate::handle::Handle;
use crate::inbox::call::Inbox;
use crate::inbox::shared::{Shared, SpecCheck};
use crate::metrics::Metrics;
use crate::read::view::View;
use crate::read::watch::ChangeLog;
use crate::store::{Catalog, MemoryStore, Opened, Store, StoreError};
use crate::sync::{AtomicBool, AtomicU64, Notify, OnceLock, RwLock};
use crate::tasks::{self, panics};
use crate::types::clock::{Clock, SystemClock};
use crate::types::error::{ShutdownError, StartError};
use crate::types::message::{self, Message};
use crate::types::observer::InvocationObserver;
use crate::workers::invocation::{Runner, TypedRunner};
use crate::workers::reconciler::Reconciler;

/// Capacity of the queue of calls to the loop: enough to fill a turn, few enough to push back under overload.
const COMMANDS: usize = 1_024;

/// Default time that a call waits for a leader: longer than a Postgres lease, so that callers don't notice a takeover.
pub const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Grace period for invocations when a controller is dropped without [`Controller::shutdown`].
pub const DROP_GRACE: Duration = Duration::from_secs(10);

/// A running controller. Dropping it ends the controller; [`shutdown`](Self::shutdown) ends it in order.
///
/// Everything else it does as the [`Handle`] for other tasks does, of which any number can be cloned.
///
/// ```
/// # use watershed_controller::{Context, Error, Outcome, Reconciler};
/// # struct Pages;
/// # impl Reconciler for Pages {
/// #     type Spec = Page;
/// #     type State = Page;
/// #     async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
/// #         let page = Page(context.spec().0.clone());
/// #         context.set_state(&page).await?;
/// #         Ok(Outcome::default())
/// #     }
/// # }
/// # #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
/// # struct Page(String);
/// # watershed_controller::json_message!(Page, format = 1);
/// use std::time::Duration;
/// use watershed_controller::{Controller, Key, KindOptions, Resource};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let controller = Controller::builder().kind(KindOptions::new("page"), Pages).start().await?;
/// controller.create(Resource::declare("page", "home", &Page("hello".into()))?).await?;
/// controller.wait_until_idle(Duration::from_secs(10)).await?;
///
/// // A handle for another task does not keep the controller running, and reads go on when it has stopped.
/// let handle = controller.handle();
/// controller.shutdown(Duration::from_secs(10)).await?;
/// assert!(handle.stopped().is_some());
/// assert!(handle.get("home")?.row.state.is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Controller {
    handle: Handle,
    shutdown: watch::Sender<Option<Duration>>,
    ended: watch::Receiver<Option<Stop>>,
}

impl Controller {
    /// Returns a builder with every default.
    pub fn builder() -> Builder {
        Builder {
            instance: Arc::from("default"),
            store: Arc::new(MemoryStore::new()),
            limits: Limits::default(),
            kinds: Vec::new(),
            runners: BTreeMap::new(),
            types: Vec::new(),
            specs: BTreeMap::new(),
            clock: None,
            on_lease_lost: OnLeaseLost::default(),
            observer: None,
            call_timeout: DEFAULT_CALL_TIMEOUT,
            seen: Epoch::default(),
        }
    }

    /// Returns a handle for other tasks, which does not keep the controller running.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Stops in order: accepts no further calls, cancels invocations, waits up to `grace` for them, commits, and gives
    /// the lease back. A second call ends the grace period at once.
    ///
    /// Reads go on after it. Cancel-safe: the shutdown goes on without the future.
    pub async fn shutdown(&self, grace: Duration) -> Result<(), ShutdownError> {
        self.shutdown.send_replace(Some(grace));
        self.run().await
    }

    /// Waits until the controller has stopped, for any reason: a shutdown, a failing store, a lost lease
    /// ([`ShutdownError::LeaseLost`]), or the end of the async runtime. A controller that campaigns for the lease
    /// ([`OnLeaseLost::Campaign`], [`Builder::join`]) survives its loss, and this goes on waiting. After other losses a
    /// new controller may be started, which waits until the lease is free.
    ///
    /// Cancel-safe.
    pub async fn run(&self) -> Result<(), ShutdownError> {
        let mut ended = self.ended.clone();
        let Ok(stop) = ended.wait_for(Option::is_some).await.map(|stop| stop.clone()) else {
            return Err(ShutdownError::Panicked);
        };
        match stop {
            Some(Stop {
                reason: StopReason::StoreFailed(message),
                ..
            }) => Err(ShutdownError::StoreFailed { message }),
            Some(Stop {
                reason: StopReason::StoreFull(message),
                ..
            }) => Err(ShutdownError::StoreFull { message }),
            Some(Stop {
                reason: StopReason::LeaseLost,
                ..
            }) => Err(ShutdownError::LeaseLost),
            Some(Stop {
                reason: StopReason::RuntimeEnded,
                ..
            }) => Err(ShutdownError::RuntimeEnded),
            Some(Stop {
                reason: StopReason::Panicked,
                ..
            }) => Err(ShutdownError::Panicked),
            Some(Stop { unreturned, .. }) if !unreturned.is_empty() => {
                let grace = self.shutdown.borrow().unwrap_or(DROP_GRACE);
                Err(ShutdownError::Unreturned { grace, unreturned })
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.shutdown.send_if_modified(|asked| {
            let is_first = asked.is_none();
            asked.get_or_insert(DROP_GRACE);
            is_first
        });
    }
}

/// Configuration of a controller before it starts.
///
/// ```
/// # use watershed_controller::{Context, Error, Outcome, Reconciler};
/// # struct Pages;
/// # impl Reconciler for Pages {
/// #     type Spec = Page;
/// #     type State = Page;
/// #     async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
/// #         let page = Page(context.spec().0.clone());
/// #         context.set_state(&page).await?;
/// #         Ok(Outcome::default())
/// #     }
/// # }
/// # #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
/// # struct Page(String);
/// # watershed_controller::json_message!(Page, format = 1);
/// use std::time::Duration;
/// use watershed_controller::store::MemoryStore;
/// use watershed_controller::{Controller, KindOptions, Limits};
/// use watershed_controller::clock::SystemClock;
/// use watershed_controller::shutdown::OnLeaseLost;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut options = KindOptions::new("page");
/// options = options.concurrency(4);
/// options = options.resync(Duration::from_secs(3600));
///
/// let controller = Controller::builder()
///     .instance("shop")
///     .store(MemoryStore::new())
///     .clock(SystemClock::new())
///     .limits(Limits::default().concurrency(16))
///     .on_lease_lost(OnLeaseLost::Stop)
///     .kind(options, Pages)
///     .start()
///     .await?;
/// # drop(controller);
/// # Ok(())
/// # }
/// ```
pub struct Builder {
    instance: Arc<str>,
    store: Arc<dyn Store>,
    limits: Limits,
    kinds: Vec<KindOptions>,
    runners: BTreeMap<Kind, Arc<dyn Runner>>,
    types: Vec<(TypeId, Kind)>,
    specs: BTreeMap<Kind, SpecCheck>,
    clock: Option<Arc<dyn Clock>>,
    on_lease_lost: OnLeaseLost,
    observer: Option<Arc<dyn InvocationObserver>>,
    call_timeout: Duration,
    /// Highest epoch that was seen outside of the store.
    seen: Epoch,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = self
            .kinds
            .iter()
            .map(|options| options.kind.as_str())
            .collect::<Vec<_>>();
        f.debug_struct("Builder")
            .field("instance", &self.instance)
            .field("kinds", &kinds)
            .finish_non_exhaustive()
    }
}

impl Builder {
    /// Sets the instance whose catalog is controlled; `default` unless set.
    #[must_use]
    pub fn instance(mut self, instance: impl Into<Arc<str>>) -> Self {
        self.instance = instance.into();
        self
    }

    /// Sets the store of the catalog; memory by default.
    #[must_use]
    pub fn store(mut self, store: impl Store) -> Self {
        self.store = Arc::new(store);
        self
    }

    /// Sets the limits of the controller.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the clock; the machine's clocks by default.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Registers a kind with its reconciler, by name or with [options](crate::KindOptions).
    #[must_use]
    pub fn kind<R: Reconciler>(mut self, options: impl Into<crate::KindOptions>, reconciler: R) -> Self {
        let mut options = options.into().0;
        options.spec_format = R::Spec::FORMAT;
        options.state_format = R::State::FORMAT;
        self.types.push((TypeId::of::<R>(), options.kind.clone()));
        self.specs.insert(options.kind.clone(), |format, bytes| {
            message::decode::<R::Spec>(format, bytes).map(drop)
        });
        self.runners.insert(
            options.kind.clone(),
            Arc::new(TypedRunner::new(reconciler, options.blocking)),
        );
        self.kinds.push(options);
        self
    }

    /// Registers a kind that has no reconciler here: its resources can be created, are not run, and are listed as
    /// unsupported. May be repeated for the same kind.
    #[must_use]
    pub fn passive_kind(mut self, kind: impl Into<Kind>) -> Self {
        let mut options = KindOptions::new(kind);
        options.passive = true;
        self.kinds.push(options);
        self
    }

    /// Sets the observer of invocations; none by default.
    #[must_use]
    pub fn observer(mut self, observer: impl InvocationObserver) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Sets the reaction to a lost lease; by default the controller stops. To campaign, the store must be one that
    /// processes share.
    #[must_use]
    pub fn on_lease_lost(mut self, on_lease_lost: OnLeaseLost) -> Self {
        self.on_lease_lost = on_lease_lost;
        self
    }

    /// Sets the time that a call waits for a leader in another process to accept it; [`DEFAULT_CALL_TIMEOUT`] unless
    /// set. Then the call is withdrawn and refused as [`Refusal::Unattended`](watershed_core::Refusal::Unattended).
    #[must_use]
    pub fn call_timeout(mut self, call_timeout: Duration) -> Self {
        self.call_timeout = call_timeout;
        self
    }

    /// Has the lease taken under an epoch above one that was seen outside of the store, in what former leaders wrote.
    #[must_use]
    pub fn above_epoch(mut self, seen: u64) -> Self {
        self.seen = Epoch(seen);
        self
    }

    /// Opens the catalog, makes the requests of a start, and runs on the current tokio runtime. If another process
    /// holds the instance, this waits or fails, as the store is configured.
    ///
    /// Every resource whose bytes its kind can't read is kept untouched and listed with the error; resources of
    /// kinds that are not registered are listed as unsupported.
    ///
    /// Spans of the controller and its invocations stand inside the span in which this is called.
    ///
    /// # Errors
    /// When a limit is zero or a kind's name can't be one, and when the catalog can't be opened or contradicts itself.
    ///
    /// # Panics
    /// If it is not called within a tokio runtime.
    pub async fn start(self) -> Result<Controller, StartError> {
        self.take().await?.start().await
    }

    /// Takes the lease and reads the catalog as [`start`](Self::start) does, without running anything yet: for set-up
    /// that depends on the catalog.
    ///
    /// # Errors
    /// As [`start`](Self::start), but for a catalog that contradicts itself.
    pub async fn take(self) -> Result<Taken, StartError> {
        self.limits.check(&self.kinds)?;
        let opened = self.store.open_above(&self.instance, self.seen).await;
        let opened = opened.map_err(|source| StartError::Store {
            instance: Arc::clone(&self.instance),
            source,
        })?;
        Ok(Taken {
            builder: self,
            opened,
        })
    }

    /// Joins an instance that processes share: returns at once with working handles, leads as soon as the lease is
    /// free, and follows again whenever the lease is lost.
    ///
    /// # Errors
    /// When a limit is zero or a kind's name can't be one, and when the catalog can't be read, or the store can't be
    /// shared.
    ///
    /// # Panics
    /// If it is not called within a tokio runtime.
    pub async fn join(mut self) -> Result<Controller, StartError> {
        self.on_lease_lost = OnLeaseLost::Campaign;
        self.follow(Role::Candidate).await
    }

    /// Follows an instance that processes share, and sends calls to its leader. Never leads, so it needs no kinds.
    ///
    /// # Errors
    /// As [`join`](Self::join).
    ///
    /// # Panics
    /// If it is not called within a tokio runtime.
    pub async fn attach(self) -> Result<Controller, StartError> {
        self.follow(Role::Follower).await
    }

    async fn follow(self, role: Role) -> Result<Controller, StartError> {
        self.limits.check(&self.kinds)?;
        let failed = |source| StartError::Store {
            instance: Arc::clone(&self.instance),
            source,
        };
        let exchange = self.store.exchange(&self.instance);
        let exchange = exchange.ok_or_else(|| failed(StoreError::NotShared))?;
        let (stored, removed) = exchange.read().await.map_err(failed)?;
        let (member, inbox, ends) = self.member(&stored, Some(removed), role);
        InitialSnapshot::begin(&member.shared, &stored).end().await;
        Ok(ends.run(member, Leadership::Following(inbox)))
    }

    /// Creates a participant, its inbox and the controller's channel ends, from a catalog just read.
    pub(crate) fn member(
        self,
        stored: &Stored,
        last_removal: Option<Revision>,
        role: Role,
    ) -> (Participant, Inbox, Ends) {
        let clock = self.clock.unwrap_or_else(|| Arc::new(SystemClock::new()));
        let mut limits = self.limits;
        if !clock.is_simulated() {
            // Controllers that failed together must not try again together.
            limits
                .jitter
                .get_or_insert_with(|| uuid::Uuid::now_v7().as_u64_pair().1);
        }
        let (commands, commands_in) = mpsc::channel(COMMANDS);
        let (forgotten, forgotten_in) = mpsc::unbounded_channel();
        let (shutdown, shutdown_in) = watch::channel(None);
        let exchange = self.store.exchange(&self.instance);
        let store = exchange.is_some().then_some(self.store);
        let shared = Arc::new(Shared {
            commands,
            forgotten,
            view: View::with_capacity(stored.revision, stored.rows.len()),
            changes: ChangeLog::since(stored.revision, last_removal),
            metrics: Metrics::new(),
            clock: Arc::clone(&clock),
            catalog: RwLock::default(),
            exchange,
            holds: AtomicBool::new(false),
            epoch: AtomicU64::new(0),
            next_call: AtomicU64::new(1),
            kinds: self.types,
            specs: self.specs,
            observer: self.observer,
            wake_up: Notify::new(),
            stopped: OnceLock::new(),
        });
        let member = Participant {
            span: tracing::info_span!("controller", instance = %self.instance),
            instance: self.instance,
            store,
            limits,
            kinds: self.kinds,
            runners: Arc::new(self.runners),
            clock,
            shared,
            on_lease_lost: self.on_lease_lost,
            role,
            call_timeout: self.call_timeout,
        };
        let inbox = Inbox {
            shutdown: shutdown_in,
            forgotten: forgotten_in,
            commands: commands_in,
        };
        (member, inbox, Ends { shutdown })
    }
}

/// An instance whose lease this process holds, but does not run yet. Dropping it gives the lease back.
#[derive(Debug)]
pub struct Taken {
    builder: Builder,
    opened: Opened,
}

impl Taken {
    /// Returns the catalog as it was read.
    pub fn stored(&self) -> &Stored {
        &self.opened.stored
    }

    /// Makes the requests of a start, and runs on the current tokio runtime.
    ///
    /// # Errors
    /// When the catalog contradicts itself.
    ///
    /// # Panics
    /// If it is not called within a tokio runtime.
    pub async fn start(self) -> Result<Controller, StartError> {
        let Opened { stored, catalog } = self.opened;
        let catalog: Arc<dyn Catalog> = Arc::from(catalog);
        let (member, inbox, ends) = self
            .builder
            .member(&stored, catalog.last_removal(), Role::Candidate);
        let instance = Arc::clone(&member.instance);
        let snapshot = InitialSnapshot::begin(&member.shared, &stored);
        let host = member.host(stored, catalog, inbox);
        snapshot.end().await;
        match host {
            Ok(mut host) => {
                host.begin(Vec::new());
                Ok(ends.run(member, Leadership::Leading(host)))
            }
            Err((source, _)) => Err(StartError::Catalog { instance, source }),
        }
    }
}

/// Channel ends that a controller keeps to its participant.
pub(crate) struct Ends {
    shutdown: watch::Sender<Option<Duration>>,
}

impl Ends {
    fn run(self, member: Participant, seat: Leadership) -> Controller {
        let span = member.span.clone();
        let handle = Handle::new(Arc::clone(&member.shared));
        let (end, ended) = watch::channel(None);
        let ending = Ending {
            shared: Arc::clone(&member.shared),
            end,
        };
        let run = async move {
            let stop = member.serve(seat).await;
            ending.end.send_replace(Some(stop));
            // The last share of the reconcilers, whose drops are not ours.
            if let Err(message) = panics::caught(|| drop(member)) {
                tracing::error!("a reconciler panicked when it was dropped: {message}");
            }
        };
        tasks::spawn(run.instrument(span));
        Controller {
            handle,
            shutdown: self.shutdown,
            ended,
        }
    }
}

/// Guard that reports the end of a controller to everybody who waits for it, even if its task panics or is dropped.
struct Ending {
    shared: Arc<Shared>,
    end: watch::Sender<Option<Stop>>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        if self.end.borrow().is_some() {
            return;
        }
        let reason = match std::thread::panicking() {
            true => StopReason::Panicked,
            // Nothing else drops the task.
            false => StopReason::RuntimeEnded,
        };
        self.shared.stop_without_loop(reason.clone());
        self.end.send_replace(Some(Stop {
            reason,
            unreturned: Vec::new(),
        }));
    }
}

#[cfg(test)]
mod tests {
    use watershed_core::Timestamp;

    use super::*;
    use crate::clock::TokioClock;

    fn jitter(builder: Builder) -> Option<u64> {
        let (member, _, _) = builder.member(&Stored::default(), None, Role::Candidate);
        member.limits.jitter
    }

    #[tokio::test]
    async fn retries_are_spread_by_a_number_of_each_controller_unless_the_clock_is_simulated() {
        let (one, other) = (jitter(Controller::builder()), jitter(Controller::builder()));
        assert!(one.is_some() && one != other);
        let simulated = Controller::builder().clock(TokioClock::starting_at(Timestamp(0)));
        assert_eq!(jitter(simulated), None);
        let chosen = Limits::default().jitter(7);
        assert_eq!(jitter(Controller::builder().limits(chosen)), Some(7));
    }
}
