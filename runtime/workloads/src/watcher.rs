//! Watcher of processes, by scans and news of backends (rule W2).
//!
//! One call per backend lists all processes. Whatever differs from what a reconciler last saw nudges its resource, so a
//! crash, drift or a reboot needs no event, and a lost event does no harm.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout};
use watershed_controller::resource::Target;
use watershed_controller::{Handle, Refusal, RequestError, Select, Uid};

use crate::backend::{self, Backend, News, Observation, Stop, Then};
use crate::shared::Shared;
use crate::{job, replica, service};

/// First and longest delay after a failed listing.
const BACKOFF: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

/// Time limit of a listing. An interrupted one has cached details, from which the next continues.
const LISTING: Duration = Duration::from_secs(15);

/// Time for which news are collected before one listing answers them all.
const GATHER: Duration = Duration::from_millis(5);

/// Interval between two checks of the clock. If it was set back, everything due at a stored time is reconsidered.
const CLOCK_LOOK: Duration = Duration::from_secs(10);

/// Interval in place of no scans: a year.
const NEVER: Duration = Duration::from_secs(365 * 24 * 3_600);

/// Grace period of an orphan, whose own settings are no longer known, in milliseconds.
const ORPHAN_GRACE_MS: u64 = 10_000;

/// The watcher of a project's processes, which keeps its observations up to date until the program leaves.
pub(crate) struct Watcher {
    pub(crate) shared: Arc<Shared>,
    pub(crate) handle: Handle,
}

impl Watcher {
    /// Scans at the start, at each interval and after news.
    pub(crate) async fn run(self) {
        let leaving = self.shared.leaving.clone();
        tokio::select! {
            () = leaving.cancelled() => {}
            () = self.watch() => {}
        }
    }

