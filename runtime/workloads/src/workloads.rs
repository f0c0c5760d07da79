//! Workloads of one project: their kinds, and the watcher of their processes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio_util::sync::CancellationToken;
use watershed_controller::resource::Row;
use watershed_controller::{Builder, Handle, Resource, Select, Uid};

use crate::backend::Connect;
use crate::backend::{Backend, Observation, Stop, Then};
use crate::backends::Backends;
use crate::cancels::Cancels;
use crate::job::{self, JobReconciler};
use crate::message::Job;
use crate::observations::{BackendStatus, Observations, living};
use crate::ports::PortPool;
use crate::probe::{Asks, Network, Probes};
use crate::project::Project;
use crate::render::{Render, Verbatim};
use crate::replica::{self, ReplicaReconciler, ReplicaSpec};
use crate::service::{self, ServiceReconciler};
use crate::settings::Stopping;
use crate::shared::{Looks, Made, Scans, Shared};
use crate::watcher::{Watcher, list};

/// Interval between two scans (rule W2).
pub const SCAN_INTERVAL: Duration = Duration::from_secs(10);
/// Default number of jobs that run at once.
pub const JOBS_AT_ONCE: usize = 16;
/// First and longest interval between two checks of processes that are being stopped.
const LOOK_EVERY: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(200)];

/// The workloads of one project. Clones share them.
#[derive(Clone)]
pub struct Workloads {
    shared: Arc<Shared>,
    jobs_at_once: usize,
}

/// Builder of a project's workloads.
pub struct WorkloadsBuilder {
    root: PathBuf,
    output: PathBuf,
    backends: Vec<Box<dyn Connect>>,
    is_confined: bool,
    render: Arc<dyn Render>,
    asks: Arc<dyn Asks>,
    interval: Duration,
    jobs_at_once: usize,
    made: Arc<Made>,
    chooses: Arc<dyn Fn(Uid) -> bool + Send + Sync>,
    jitter: bool,
}

impl WorkloadsBuilder {
    /// Adds a backend; a project has at most one for local programs and one for containers.
    #[must_use]
    pub fn backend(mut self, backend: impl Connect + 'static) -> Self {
        self.backends.push(Box::new(backend));
        self
    }

    /// Disables all starts, checks and stops, for untrusted projects.
    #[must_use]
    pub fn confined(mut self, is_confined: bool) -> Self {
        self.is_confined = is_confined;
        self
    }

    /// Sets the template engine; by default, texts are taken verbatim.
    #[must_use]
    pub fn render(mut self, render: impl Render + 'static) -> Self {
        self.render = Arc::new(render);
        self
    }

    /// Sets the prober of checks; by default, the network and real commands.
    #[must_use]
    pub fn asks(mut self, asks: impl Asks + 'static) -> Self {
        self.asks = Arc::new(asks);
        self
    }

    /// Sets the interval between two scans: by default [`SCAN_INTERVAL`]; zero for none.
    #[must_use]
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Sets the most jobs that run at once: by default [`JOBS_AT_ONCE`].
    #[must_use]
    pub fn jobs_at_once(mut self, most: usize) -> Self {
        self.jobs_at_once = most.max(1);
        self
    }

    /// Sets the function that identifies a resource's last build or run, on which referring jobs depend. By default,
    /// and for kinds where it returns none, each change of the state counts.
    #[must_use]
    pub fn made(mut self, made: impl Fn(&Row) -> Option<Vec<u8>> + Send + Sync + 'static) -> Self {
        self.made = Arc::new(made);
        self
    }

    /// Sets the function that selects the jobs and services to handle; by default all. Others are left as they are.
    #[must_use]
    pub fn chooses(mut self, chooses: impl Fn(Uid) -> bool + Send + Sync + 'static) -> Self {
        self.chooses = Arc::new(chooses);
        self
    }

    /// Removes the jitter of delays, for tests.
    #[must_use]
    pub fn without_jitter(mut self) -> Self {
        self.jitter = false;
        self
    }

