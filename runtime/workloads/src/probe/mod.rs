//! Probes of checks, sent on schedule (rule W10).
//!
//! Each check of each replica has a task, so a slow one delays no other. A task counts; what its count leads to is left
//! for the reconciler, which is nudged.

mod ask;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use watershed_controller::resource::Target;
use watershed_controller::{Handle, Uid};
use watershed_core::Timestamp;
use watershed_locks::Unpoisoned;

pub(crate) use self::ask::Network;

use crate::backend::{Backend, BoxFuture, StartId};
use crate::policy::health::{Action, Failures, Probe, Probed, count, next_probe};
use crate::policy::readiness::{Checked, Stretch};
use crate::program::Ports;
use crate::results::{CheckResult, ResultFile, ResultWriter};
use crate::settings::{CheckSpec, Question};

/// The process to probe, with its ports and environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeTarget {
    /// Start id of the process.
    pub start: StartId,
    /// Time at which the start was ordered.
    pub started: Timestamp,
    /// Ports of the replica, by name.
    pub ports: Ports,
    /// Environment of the process, for checks by commands.
    pub environment: Vec<(String, String)>,
    /// Working directory of the process.
    pub cwd: PathBuf,
}

/// A prober, which sends single probes. The caller determines which probe and how long it may take (rule W18).
pub trait Asks: Send + Sync {
    /// Sends one probe. Dropping the future cancels it.
    fn ask<'a>(&'a self, question: &'a Question, target: &'a ProbeTarget) -> BoxFuture<'a, Probed>;

    /// Returns the wall-clock time.
    fn now(&self) -> Timestamp;
}

/// The running checks of a project.
pub(crate) struct Probes {
    asks: Arc<dyn Asks>,
    /// Handle for nudging reconcilers; set once the controller runs.
    pub(crate) handle: OnceLock<Handle>,
    /// Output folder of programs, which also holds the results of checks.
    output: PathBuf,
    writer: OnceLock<ResultWriter>,
    running: Mutex<BTreeMap<Uid, Watched>>,
}

/// The running checks of one replica's process.
struct Watched {
    target: ProbeTarget,
    checks: Vec<CheckSpec>,
    results: Arc<Mutex<Results>>,
    kept: Arc<ResultFile>,
    tasks: Vec<AbortHandle>,
}

/// Results of one replica's checks.
#[derive(Debug, Default)]
struct Results {
    stretches: Vec<Stretch>,
    /// Action that is due, with the index of its check; none if no action is.
    due: Option<(usize, Action)>,
    /// True if the replica has been ready since its start.
    was_ready: bool,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
        self.kept.close();
    }
}

impl Probes {
    pub(crate) fn new(asks: Arc<dyn Asks>, output: PathBuf) -> Self {
        Self {
            asks,
            handle: OnceLock::new(),
            output,
            writer: OnceLock::new(),
            running: Mutex::default(),
        }
    }

    /// Returns the wall-clock time.
    pub(crate) fn now(&self) -> Timestamp {
        self.asks.now()
    }

    /// Starts the checks of a process, unless they are running. Restarts them if the settings differ.
    ///
    /// Commands run in `inside`, where the process has one of its own.
    pub(crate) fn watch(
        &self,
        uid: Uid,
        target: &ProbeTarget,
        checks: &[CheckSpec],
        inside: Option<&Arc<dyn Backend>>,
    ) {
        let mut running = self.lock();
        let is_watched = running
            .get(&uid)
            .is_some_and(|watched| watched.target == *target && watched.checks == checks);
        if is_watched {
            return;
        }
        let kept = Arc::new(ResultFile::new(&self.output, &uid.to_string(), checks));
        let waiting = self.writer.get_or_init(ResultWriter::start);
        let results = Arc::new(Mutex::new(Results {
            stretches: vec![Stretch::Unknown; checks.len()],
            ..Results::default()
        }));
        let task = |(number, check): (usize, &CheckSpec)| {
            let task = Task {
                asks: Arc::clone(&self.asks),
                handle: self.handle.get().cloned(),
                uid,
                number,
                check: check.clone(),
                target: target.clone(),
                inside: inside.cloned(),
                results: Arc::clone(&results),
                kept: Arc::clone(&kept),
                writer: waiting.clone(),
            };
            tokio::spawn(task.run()).abort_handle()
        };
        let watched = Watched {
            target: target.clone(),
            checks: checks.to_vec(),
            tasks: checks.iter().enumerate().map(task).collect(),
            results,
            kept,
        };
        running.insert(uid, watched);
    }

