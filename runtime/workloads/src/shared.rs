//! The part that all reconcilers of one project share.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use watershed_controller::kind::{Nudging, Parents};
use watershed_controller::{Context, Error, KindOptions, Reconciler, RetryPolicy};
use watershed_core::{Row, Timestamp, Uid};
use watershed_locks::Unpoisoned;

use crate::backend::{self, Backend};
use crate::backends::Backends;
use crate::cancels::Cancels;
use crate::observations::Observations;
use crate::ports::PortPool;
use crate::probe::Probes;
use crate::program::Program;
use crate::project::Project;
use crate::render::Render;

/// Tells what a resource has made.
pub(crate) type Made = dyn Fn(&Row) -> Option<Vec<u8>> + Send + Sync;

/// The part that all reconcilers of one project share.
pub(crate) struct Shared {
    pub(crate) project: Project,
    pub(crate) backends: Backends,
    pub(crate) observations: Observations,
    pub(crate) probes: Probes,
    pub(crate) ports: PortPool,
    pub(crate) cancels: Cancels,
    pub(crate) render: Arc<dyn Render>,
    /// Tells what a resource has made, for jobs that refer to it.
    pub(crate) made: Arc<Made>,
    /// Tells whether this program does anything for a job or service.
    pub(crate) chooses: Arc<dyn Fn(Uid) -> bool + Send + Sync>,
    /// Set when the program is about to end: nothing is started any more, and what runs is left to it.
    pub(crate) leaving: CancellationToken,
    /// Scans that were asked for.
    pub(crate) scans: Scans,
    pub(crate) looks: Looks,
    /// The time between two scans; zero for none.
    pub(crate) interval: Duration,
    /// True if waits are spread by chance (rule W5); not under test.
    pub(crate) jitter: bool,
}

/// Scans that somebody asks for, beside those at each interval: their number so far, and the last one that was made.
#[derive(Default)]
pub(crate) struct Scans {
    pub(crate) asked: watch::Sender<u64>,
    pub(crate) made: watch::Sender<u64>,
}

/// The last look of this process at each service.
#[derive(Default)]
pub(crate) struct Looks(Mutex<BTreeMap<Uid, Timestamp>>);

impl Looks {
    /// Notes a look, and returns the time of the one before; none if this process has not looked yet.
    pub(crate) fn note(&self, service: Uid, now: Timestamp) -> Option<Timestamp> {
        self.0.lock().unpoisoned().insert(service, now)
    }

    /// Forgets a service that is gone.
    pub(crate) fn forget(&self, service: Uid) {
        self.0.lock().unpoisoned().remove(&service);
    }
}

/// Returns the options that kinds with processes have in common.
pub(crate) fn options(kind: &str) -> KindOptions {
    KindOptions::new(kind)
        .parents(Parents::Changed)
        .nudging(Nudging {
            interval: Duration::from_millis(100),
            longest_wait: Duration::from_secs(1),
        })
        // The waits are those of the record in the resource's state: the core only waits for them.
        .retry(RetryPolicy::Backoff {
            base: Duration::from_secs(1),
            cap: Duration::from_secs(60),
            attempts: u32::MAX,
            reset_after: Duration::ZERO,
        })
}

impl Shared {
    /// Returns true if nothing is to be done for a workload: the program is about to end, or it is for others.
    pub(crate) fn passes_over(&self, uid: Uid) -> bool {
        self.leaving.is_cancelled() || !(self.chooses)(uid)
    }

    /// Waits until all processes of a backend were listed once. Returns false if there is no need to wait: the program is about to end,
    /// or the invocation is.
    ///
    /// # Errors
    /// When that takes too long: the backend can't be reached.
    pub(crate) async fn listed<R: Reconciler>(
        &self,
        context: &Context<R>,
        backend: &'static str,
    ) -> Result<bool, backend::Error> {
        let listed = self.observations.listed(backend, &self.leaving);
        let listed = context.cancellation().run_until_cancelled(listed).await;
        listed.unwrap_or(Ok(false))
    }

    /// Says that there is no room for a program: its limit of memory is above what is free (rule W7). Looked at before
    /// each start; of a program without a limit nothing is known.
    pub(crate) fn lack_of_room(program: &Program, backend: &dyn Backend) -> Option<String> {
        let wanted = program.memory;
        let free = backend.free_memory().filter(|free| *free < wanted)?;
        let mib = |bytes: u64| bytes >> 20;
        Some(format!(
            "it may use {} MiB of memory, and {} MiB are free",
            mib(wanted),
            mib(free)
        ))
    }

    /// Returns a random number for the jitter of a wait.
    pub(crate) fn draw(&self) -> u32 {
        if !self.jitter {
            return 0;
        }
        // The keys of a new hasher are random, which is all that is needed.
        let random = RandomState::new().build_hasher().finish();
        u32::try_from(random & u64::from(u32::MAX)).unwrap_or(0)
    }
}

/// Stores a record, and waits until it is durable.
pub(crate) async fn store<R: Reconciler>(context: &Context<R>, record: &R::State) -> Result<(), Error> {
    let stored = async {
        context.set_state(record).await?;
        context.committed().await
    };
    let stored = stored.await;
    stored.map_err(|error| Error::transient("state", error.to_string()))
}