    async fn watch(&self) {
        let backends = self.connect().await;
        let is_there = |uid: &str| uid_of(uid).is_some_and(|uid| self.handle.get(uid).is_ok());
        self.shared.project.sweep_results(is_there);
        // Before the first listing, so that nothing is lost in between.
        let mut listeners: Vec<_> = backends.iter().map(|backend| backend.news()).collect();
        let mut absent = Absent::default();
        self.scan(&backends, &mut absent).await;
        let every = self.shared.interval;
        let mut ticks = interval(if every.is_zero() { NEVER } else { every });
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        let mut looks = interval(CLOCK_LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut shown = self.shared.probes.now();
        let mut asked = self.shared.scans.asked.subscribe();
        loop {
            let news = async {
                let next = listeners.iter_mut().map(|one| Box::pin(one.recv()));
                futures::future::select_all(next).await.0
            };
            let again = absent.again.unwrap_or_else(Instant::now);
            // Ticks and news keep their place when another is served.
            tokio::select! {
                news = news, if !backends.is_empty() => match news {
                    Ok(news) if self.shared.observations.end(&news) => {
                        if let News::Ended { id, .. } = news {
                            self.nudge(id.uid()).await;
                        }
                    }
                    _ => {
                        sleep(GATHER).await;
                        for listener in &mut listeners {
                            self.take_all(listener).await;
                        }
                        self.scan(&backends, &mut absent).await;
                    }
                },
                _ = ticks.tick() => self.scan(&backends, &mut absent).await,
                // The sender lives as long as this watch.
                _ = asked.changed() => self.scan(&backends, &mut absent).await,
                _ = looks.tick() => {
                    let before = std::mem::replace(&mut shown, self.shared.probes.now());
                    if shown < before {
                        self.nudge_all().await;
                    }
                }
                () = sleep_until(again), if absent.again.is_some() => self.scan(&backends, &mut absent).await,
            }
        }
    }

    /// Nudges all workloads that may wait for a stored time.
    async fn nudge_all(&self) {
        tracing::info!("the clock was set back; jobs and services are looked at");
        for kind in [job::KIND, service::KIND, replica::KIND] {
            let found = self.handle.list(Select::kind(kind).with_hidden()).resources;
            for resource in found {
                // One that is gone by now waits for nothing.
                let _ = self.handle.nudge(Target::Uid(resource.uid())).await;
            }
        }
    }

    /// Takes all waiting news, which the next listing covers.
    async fn take_all(&self, listener: &mut tokio::sync::broadcast::Receiver<News>) {
        while let Ok(news) = listener.try_recv() {
            if self.shared.observations.end(&news)
                && let News::Ended { id, .. } = news
            {
                self.nudge(id.uid()).await;
            }
        }
    }

    async fn connect(&self) -> Vec<Arc<dyn Backend>> {
        let epoch = self.shared.backends.epoch().await;
        let mut pause = BACKOFF[0];
        loop {
            match self.shared.backends.all(epoch) {
                Ok(backends) => return backends,
                Err(error) => tracing::warn!(%error, "processes can't be listed"),
            }
            sleep(pause).await;
            pause = (pause * 2).min(BACKOFF[1]);
        }
    }

    /// Lists the processes of all backends, and nudges workloads whose processes differ. A backend that does not answer
    /// delays no other backend, and its processes are not taken for missing.
    async fn scan(&self, backends: &[Arc<dyn Backend>], absent: &mut Absent) {
        let observations = &self.shared.observations;
        let (began, number) = (observations.clock(), *self.shared.scans.asked.borrow());
        let mut listed = Vec::new();
        let mut answers = Vec::new();
        let mut asked: FuturesUnordered<_> = backends.iter().map(list).collect();
        while let Some((name, found)) = asked.next().await {
            match found {
                Ok(found) => {
                    absent.names.remove(name);
                    // What waits for this one alone is not held up by those that are slower.
                    if !asked.is_empty() {
                        let different = observations.apply(found.clone(), began, false);
                        observations.note_listed(name);
                        self.follow(different, backends).await;
                    }
                    listed.extend(found);
                    answers.push(name);
                }
                Err(error) => {
                    if absent.names.insert(name) {
                        tracing::warn!(%error, "processes can't be listed");
                    }
                    observations.note_absent(name, error);
                }
            }
        }
        absent.plan();
        let different = observations.apply(listed, began, absent.names.is_empty());
        answers
            .into_iter()
            .for_each(|name| observations.note_listed(name));
        self.follow(different, backends).await;
        self.shared.scans.made.send_replace(number);
    }

    /// Nudges workloads whose observation differs, and stops processes without a resource.
    async fn follow(&self, different: Vec<String>, backends: &[Arc<dyn Backend>]) {
        for uid in different {
            if !self.nudge(&uid).await {
                self.end_orphan(&uid, backends).await;
            }
        }
    }

    /// Nudges the resource of a workload. Returns false if there is none.
    async fn nudge(&self, uid: &str) -> bool {
        let Some(parsed) = uid_of(uid) else { return false };
        match self.handle.nudge(Target::Uid(parsed)).await {
            Err(RequestError::Refused(Refusal::Unknown(_))) => self.handle.get(parsed).is_ok(),
            // A controller that ends looks at nothing.
            _ => true,
        }
    }

    /// Stops a process without a resource, left when its catalog was replaced (rule W13).
    async fn end_orphan(&self, uid: &str, backends: &[Arc<dyn Backend>]) {
        let Some(observation) = self.shared.observations.peek(uid) else {
            self.shared.observations.remove(uid);
            return;
        };
        // What a deleted resource has left to its backend has the time that it was given.
        if observation.stopping && observation.phase.is_alive() {
            return;
        }
        tracing::warn!(start = %observation.id, "a process belongs to no resource, and is stopped");
        let stop = Stop {
            id: observation.id.clone(),
            signal: "TERM".to_owned(),
            grace_ms: ORPHAN_GRACE_MS,
            then: Then::ForgetWithOutput,
        };
        for backend in backends {
            // One that does not know the start does nothing.
            let _ = match observation.phase.is_alive() {
                true => backend.stop(stop.clone()).await.map(drop),
                false => backend.forget(observation.id.clone(), true).await,
            };
        }
        self.shared.observations.remove(uid);
    }
}

/// Lists the processes of a backend within the time limit.
pub(crate) async fn list(
    backend: &Arc<dyn Backend>,
) -> (&'static str, Result<Vec<Observation>, backend::Error>) {
    let name = backend.name();
    let found = timeout(LISTING, backend.list()).await;
    let found = found.unwrap_or_else(|_| {
        Err(backend::Error::Unreachable {
            backend: name,
            message: format!("it lists nothing within {} s", LISTING.as_secs()),
        })
    });
    (name, found)
}

/// The backends whose last listing failed.
#[derive(Default)]
struct Absent {
    names: BTreeSet<&'static str>,
    /// Delay before they are listed again.
    pause: Duration,
    /// Time of the next attempt; none if all answered.
    again: Option<Instant>,
}

impl Absent {
    /// Plans an early listing if a backend failed to answer the last one.
    fn plan(&mut self) {
        if self.names.is_empty() {
            *self = Self::default();
            return;
        }
        self.pause = (self.pause * 2).clamp(BACKOFF[0], BACKOFF[1]);
        self.again = Some(Instant::now() + self.pause);
    }
}

/// Parses a resource's uid from the form in start ids.
fn uid_of(text: &str) -> Option<Uid> {
    uuid::Uuid::parse_str(text).ok().map(Uid)
}
