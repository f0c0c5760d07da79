//! Containers in an engine with Docker's API, over a Unix socket.
//!
//! All that is stored of a container is stored in the engine: labels say whose it is, and its name says that it was
//! stopped, or that its end was counted. So whoever dies, the next program finds what there is by one listing.
//!
//! | file | for |
//! |---|---|
//! | `making` | starts: pull, make, start, in a task |
//! | `stopping` | stops: signal, grace period, kill, in a task |
//! | `events` | the engine's events as news |
//! | `place`, `table` | all containers of one state folder; what this process does about them |
//! | `label` | labels and names |
//! | `observe`, `failure`, `body` | what the engine's words mean, and what it is told |
//! | `checks`, `output` | commands inside containers, and what containers write |
//!
//! # Invariants
//!
//! 1. The name of a start's container is a function of the start, and the engine gives each name once: so a start id makes
//!    one container.
//! 2. A container is started by who made it, and never again. One that was made and not started is removed.
//! 3. The order to stop a container stands in its name before its signal.
//! 4. A container that has ended stays until its end is counted, and then, for its output, until the next one has ended.

mod address;
mod body;
mod checks;
mod creation;
mod engine;
mod events;
mod failure;
mod label;
mod observe;
mod output;
mod place;
mod stopping;
mod table;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use self::address::Address;
use self::engine::Engine;
use self::label::{Mark, Order};
use self::observe::{Life, Listed};
pub use self::output::{Part, Reader};
use self::place::Place;
use super::{Backend, BoxFuture, Connect, Error, News, Observation, Program, Start, StartId, Stop, Then};

/// Name of the backend in messages.
const NAME: &str = "docker";

/// Name of the marker file in the state folder, which exists once containers were started.
const MARKER: &str = "containers";

/// The containers of a state folder. The engine is not contacted before the first container.
#[derive(Debug, Clone)]
pub struct Containers(Arc<Place>);

impl Containers {
    /// Creates the containers of a state folder.
    pub fn new(state_folder: &Path, address: Address) -> Self {
        let folder = label::folder(state_folder);
        let place = Place::new(Engine::new(address), folder, state_folder.join(MARKER));
        Self(Arc::new(place))
    }

    /// Starts reading the output of a start; none if the start has no container.
    ///
    /// # Errors
    /// When the engine does not answer.
    pub async fn output(&self, uid: &str, counter: u64, part: Part) -> Result<Option<Reader>, Error> {
        Reader::begin(&self.0, uid, counter, part).await
    }
}

impl Connect for Containers {
    fn runs_containers(&self) -> bool {
        true
    }

    fn connect(&self, epoch: u64) -> Result<Arc<dyn Backend>, Error> {
        let end = CancellationToken::new();
        let (place, until) = (Arc::clone(&self.0), end.clone());
        tokio::spawn(async move {
            let passed_on = events::pass_on(place, epoch);
            until.run_until_cancelled(passed_on).await;
        });
        Ok(Arc::new(Docker {
            place: Arc::clone(&self.0),
            epoch,
            _events: end.drop_guard(),
        }))
    }
}

/// The container backend under one epoch.
#[derive(Debug)]
struct Docker {
    place: Arc<Place>,
    epoch: u64,
    /// Stops forwarding the engine's events when dropped.
    _events: DropGuard,
}

impl Docker {
    async fn start_container(&self, start: Start) -> Result<Observation, Error> {
        let Program::Container(container) = start.program.clone() else {
            return Err(Error::Unsupported {
                backend: NAME,
                message: "a local process is no container".to_owned(),
            });
        };
        self.place.enter(self.epoch)?;
        // A later holder may have begun other starts than this one.
        self.place.learn_epoch().await?;
        if let Some(known) = self.place.table().making.get(&start.id) {
            return Ok(known.observation.clone());
        }
        let there = self.place.containers(Some(start.id.uid())).await?;
        // The listing may have told of a later holder.
        self.place.enter(self.epoch)?;
        if let Some(known) = self.find(&there, &start.id).await? {
            return Ok(known);
        }
        self.check_newest(&there, &start.id)?;
        self.place.mark_used()?;
        Ok(creation::begin(&self.place, self.epoch, start, container))
    }

    /// Returns the observation of a start that has begun; none if it has not.
    async fn find(&self, there: &[Listed], id: &StartId) -> Result<Option<Observation>, Error> {
        let mut found = there.iter();
        let Some(one) = found.find(|one| one.labels.start == *id && one.life != Life::Made) else {
            return Ok(None);
        };
        if one.is_kept() {
            return Err(Error::Superseded { newer: id.clone() });
        }
        let details = self.place.details(one).await?;
        Ok(details.map(|details| one.observe(&details)))
    }

