//! State shared by all reconcilers of one project.

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

/// A function that returns the identity of a resource's last build or run; none if it knows no better one than the
/// state version.
pub(crate) type Made = dyn Fn(&Row) -> Option<Vec<u8>> + Send + Sync;

/// The state shared by all reconcilers of one project.
pub(crate) struct Shared {
    pub(crate) project: Project,
    pub(crate) backends: Backends,
    pub(crate) observations: Observations,
    pub(crate) probes: Probes,
    pub(crate) ports: PortPool,
    pub(crate) cancels: Cancels,
    pub(crate) render: Arc<dyn Render>,
    /// Function for the identity of a resource's last build or run, on which jobs depend.
    pub(crate) made: Arc<Made>,
    /// Function that returns true if this program handles a job or service.
    pub(crate) chooses: Arc<dyn Fn(Uid) -> bool + Send + Sync>,
    /// Cancelled when the program is leaving: nothing is started any more, and running processes are left alone.
    pub(crate) leaving: CancellationToken,
    /// Requested scans.
    pub(crate) scans: Scans,
    pub(crate) looks: Looks,
    /// Interval between two scans; zero for none.
    pub(crate) interval: Duration,
    /// True if delays get a random jitter (rule W5); false under test.
    pub(crate) jitter: bool,
}

/// Scans requested in addition to periodic ones: the number of the last request, and of the last request served.
#[derive(Default)]
pub(crate) struct Scans {
    pub(crate) asked: watch::Sender<u64>,
    pub(crate) made: watch::Sender<u64>,
}

/// Times of this process's last pass over each service.
#[derive(Default)]
pub(crate) struct Looks(Mutex<BTreeMap<Uid, Timestamp>>);

impl Looks {
    /// Records a pass, and returns the time of the previous one; none if this process has made none.
    pub(crate) fn note(&self, service: Uid, now: Timestamp) -> Option<Timestamp> {
        self.0.lock().unpoisoned().insert(service, now)
    }

    /// Forgets a deleted service.
    pub(crate) fn forget(&self, service: Uid) {
        self.0.lock().unpoisoned().remove(&service);
    }
}

/// Returns the options that all kinds with processes share.
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
    /// Returns true if a workload is passed over: the program is leaving, or does not handle the workload.
    pub(crate) fn passes_over(&self, uid: Uid) -> bool {
        self.leaving.is_cancelled() || !(self.chooses)(uid)
    }

    /// Waits until a backend was listed once. Returns false if the program is leaving or the invocation is cancelled.
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

    /// Returns a message if a program's memory limit exceeds the available memory (rule W7). Checked before each start;
    /// none for a program without a limit.
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

/// Stores a record and waits until it is durable.
pub(crate) async fn store<R: Reconciler>(context: &Context<R>, record: &R::State) -> Result<(), Error> {
    let stored = async {
        context.set_state(record).await?;
        context.committed().await
    };
    let stored = stored.await;
    stored.map_err(|error| Error::transient("state", error.to_string()))
}