    /// Creates the workloads from the settings of the builder.
    pub fn build(self) -> Workloads {
        let shared = Shared {
            looks: Looks::default(),
            probes: Probes::new(self.asks, self.output.clone()),
            project: Project {
                root: self.root,
                output: self.output,
            },
            backends: Backends::new(self.backends, self.is_confined),
            observations: Observations::default(),
            ports: PortPool::default(),
            cancels: Cancels::default(),
            render: self.render,
            made: self.made,
            chooses: self.chooses,
            leaving: CancellationToken::new(),
            scans: Scans::default(),
            interval: self.interval,
            jitter: self.jitter,
        };
        Workloads {
            shared: Arc::new(shared),
            jobs_at_once: self.jobs_at_once,
        }
    }
}

/// Orders stops in one backend. Unknown starts are ignored, and a backend that can't be reached kills its processes by
/// itself. Returns true if it answered.
async fn stop_each(backend: &dyn Backend, orders: &[Stop]) -> bool {
    for order in orders {
        let stopped = backend.stop(order.clone()).await;
        if stopped.is_err_and(|error| error.is_transient()) {
            return false;
        }
    }
    true
}

impl Workloads {
    /// Returns a builder for a project: programs start below `root`, and write to files below `output`.
    pub fn builder(root: impl Into<PathBuf>, output: impl Into<PathBuf>) -> WorkloadsBuilder {
        WorkloadsBuilder {
            root: root.into(),
            output: output.into(),
            backends: Vec::new(),
            is_confined: false,
            render: Arc::new(Verbatim),
            asks: Arc::new(Network),
            interval: SCAN_INTERVAL,
            jobs_at_once: JOBS_AT_ONCE,
            made: Arc::new(|_| None),
            chooses: Arc::new(|_| true),
            jitter: true,
        }
    }

    /// Returns the concurrent invocations that the kinds may need, by which the controller's limit should grow so that
    /// no other work is delayed.
    pub fn concurrency(&self) -> usize {
        replica::AT_ONCE + self.jobs_at_once
    }

    /// Registers the kinds with a controller.
    #[must_use]
    pub fn register(&self, builder: Builder) -> Builder {
        let shared = || Arc::clone(&self.shared);
        builder
            .kind(
                job::options(self.jobs_at_once),
                JobReconciler { shared: shared() },
            )
            .kind(service::options(), ServiceReconciler { shared: shared() })
            .kind(replica::options(), ReplicaReconciler { shared: shared() })
    }

    /// Starts watching processes, once the controller runs. Reconcilers wait for the watcher.
    pub fn watch(&self, handle: Handle) {
        let _ = self.shared.probes.handle.set(handle.clone());
        let watcher = Watcher {
            shared: Arc::clone(&self.shared),
            handle,
        };
        tokio::spawn(watcher.run());
    }

    /// Returns the last observations of processes that are alive or being started.
    pub fn running(&self) -> Vec<Observation> {
        self.shared.observations.alive()
    }

    /// Returns the status of each backend as of its last listing.
    pub fn status(&self) -> Vec<BackendStatus> {
        self.shared.observations.status()
    }

    /// Lists all processes, and returns once each difference was passed to its reconciler; at once if the program is
    /// leaving. Requires [`watch`](Self::watch) before.
    pub async fn scan(&self) {
        let scans = &self.shared.scans;
        let mut made = scans.made.subscribe();
        let mut number = 0;
        scans.asked.send_modify(|asked| {
            *asked += 1;
            number = *asked;
        });
        let made = made.wait_for(|made| *made >= number);
        // The sender lives as long as this.
        let _ = self.shared.leaving.run_until_cancelled(made).await;
    }

    /// Returns the state that all kinds share.
    #[cfg(test)]
    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Returns the sizes of in-memory state: observations, ports and probes.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> [usize; 3] {
        let shared = &self.shared;
        [shared.observations.len(), shared.ports.len(), shared.probes.len()]
    }

    /// Prevents further starts, since the program is leaving. Processes run on.
    pub fn leave(&self) {
        self.shared.leaving.cancel();
    }