    /// Refuses a start if another one of its uid is alive or newer.
    fn check_newest(&self, there: &[Listed], id: &StartId) -> Result<(), Error> {
        let table = self.place.table();
        let making = table
            .making
            .values()
            .filter(|one| one.observation.id.uid() == id.uid() && one.observation.phase.is_alive())
            .map(|one| &one.observation.id);
        let living = there
            .iter()
            .filter(|one| one.is_alive())
            .map(|one| &one.labels.start);
        if let Some(living) = living.chain(making).find(|other| *other != id) {
            let living = living.clone();
            return Err(Error::Occupied { living });
        }
        let others = there.iter().map(|one| &one.labels.start);
        match others.filter(|other| other.counter() > id.counter()).max() {
            Some(newer) => Err(Error::Superseded { newer: newer.clone() }),
            None => Ok(()),
        }
    }

    async fn stop_container(&self, stop: Stop) -> Result<Option<Observation>, Error> {
        self.place.enter(self.epoch)?;
        if let Some(known) = self.stop_making(&stop) {
            return Ok(Some(known));
        }
        if !*self.place.is_used.borrow() {
            return Ok(None);
        }
        let there = self.place.containers(Some(stop.id.uid())).await?;
        self.place.enter(self.epoch)?;
        let started = there
            .iter()
            .find(|one| one.labels.start == stop.id && !one.is_kept() && one.life != Life::Made);
        let Some(one) = started else {
            // What is there of it, or of earlier starts, has ended or never began.
            if stop.then == Then::ForgetWithOutput && !there.is_empty() {
                self.place.forget(&stop.id, true).await?;
            }
            return Ok(None);
        };
        let Some(details) = self.place.details(one).await? else {
            return Ok(None);
        };
        let observation = Observation {
            stopping: true,
            ..one.observe(&details)
        };
        match one.life {
            Life::Running => stopping::order(&self.place, one, Order::from_now(&stop)).await,
            _ if stop.then != Then::Keep => {
                let remove_output = stop.then == Then::ForgetWithOutput;
                self.place.forget(&stop.id, remove_output).await?;
            }
            _ => {
                self.place
                    .mark(one, &Mark::Stopped(Order::from_now(&stop)))
                    .await?
            }
        }
        Ok(Some(observation))
    }

    /// Stops a start whose container is being created; none if there is no such start.
    fn stop_making(&self, stop: &Stop) -> Option<Observation> {
        let mut table = self.place.table();
        let making = table.making.get_mut(&stop.id)?;
        making.observation.stopping = true;
        making.cancel.cancel();
        let observation = making.observation.clone();
        let then = making
            .stop
            .as_ref()
            .map_or(stop.then, |earlier| earlier.then.max(stop.then));
        if observation.phase.is_alive() {
            making.stop = Some(Stop { then, ..stop.clone() });
        } else if then != Then::Keep {
            table.making.remove(&stop.id);
        }
        Some(observation)
    }

    async fn forget_start(&self, id: StartId, remove_output: bool) -> Result<(), Error> {
        self.place.enter(self.epoch)?;
        let was_made = {
            let mut table = self.place.table();
            let making = table.making.get(&id).map(|one| one.observation.phase.is_alive());
            if making == Some(true) {
                return Err(Error::StillRunning);
            }
            table.making.remove(&id);
            making.is_none()
        };
        // One that was never made has no container but those of earlier starts, which stay for their output.
        if (!was_made && !remove_output) || !*self.place.is_used.borrow() {
            return Ok(());
        }
        self.place.forget(&id, remove_output).await
    }
}

impl Backend for Docker {
    fn name(&self) -> &'static str {
        NAME
    }

    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn start(&self, start: Start) -> BoxFuture<'_, Result<Observation, Error>> {
        Box::pin(self.start_container(start))
    }

    fn stop(&self, stop: Stop) -> BoxFuture<'_, Result<Option<Observation>, Error>> {
        Box::pin(self.stop_container(stop))
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Observation>, Error>> {
        Box::pin(self.place.observe())
    }

    fn forget(&self, id: StartId, remove_output: bool) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.forget_start(id, remove_output))
    }

    fn run_inside<'a>(&'a self, id: &'a StartId, command: &'a [String]) -> BoxFuture<'a, Result<i32, Error>> {
        Box::pin(checks::run(&self.place, id, command))
    }

    fn stops_within(&self) -> Option<Duration> {
        let table = self.place.table();
        let rest = |order: &Order| order.rest(place::now());
        table.stops.values().map(|stop| rest(&stop.order.borrow())).max()
    }

    fn free_memory(&self) -> Option<u64> {
        super::free_memory()
    }

    fn news(&self) -> broadcast::Receiver<News> {
        self.place.news.subscribe()
    }
}
