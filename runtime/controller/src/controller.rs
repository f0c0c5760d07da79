//! Starting and stopping a controller.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tracing::Instrument;
use watershed_core::{Core, Error, Kind, KindOptions, Limits, StopReason, Stored};

use crate::call::OpenCalls;
use crate::clock::{Clock, SystemClock};
use crate::committer;
use crate::error::{ShutdownError, StartError};
use crate::handle::{Handle, Shared};
use crate::host::{Host, Inbox, Stop};
use crate::message::Message;
use crate::metrics::Metrics;
use crate::reconciler::Reconciler;
use crate::runner::{Runner, Typed, UNREADABLE};
use crate::store::{Catalog, MemoryStore, Opened, Store};
use crate::task;
use crate::tenure;
use crate::view::View;
use crate::watch::Watching;
use crate::workers::Workers;

/// Calls on their way to the loop: enough to fill its next turn, little enough to push back on a storm.
const COMMANDS: usize = 1_024;

/// How long invocations get to return when a controller is dropped without a [`Controller::shutdown`].
pub const DROP_GRACE: Duration = Duration::from_secs(10);

/// A running controller. It ends when this is dropped, or in order by [`shutdown`](Self::shutdown).
///
/// Everything else is done through the [`Handle`] that it derefs to, of which any number can be cloned.
#[derive(Debug)]
pub struct Controller {
    handle: Handle,
    shutdown: watch::Sender<Option<Duration>>,
    ended: watch::Receiver<Option<Stop>>,
}

impl Controller {
    /// Begins to describe a controller.
    pub fn builder() -> Builder {
        Builder {
            instance: Arc::from("default"),
            store: Box::new(MemoryStore::new()),
            limits: Limits::default(),
            kinds: Vec::new(),
            runners: BTreeMap::new(),
            clock: None,
        }
    }

    /// A handle for other tasks. It does not keep the controller running.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Stops in order: takes no further calls, cancels what runs, waits up to `grace` for it, commits, and gives the
    /// lease back. Asked again meanwhile, the grace is over at once.
    ///
    /// Reads go on after it. Cancel-safe: the shutdown goes on without the future.
    pub async fn shutdown(&self, grace: Duration) -> Result<(), ShutdownError> {
        self.shutdown.send_replace(Some(grace));
        self.run().await
    }

    /// Waits until the controller has stopped, for whatever reason: it was shut down, its store failed for too long,
    /// or another controller took the instance ([`ShutdownError::LeaseLost`]). None of these ends the process; after
    /// a lost lease another controller may be started, which stands by until the lease is free.
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
                reason: StopReason::LeaseLost,
                ..
            }) => Err(ShutdownError::LeaseLost),
            Some(Stop { unreturned, .. }) if !unreturned.is_empty() => {
                let grace = self.shutdown.borrow().unwrap_or(DROP_GRACE);
                Err(ShutdownError::Unreturned { grace, unreturned })
            }
            _ => Ok(()),
        }
    }
}

impl Deref for Controller {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.handle
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

/// Describes a controller before it starts.
pub struct Builder {
    instance: Arc<str>,
    store: Box<dyn Store>,
    limits: Limits,
    kinds: Vec<KindOptions>,
    runners: BTreeMap<Kind, Arc<dyn Runner>>,
    clock: Option<Arc<dyn Clock>>,
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
    /// The instance whose catalog is controlled; `default` unless set.
    #[must_use]
    pub fn instance(mut self, instance: impl Into<Arc<str>>) -> Self {
        self.instance = instance.into();
        self
    }

    /// Where the catalog is kept; in memory unless set.
    #[must_use]
    pub fn store(mut self, store: impl Store) -> Self {
        self.store = Box::new(store);
        self
    }