    /// Stops the checks of a replica.
    pub(crate) fn end(&self, uid: Uid) {
        self.lock().remove(&uid);
    }

    /// Returns the state of a process's readiness checks.
    pub(crate) fn readiness(&self, uid: Uid, checks: &[CheckSpec]) -> Vec<Checked> {
        let running = self.lock();
        let watched = running.get(&uid);
        let stretch = |number: usize| {
            let results = watched.map(|watched| watched.results.lock().unpoisoned());
            results.and_then(|results| results.stretches.get(number).copied())
        };
        let of = |(number, check): (usize, &CheckSpec)| Checked {
            stretch: stretch(number).unwrap_or(Stretch::Unknown),
            min_healthy_time: check.check.min_healthy_time,
        };
        let all = checks.iter().enumerate();
        all.filter(|(_, check)| check.check.readiness).map(of).collect()
    }

    /// Returns the action that is due for a start, if any.
    pub(crate) fn due(&self, uid: Uid, start: &StartId) -> Option<(usize, Action)> {
        let running = self.lock();
        let watched = running
            .get(&uid)
            .filter(|watched| watched.target.start == *start)?;
        let results = watched.results.lock().unpoisoned();
        results.due
    }

    /// Records that a due action was stored.
    pub(crate) fn settle(&self, uid: Uid, was_ready: bool, is_taken: bool) {
        let running = self.lock();
        if let Some(watched) = running.get(&uid) {
            let mut results = watched.results.lock().unpoisoned();
            results.was_ready = was_ready;
            if is_taken {
                results.due = None;
            }
        }
    }

    /// Returns the number of replicas with running checks.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Uid, Watched>> {
        self.running.lock().unpoisoned()
    }
}

/// The periodic task of one check.
struct Task {
    asks: Arc<dyn Asks>,
    handle: Option<Handle>,
    uid: Uid,
    number: usize,
    check: CheckSpec,
    target: ProbeTarget,
    /// Backend that runs the process in a container; none for a local process.
    inside: Option<Arc<dyn Backend>>,
    results: Arc<Mutex<Results>>,
    kept: Arc<ResultFile>,
    writer: ResultWriter,
}

impl Task {
    async fn run(self) {
        let mut failures = Failures::default();
        let mut began = None;
        loop {
            let now = self.asks.now();
            let next = next_probe(&self.check.check, began, now);
            sleep(wait(now, next)).await;
            began = Some(self.asks.now());
            let asked = self.ask();
            let result = timeout(self.check.timeout, asked)
                .await
                .unwrap_or(Probed::Failure);
            if self.note(&mut failures, result)
                && let Some(handle) = &self.handle
            {
                // A controller that ends looks at nothing.
                let _ = handle.nudge(Target::Uid(self.uid)).await;
            }
        }
    }

    /// Sends one probe: a command where the process runs, any other over the network.
    fn ask(&self) -> BoxFuture<'_, Probed> {
        match (&self.check.question, &self.inside) {
            (Question::Command(command), Some(inside)) => Box::pin(async {
                let code = inside.run_inside(&self.target.start, command).await;
                if code == Ok(0) {
                    Probed::Success
                } else {
                    Probed::Failure
                }
            }),
            _ => self.asks.ask(&self.check.question, &self.target),
        }
    }

    /// Counts a result. Returns true if the reconciler must be nudged.
    fn note(&self, failures: &mut Failures, result: Probed) -> bool {
        let at = self.asks.now();
        self.keep(result, at);
        let mut results = self.results.lock().unpoisoned();
        let probe = Probe {
            started: self.target.started,
            at,
            was_ready: results.was_ready,
            result,
        };
        let (next, action) = count(&self.check.check, *failures, probe);
        *failures = next;
        if let Some(action) = action {
            results.due.get_or_insert((self.number, action));
        }
        let Some(stretch) = results.stretches.get_mut(self.number) else {
            return action.is_some();
        };
        let before = std::mem::replace(stretch, stretch.with(result, at));
        action.is_some() || before != *stretch
    }

    fn keep(&self, result: Probed, at: Timestamp) {
        let Some(check) = self.kept.digest(self.number) else {
            return;
        };
        let result = CheckResult {
            check: check.clone(),
            start: self.target.start.counter(),
            at,
            result,
        };
        self.writer.add(&self.kept, result);
    }
}

fn wait(now: Timestamp, until: Timestamp) -> std::time::Duration {
    let ms = until.0.saturating_sub(now.0);
    std::time::Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}
