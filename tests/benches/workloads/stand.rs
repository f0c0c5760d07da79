//! Services of a controller, on a folder that outlives it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use watershed_controller::store::SqliteStore;
use watershed_controller::{Batch, Controller, Limits, Resource, Select};
use watershed_core::Edit;
use watershed_proto::{Program, RestartPolicy, Rollout, ServiceSpec};
use watershed_shim::protocol::Lifetime;
use watershed_workloads::backend::process::LocalProcesses;
use watershed_workloads::replica::{self, ReplicaRecord};
use watershed_workloads::service::{self, ServiceRecord};
use watershed_workloads::{Service, Workloads};

/// Longer than anything takes.
const LONG: Duration = Duration::from_secs(600);
/// The pause between two looks at what has become ready.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A controller with services.
pub(super) struct Stand {
    pub(super) controller: Controller,
    workloads: Workloads,
    pub(super) folder: TempDir,
}

impl Stand {
    pub(super) async fn new() -> Self {
        Self::on(tempfile::tempdir().unwrap()).await
    }

    async fn on(folder: TempDir) -> Self {
        let state = folder.path().join("state");
        std::fs::create_dir_all(&state).unwrap();
        let processes = LocalProcesses {
            program: env!("CARGO_BIN_EXE_watershed-under-test").into(),
            arguments: vec!["shim".into(), state.clone().into()],
            state_folder: state.clone(),
            lifetime: Lifetime::Keep,
        };
        let workloads = Workloads::builder(folder.path(), state.join("programs"))
            .backend(processes)
            .build();
        let builder = Controller::builder()
            .store(SqliteStore::open(folder.path().join("catalog.db")).await.unwrap())
            .limits(Limits::default().concurrency(4 + workloads.concurrency()));
        let controller = workloads.register(builder).start().await.unwrap();
        workloads.watch(controller.handle());
        Self {
            controller,
            workloads,
            folder,
        }
    }

    /// Ends this controller, whose processes go on, and starts another one.
    pub(super) async fn restart(self) -> Self {
        self.workloads.leave();
        self.controller.shutdown(Duration::from_secs(60)).await.unwrap();
        Self::on(self.folder).await
    }

    /// Stops all processes.
    pub(super) async fn stop(self) {
        self.workloads.leave();
        let handle = self.controller.handle();
        self.controller.shutdown(Duration::from_secs(60)).await.unwrap();
        self.workloads.stop(&handle, |_| true).await;
    }

    /// Declares services in one batch.
    pub(super) async fn declare(&self, services: impl Iterator<Item = (String, ServiceSpec)>) {
        let new = |(name, spec): (String, ServiceSpec)| {
            Edit::create(Resource::declare(service::KIND, name.as_str(), &Service(spec)).unwrap())
        };
        let batch = Batch {
            edits: services.map(new).collect(),
        };
        self.controller.edit(batch).await.unwrap();
    }

    /// Waits until so many services are ready. Returns the time since `since`.
    pub(super) async fn until_ready(&self, services: usize, since: Instant) -> Duration {
        loop {
            let all = self.controller.list(Select::kind(service::KIND)).resources;
            let is_ready = |one: &&watershed_controller::Resource| {
                let row = &one.row;
                let is_settled = row.unready.is_none() && row.error.is_none() && row.state.is_some();
                // The state is there before what its run has come to.
                is_settled
                    && one
                        .state::<ServiceRecord>()
                        .unwrap()
                        .is_some_and(|record| record.ready > 0)
            };
            if all.iter().filter(is_ready).count() == services {
                return since.elapsed();
            }
            assert!(since.elapsed() < LONG, "they become ready");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    pub(super) async fn idle(&self) {
        self.controller.wait_until_idle(LONG).await.unwrap();
    }

    /// The records of all replicas.
    pub(super) fn replicas(&self) -> Vec<ReplicaRecord> {
        let all = self.controller.list(Select::kind(replica::KIND).with_hidden());
        let all = all.resources.into_iter();
        all.filter_map(|one| one.state::<ReplicaRecord>().unwrap())
            .collect()
    }

    /// The pids of all replicas.
    pub(super) fn pids(&self) -> BTreeSet<i32> {
        let replicas = self.replicas();
        let ids = replicas.iter().filter_map(|one| one.backend_id.as_ref());
        ids.map(|id| id.parse().unwrap()).collect()
    }

    pub(super) fn record(&self, name: &str) -> ServiceRecord {
        let found = self.controller.get(service::key(name)).unwrap();
        found.state().unwrap().unwrap_or_default()
    }
}

/// A service of one process that does nothing.
pub(super) fn sleeper() -> ServiceSpec {
    ServiceSpec {
        program: Some(Program {
            command: COMMAND.map(str::to_owned).to_vec(),
            ..Program::default()
        }),
        replicas: 1,
        restart: Some(RestartPolicy {
            policy: "always".into(),
            base_ms: 0,
            cap_ms: 0,
            attempts: 5,
            stable_window_ms: 600_000,
            success_codes: vec![0],
            no_retry_codes: vec![126, 127],
        }),
        rollout: Some(Rollout {
            strategy: "rolling".into(),
            surge: 10,
            unavailable: 0,
            deadline_ms: 600_000,
            on_deadline: "fail".into(),
        }),
        ..ServiceSpec::default()
    }
}

/// The program of all services.
pub(super) const COMMAND: [&str; 2] = ["sleep", "1000000"];