    /// The bounds of the controller.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Where the time comes from; the machine's clocks unless set.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Registers a kind. The formats in `options` are set to those of the reconciler's messages.
    #[must_use]
    pub fn kind<R: Reconciler>(mut self, mut options: KindOptions, reconciler: R) -> Self {
        options.spec_format = R::Spec::FORMAT;
        options.state_format = R::State::FORMAT;
        self.runners
            .insert(options.kind.clone(), Arc::new(Typed::new(reconciler)));
        self.kinds.push(options);
        self
    }

    /// Opens the catalog, asks for what a start asks for, and runs on the current tokio runtime.
    ///
    /// Every resource whose bytes its kind can't read is kept untouched and listed with the error; resources of
    /// kinds that are not registered are listed as unsupported.
    ///
    /// Spans of the controller and its invocations stand inside the span in which this is called.
    ///
    /// # Panics
    /// If it is not called within a tokio runtime.
    pub async fn start(self) -> Result<Controller, StartError> {
        let opened = self.store.open(&self.instance).await;
        let Opened { mut stored, catalog } = opened.map_err(|source| StartError::Store {
            instance: Arc::clone(&self.instance),
            source,
        })?;
        mark_unreadable(&mut stored, &self.runners);
        let revision = stored.revision;
        let view = View::of(&stored);
        let clock = self.clock.unwrap_or_else(|| Arc::new(SystemClock::new()));
        let (core, effects) = Core::open(clock.now(), self.limits, self.kinds, stored).map_err(|source| {
            StartError::Catalog {
                instance: Arc::clone(&self.instance),
                source,
            }
        })?;
        let span = tracing::info_span!("controller", instance = %self.instance);
        let catalog: Arc<dyn Catalog> = Arc::from(catalog);

        let (commands, commands_in) = mpsc::channel(COMMANDS);
        let (signals, signals_in) = mpsc::unbounded_channel();
        let (shutdown, shutdown_in) = watch::channel(None);
        let (commits, commits_in) = mpsc::channel(1);
        let shared = Arc::new(Shared {
            commands,
            signals: signals.clone(),
            view,
            watching: Watching::since(revision, catalog.last_removal()),
            metrics: Metrics::new(),
            clock: Arc::clone(&clock),
            catalog: Arc::clone(&catalog),
            next_call: AtomicU64::new(1),
            stopped: OnceLock::new(),
        });
        let commit = committer::run(commits_in, signals.clone());
        let mut tasks = vec![task::spawn(commit.instrument(span.clone())).abort_handle()];
        let lease = catalog.lease();
        if lease.is_some() {
            let keep = tenure::keep(catalog, signals).instrument(span.clone());
            tasks.push(task::spawn(keep).abort_handle());
        }
        let mut host = Host {
            core,
            clock,
            shared: Arc::clone(&shared),
            runners: self.runners,
            commits,
            committed: VecDeque::new(),
            inbox: Inbox {
                shutdown: shutdown_in,
                signals: signals_in,
                commands: commands_in,
            },
            calls: OpenCalls::default(),
            running: HashMap::default(),
            starting: Vec::new(),
            workers: Workers::spawn(span.clone()),
            timer: None,
            lease,
            tasks,
            effects,
        };
        // Readers see the catalog as it was found before the first invocation starts.
        host.begin();
        let (end, ended) = watch::channel(None);
        let run = async move {
            let stop = host.run().await;
            let _ = end.send(Some(stop));
        };
        task::spawn(run.instrument(span));
        Ok(Controller {
            handle: Handle::new(shared),
            shutdown,
            ended,
        })
    }
}

/// Finds the rows whose bytes can't be read here; formats that are known are read by their kinds.
fn mark_unreadable(stored: &mut Stored, runners: &BTreeMap<Kind, Arc<dyn Runner>>) {
    for entry in &mut stored.rows {
        let Some(runner) = runners.get(&entry.row.kind) else {
            continue;
        };
        if entry.unreadable.is_none() {
            let error = runner.check(&entry.row).err();
            entry.unreadable = error.map(|error| Error::permanent(UNREADABLE, error.to_string()));
        }
    }
}
