//! Creation of containers: pulling the image, creating and starting the container.
//!
//! A start answers at once, and a task does the rest: nobody waits for an image. What the task is about is known to this
//! process alone until the container is there; should the process end before, the same start is ordered again.

use std::sync::Arc;
use std::time::Duration;

use bollard::query_parameters::{CreateContainerOptions, CreateImageOptions};
use futures::StreamExt;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::body::{body, reference};
use super::engine::Failed;
use super::failure::{NotStarted, of_image, of_pull, of_start};
use super::label::{self, Labels, Order};
use super::observe::Life;
use super::place::{Place, now};
use super::stopping;
use super::table::Making;
use crate::backend::{Container, End, News, Observation, Phase, Pull, Start, Stop, Then};
use crate::policy::exit::{Exit, StartFailure};

/// The most names that are tried if other containers have taken the first ones.
const NAMES_MAX: usize = 4;
/// The most attempts with one name, while another request creates or removes its container unseen.
const TRIES_MAX: usize = 50;
/// Delay between two attempts with one name.
const TRY_EVERY: Duration = Duration::from_millis(100);
/// The longest time without progress of a pull.
const SILENCE: Duration = Duration::from_secs(120);
/// Signal that is reported for a start that was stopped before its process existed.
const SIGTERM: i32 = 15;

/// The result of the task that creates a container.
#[derive(Debug)]
enum Made {
    /// The engine has started the container.
    Started,
    /// The start was stopped before the container was started.
    Cancelled,
    /// The outcome is unknown: the engine did not answer, or a later holder decides. A listing will show it.
    Open,
    /// The container can't be started.
    Not(NotStarted),
}

/// Starts the task that creates a container, unless the start is known. Returns the observation.
pub(super) fn begin(place: &Arc<Place>, epoch: u64, start: Start, container: Container) -> Observation {
    let cancel = CancellationToken::new();
    let observation = Observation {
        id: start.id.clone(),
        epoch,
        backend_id: None,
        started: now(),
        stopping: false,
        phase: Phase::Starting,
    };
    let making = Making {
        observation: observation.clone(),
        cancel: cancel.clone(),
        stop: None,
    };
    let mut table = place.table();
    if let Some(known) = table.making.get(&start.id) {
        return known.observation.clone();
    }
    table.making.insert(start.id.clone(), making);
    drop(table);
    let task = Task {
        place: Arc::clone(place),
        epoch,
        start,
        container,
        cancel,
    };
    tokio::spawn(task.run());
    observation
}

struct Task {
    place: Arc<Place>,
    epoch: u64,
    start: Start,
    container: Container,
    cancel: CancellationToken,
}

impl Task {
    async fn run(self) {
        let made = match self.make().await {
            Ok(made) => made,
            Err(not_started) => Made::Not(not_started),
        };
        self.finish(made).await;
    }

    async fn make(&self) -> Result<Made, NotStarted> {
        if self.container.pull == Pull::Always && !self.pull_unless_stopped().await? {
            return Ok(Made::Cancelled);
        }
        let Some(container) = self.create().await? else {
            // It is there, made by another request, or is not wanted any more.
            return Ok(match self.cancel.is_cancelled() {
                true => Made::Cancelled,
                false => Made::Started,
            });
        };
        let is_over = self.place.enter(self.epoch).is_err();
        if is_over || self.cancel.is_cancelled() {
            self.remove(&container).await;
            return Ok(if is_over { Made::Open } else { Made::Cancelled });
        }
        let client = self.place.engine.client().await.map_err(of_start)?;
        match self
            .place
            .engine
            .call(client.start_container(&container, None))
            .await
        {
            Ok(()) => Ok(Made::Started),
            Err(Failed::Unreachable(_)) => Ok(Made::Open),
            Err(failed) => {
                self.remove(&container).await;
                Err(of_start(failed))
            }
        }
    }

    /// Creates the container. Returns none if another request has created and started it, or the start was stopped.
    async fn create(&self) -> Result<Option<String>, NotStarted> {
        let labels = Labels {
            start: self.start.id.clone(),
            epoch: self.epoch,
            ordered: now(),
        };
        let body = body(&self.place.folder, &labels, &self.start, &self.container);
        let mut has_pulled = self.container.pull == Pull::Always;
        for attempt in 0..NAMES_MAX {
            let name = label::name(&self.place.folder, &self.start.id, attempt);
            for _ in 0..TRIES_MAX {
                let client = self.place.engine.client().await.map_err(of_start)?;
                let options = CreateContainerOptions {
                    name: Some(name.clone()),
                    ..CreateContainerOptions::default()
                };
                let made = client.create_container(Some(options), body.clone());
                let failed = match self.place.engine.call(made).await {
                    Ok(made) => return Ok(Some(made.id)),
                    Err(failed) => failed,
                };
                if failed.is_missing_image() && !has_pulled {
                    self.pull_if_allowed(failed).await?;
                    has_pulled = true;
                } else if failed.is_missing_image() {
                    return Err(of_pull(&self.container.image, failed));
                } else if failed.is_conflict() {
                    match self.holder(&name).await? {
                        Holder::Ours => return Ok(None),
                        Holder::Stranger => break,
                        Holder::Unseen => sleep(TRY_EVERY).await,
                    }
                } else {
                    return Err(of_start(failed));
                }
                if self.cancel.is_cancelled() {
                    return Ok(None);
                }
            }
        }
        let message = "its name, and the next ones, belong to other containers".to_owned();
        Err((StartFailure::EngineRefused, message))
    }