    /// Stops the processes of workloads whose `on_server_stop` satisfies `is_stopped`, and waits for their ends, at
    /// most for the grace periods. The next program restarts them, uncounted.
    ///
    /// To be called after [`leave`](Self::leave), when the controller has stopped.
    pub async fn stop(&self, handle: &Handle, is_stopped: impl Fn(&str) -> bool) {
        let stops = self.stop_settings(handle);
        let has_stops = stops.values().any(|(_, said)| is_stopped(said));
        let backends = self.backends_at_end(handle, has_stops).await;
        let mut longest = 0;
        let mut orders = Vec::new();
        let mut stopped = Vec::new();
        for uid in living(&self.shared.observations) {
            let (stopping, on_server_stop) = stops.get(&uid).cloned().unwrap_or_default();
            let Some(observed) = self
                .shared
                .observations
                .peek(&uid)
                .filter(|_| is_stopped(&on_server_stop))
            else {
                continue;
            };
            longest = longest.max(stopping.grace_ms);
            let order = Stop {
                id: observed.id.clone(),
                signal: stopping.signal,
                grace_ms: stopping.grace_ms,
                then: Then::Keep,
            };
            stopped.push(observed.id);
            orders.push(order);
        }
        // One that does not answer holds up no other.
        let answers = join_all(
            backends
                .iter()
                .map(|backend| stop_each(backend.as_ref(), &orders)),
        )
        .await;
        let answering = || {
            let both = backends.iter().zip(&answers);
            both.filter(|(_, answers)| **answers).map(|(backend, _)| backend)
        };
        // Stops of what was deleted, which nobody carries out after this program.
        let handed_over = || backends.iter().filter_map(|backend| backend.stops_within()).max();
        let longest = Duration::from_millis(longest).max(handed_over().unwrap_or_default());
        let deadline = tokio::time::Instant::now() + longest + Duration::from_secs(5);
        let mut pause = LOOK_EVERY[0];
        loop {
            let mut alive = Vec::new();
            if !stopped.is_empty() {
                let listed = join_all(answering().map(|backend| backend.list())).await;
                alive.extend(listed.into_iter().flat_map(Result::unwrap_or_default));
            }
            alive.retain(|one| one.phase.is_alive());
            stopped.retain(|id| alive.iter().any(|one| one.id == *id));
            let is_over = stopped.is_empty() && handed_over().is_none();
            if is_over || tokio::time::Instant::now() >= deadline {
                return;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LOOK_EVERY[1]);
        }
    }

    /// Returns the backends whose processes are to be stopped. Lists those that were never listed, since a program that
    /// leaves before its first scan knows nothing of processes that the one before has left.
    async fn backends_at_end(&self, handle: &Handle, has_stops: bool) -> Vec<Arc<dyn Backend>> {
        let (shared, mut backends) = (&self.shared, self.shared.backends.used());
        if has_stops && backends.is_empty() {
            // No reconciler came to connect them. One that can't be reached runs nothing that could be stopped.
            let connected = handle.epoch().map(|epoch| shared.backends.all(epoch.0));
            backends = connected.and_then(Result::ok).unwrap_or_default();
        }
        let listed = shared.observations.status();
        let is_listed = |name| listed.iter().any(|one| one.name == name && one.is_listed);
        let unlisted = backends.iter().filter(|one| has_stops && !is_listed(one.name()));
        let began = shared.observations.clock();
        for (name, found) in join_all(unlisted.map(list)).await {
            match found {
                Ok(found) => drop(shared.observations.apply(found, began, false)),
                Err(error) => tracing::warn!(%error, backend = name, "processes can't be listed"),
            }
        }
        backends
    }

    /// Returns the stop settings of all workloads, by uid.
    fn stop_settings(&self, handle: &Handle) -> BTreeMap<String, (Stopping, String)> {
        let mut found = BTreeMap::new();
        let of_kind = |kind: &str| {
            handle
                .list(Select::kind(kind).with_hidden().with_deleted())
                .resources
        };
        for resource in [replica::KIND, job::KIND].into_iter().flat_map(of_kind) {
            let row = &resource.row;
            let settings = match row.kind.as_str() {
                replica::KIND => Resource::spec_of::<ReplicaSpec>(row)
                    .map(|spec| (spec.stop, spec.on_server_stop))
                    .ok(),
                job::KIND => Resource::spec_of::<Job>(row)
                    .map(|spec| (spec.0.stop.as_ref().into(), spec.0.on_server_stop))
                    .ok(),
                _ => None,
            };
            found.extend(settings.map(|settings| (row.uid.to_string(), settings)));
        }
        found
    }
}