    /// Finds the container with a name. Removes a container of the same start that never ran, since its settings may
    /// differ.
    async fn holder(&self, name: &str) -> Result<Holder, NotStarted> {
        let ours = self.place.containers(Some(self.start.id.uid())).await;
        let mut ours = ours.map_err(of_start)?.into_iter();
        if let Some(found) = ours.find(|one| one.labels.start == self.start.id) {
            if found.life != Life::Made {
                return Ok(Holder::Ours);
            }
            // Not by force, as it may begin meanwhile.
            return match self.place.remove(&found.container, false).await {
                Err(Failed::Unreachable(message)) => Err((StartFailure::EngineUnreachable, message)),
                _ => Ok(Holder::Unseen),
            };
        }
        let client = self.place.engine.client().await.map_err(of_start)?;
        match self.place.engine.call(client.inspect_container(name, None)).await {
            Ok(_) => Ok(Holder::Stranger),
            Err(failed) if failed.is_missing() => Ok(Holder::Unseen),
            Err(failed) => Err(of_start(failed)),
        }
    }

    async fn pull_if_allowed(&self, missing: Failed) -> Result<(), NotStarted> {
        if self.container.pull == Pull::Never {
            return Err(of_pull(&self.container.image, missing));
        }
        self.pull_unless_stopped().await.map(drop)
    }

    /// Pulls the image. Returns false if the start was stopped meanwhile.
    async fn pull_unless_stopped(&self) -> Result<bool, NotStarted> {
        match self.cancel.run_until_cancelled(self.pull()).await {
            None => Ok(false),
            Some(pulled) => pulled.map(|()| true),
        }
    }

    async fn pull(&self) -> Result<(), NotStarted> {
        let (engine, image) = (&self.place.engine, self.container.image.as_str());
        let _room = engine.room_for_pull().await;
        let client = engine.client().await.map_err(|failed| of_pull(image, failed))?;
        let options = CreateImageOptions {
            from_image: Some(reference(&self.container.image)),
            ..CreateImageOptions::default()
        };
        let mut steps = client.create_image(Some(options), None, None);
        loop {
            match timeout(SILENCE, steps.next()).await {
                Ok(None) => return Ok(()),
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(error))) => {
                    return Err(of_pull(image, engine.failed(error)));
                }
                Err(_) => {
                    let message = format!("the pull stood still for {} s", SILENCE.as_secs());
                    return Err((StartFailure::PullInterrupted, of_image(image, &message)));
                }
            }
        }
    }

    /// Removes a container that never ran. If that fails, the next start or program removes it.
    async fn remove(&self, container: &str) {
        if let Err(failed) = self.place.remove(container, true).await {
            tracing::warn!(start = %self.start.id, ?failed, "a container that was not started can't be removed");
        }
    }

    /// Records the result of the task, and carries out a stop that was ordered meanwhile.
    async fn finish(&self, made: Made) {
        let id = &self.start.id;
        let stop = self.note(&made);
        if let (Made::Started, Some(stop)) = (&made, stop) {
            let found = self.place.containers(Some(id.uid())).await;
            let found = found.unwrap_or_default();
            if let Some(one) = found.iter().find(|one| one.labels.start == *id) {
                stopping::order(&self.place, one, Order::from_now(&stop)).await;
            }
        }
        self.place.tell(match made {
            Made::Open => News::Missed,
            _ => News::Changed(id.clone()),
        });
    }

    /// Records the result of the task. Returns the stop that was ordered meanwhile; none if there was none.
    fn note(&self, made: &Made) -> Option<Stop> {
        let mut table = self.place.table();
        let mut making = table.making.remove(&self.start.id)?;
        let is_forgotten = making.stop.as_ref().is_some_and(|stop| stop.then != Then::Keep);
        let phase = match made {
            Made::Started | Made::Open => return making.stop,
            Made::Cancelled => Phase::Ended {
                end: End::Exit(Exit::Signal(SIGTERM)),
                at: now(),
            },
            Made::Not((failure, message)) => Phase::NotStarted {
                failure: *failure,
                message: message.clone(),
            },
        };
        if !is_forgotten {
            making.observation.phase = phase;
            table.making.insert(self.start.id.clone(), making);
        }
        None
    }
}

/// The container that has a wanted name.
enum Holder {
    /// The container of this start, which has run.
    Ours,
    /// A container of something else.
    Stranger,
    /// A container that no listing shows, since it is being created or removed.
    Unseen,
}
