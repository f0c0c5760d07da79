//! Simulated backend: processes that misbehave at random, from a seed (rule W18).
//!
//! A [`World`] is a machine with its own time, which passes only by [`World::advance`]. Equal seeds and equal requests
//! lead to equal worlds.
//!
//! # Invariants
//!
//! 1. Of one uid at most one start is alive.
//! 2. A start id that was forgotten, or is older than the newest of its uid, never starts again.

mod story;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::sync::broadcast;
use watershed_core::Timestamp;
use watershed_locks::Unpoisoned;

pub use self::story::{Event, Happening};
use super::{Backend, BoxFuture, End, Error, News, Observation, Phase, Start, StartId, Stop, Then};
use crate::policy::exit::{Exit, StartFailure};

/// Name of the backend in messages.
const NAME: &str = "simulated";

/// The most unread news of a slow receiver; older ones are dropped, as with real backends.
const MAX_NEWS: usize = 1_024;

/// Number of failures among which starts draw, the first ones of the list. Adding a failure would change the meaning of
/// kept seeds.
const FAILURES: usize = 12;

/// Faults of the simulated machine, as probabilities in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Faults {
    /// Failures of starts, in thousandths.
    pub failed_starts: u32,
    /// Processes that end by themselves within [`max_life`](Self::max_life), in thousandths.
    pub exits: u32,
    /// Lost news, in thousandths.
    pub lost_news: u32,
    /// Requests with a lost answer, in thousandths; half of them are carried out.
    pub lost_answers: u32,
    /// Stops whose first signal is ignored, so that the process lives for the whole grace period, in thousandths.
    pub ignored_stops: u32,
    /// The longest time from an order to its process.
    pub max_start: Duration,
    /// The longest life of a process that ends by itself.
    pub max_life: Duration,
    /// The longest delay of news.
    pub max_delay: Duration,
}

impl Faults {
    /// No faults: each process starts at once and lives until it is stopped, and news arrive at once.
    pub const NONE: Self = Self {
        failed_starts: 0,
        exits: 0,
        lost_news: 0,
        lost_answers: 0,
        ignored_stops: 0,
        max_start: Duration::ZERO,
        max_life: Duration::ZERO,
        max_delay: Duration::ZERO,
    };
}

/// A simulated machine. Clones share it.
#[derive(Debug, Clone)]
pub struct World(Arc<Mutex<Machine>>);

/// The backend of a simulated machine under one epoch.
#[derive(Debug, Clone)]
pub struct Simulated {
    world: World,
    epoch: u64,
}

#[derive(Debug)]
struct Machine {
    faults: Faults,
    random: SmallRng,
    now: Timestamp,
    newest_epoch: u64,
    starts: BTreeMap<StartId, Entry>,
    /// Highest counter of each uid, including forgotten starts.
    newest: BTreeMap<String, u64>,
    /// Future events by time, then by order of creation.
    due: BTreeMap<(Timestamp, u64), Due>,
    made: u64,
    begun: u64,
    /// Living starts whose parent was killed, so that nobody learns their exit code.
    adopted: BTreeSet<StartId>,
    free_memory: Option<u64>,
    story: Vec<Happening>,
    news: broadcast::Sender<News>,
}

#[derive(Debug)]
struct Entry {
    observation: Observation,
    then: Then,
}

/// A future event.
#[derive(Debug)]
enum Due {
    Begin(StartId),
    End(StartId, Exit),
    Tell(StartId),
}

impl World {
    /// Creates a machine at time 0.
    pub fn new(seed: u64, faults: Faults) -> Self {
        Self(Arc::new(Mutex::new(Machine {
            faults,
            random: SmallRng::seed_from_u64(seed),
            now: Timestamp(0),
            newest_epoch: 0,
            starts: BTreeMap::new(),
            newest: BTreeMap::new(),
            due: BTreeMap::new(),
            made: 0,
            begun: 0,
            adopted: BTreeSet::new(),
            free_memory: None,
            story: Vec::new(),
            news: broadcast::channel(MAX_NEWS).0,
        })))
    }

    /// Returns the backend for an epoch, whose first change makes all earlier epochs stale.
    pub fn connect(&self, epoch: u64) -> Simulated {
        Simulated {
            world: self.clone(),
            epoch,
        }
    }

    /// Returns the simulated time.
    pub fn now(&self) -> Timestamp {
        self.lock().now
    }

    /// Returns the number of processes that have started so far.
    pub fn begun(&self) -> u64 {
        self.lock().begun
    }

    /// Returns the time of the next event, if any.
    pub fn next_event(&self) -> Option<Timestamp> {
        self.lock().due.keys().next().map(|(at, _)| *at)
    }

    /// Advances the simulated time and carries out all events until then. A time in the past changes nothing.
    pub fn advance(&self, to: Timestamp) {
        let mut machine = self.lock();
        while let Some(next) = machine.due.first_entry().filter(|next| next.key().0 <= to) {
            let ((at, _), due) = next.remove_entry();
            machine.now = machine.now.max(at);
            machine.happen(due);
        }
        machine.now = machine.now.max(to);
    }

    /// Kills a process from outside, as `kill -9` would. A process that is not running is left alone.
    pub fn kill(&self, id: &StartId) {
        let mut machine = self.lock();
        let entry = machine.starts.get(id);
        if entry.is_some_and(|entry| entry.observation.phase == Phase::Running) {
            machine.end(id, End::Exit(Exit::Signal(9)));
        }
    }

    /// Ends a process with this exit. A process that is not running is left alone.
    pub fn exit(&self, id: &StartId, exit: Exit) {
        let mut machine = self.lock();
        let entry = machine.starts.get(id);
        if entry.is_some_and(|entry| entry.observation.phase == Phase::Running) {
            machine.end(id, End::Exit(exit));
        }
    }

    /// Replaces the faults from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.lock().faults = faults;
    }

    /// Sets the memory available to another process, in bytes.
    pub fn set_free_memory(&self, bytes: u64) {
        self.lock().free_memory = Some(bytes);
    }

    /// Returns the events since the first `seen` ones.
    pub fn story(&self, seen: usize) -> Vec<Happening> {
        self.lock().story.get(seen..).unwrap_or_default().to_vec()
    }

    /// Returns the starts whose processes exist or are about to be started.
    pub fn living(&self) -> Vec<StartId> {
        self.lock().alive()
    }

    /// Returns the number of starts that are not forgotten.
    pub fn kept(&self) -> usize {
        self.lock().starts.len()
    }

    /// Kills the parent of all processes, which run on; nobody learns their exit codes.
    pub fn kill_parent(&self) {
        let mut machine = self.lock();
        let alive = machine.alive();
        machine.adopted.extend(alive);
        let _ = machine.news.send(News::Missed);
    }

    /// Expires the lease of all processes: they are killed, since another holder may start its own.
    pub fn end_lease(&self) {
        let mut machine = self.lock();
        for id in machine.alive() {
            if let Some(entry) = machine.starts.get_mut(&id) {
                entry.observation.stopping = true;
            }
            machine.end(&id, End::Exit(Exit::Signal(9)));
        }
    }

    /// Reboots the machine: all processes end, and no news report it.
    pub fn reboot(&self) {
        let mut machine = self.lock();
        let at = machine.now;
        machine.due.clear();
        machine.adopted.clear();
        for id in machine.alive() {
            if let Some(entry) = machine.starts.get_mut(&id) {
                entry.observation.phase = Phase::Ended { end: End::Reboot, at };
            }
            machine.note(&id, Event::Rebooted);
        }
        machine
            .starts
            .retain(|_, entry| entry.then == Then::Keep || entry.observation.phase.is_alive());
        let _ = machine.news.send(News::Missed);
    }

    fn lock(&self) -> MutexGuard<'_, Machine> {
        // Requests check everything before they change anything, so a panic leaves the machine whole.
        self.0.lock().unpoisoned()
    }
}

impl Machine {
    fn alive(&self) -> Vec<StartId> {
        let alive = self
            .starts
            .iter()
            .filter(|(_, entry)| entry.observation.phase.is_alive());
        alive.map(|(id, _)| id.clone()).collect()
    }

    fn note(&mut self, id: &StartId, event: Event) {
        let (at, id) = (self.now, id.clone());
        self.story.push(Happening { at, id, event });
    }

    /// Carries out a request unless it gets lost; the answer may get lost too.
    fn ask<T>(&mut self, carry_out: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if !self.chance(self.faults.lost_answers) {
            return carry_out(self);
        }
        if self.random.random_bool(0.5) {
            let _ = carry_out(self);
        }
        Err(Error::Unreachable {
            backend: NAME,
            message: "the answer was lost".to_owned(),
        })
    }

    /// Refuses stale epochs.
    fn enter(&mut self, epoch: u64) -> Result<(), Error> {
        if epoch < self.newest_epoch {
            let newest = self.newest_epoch;
            return Err(Error::StaleEpoch { epoch, newest });
        }
        self.newest_epoch = epoch;
        Ok(())
    }

    fn start(&mut self, start: Start, epoch: u64) -> Result<Observation, Error> {
        self.enter(epoch)?;
        if let Some(there) = self.starts.get(&start.id) {
            return Ok(there.observation.clone());
        }
        self.check_newest(&start.id)?;
        let observation = Observation {
            id: start.id.clone(),
            epoch,
            backend_id: None,
            started: self.now,
            stopping: false,
            phase: Phase::Starting,
        };
        self.newest.insert(start.id.uid().to_owned(), start.id.counter());
        let entry = Entry {
            observation,
            then: Then::Keep,
        };
        self.starts.insert(start.id.clone(), entry);
        self.note(&start.id, Event::Ordered);
        match self.draw(self.faults.max_start) {
            Duration::ZERO => self.begin(&start.id),
            wait => self.after(wait, Due::Begin(start.id.clone())),
        }
        self.starts
            .get(&start.id)
            .map(|entry| entry.observation.clone())
            .ok_or_else(|| refused("the start is gone"))
    }

    /// Refuses a start if another one of its uid is alive or newer.
    fn check_newest(&self, id: &StartId) -> Result<(), Error> {
        let mut of_uid = self.starts.values().map(|entry| &entry.observation);
        if let Some(living) = of_uid.find(|one| one.id.uid() == id.uid() && one.phase.is_alive()) {
            let living = living.id.clone();
            return Err(Error::Occupied { living });
        }
        match self.newest.get(id.uid()) {
            Some(newest) if *newest >= id.counter() => match StartId::new(id.uid(), *newest) {
                Ok(newer) => Err(Error::Superseded { newer }),
                Err(error) => Err(refused(&error.to_string())),
            },
            _ => Ok(()),
        }
    }

    fn stop(&mut self, stop: &Stop, epoch: u64) -> Result<Option<Observation>, Error> {
        self.enter(epoch)?;
        let ignored = self.chance(self.faults.ignored_stops);
        let Some(entry) = self.starts.get_mut(&stop.id) else {
            return Ok(None);
        };
        entry.then = entry.then.max(stop.then);
        let was_stopping = std::mem::replace(&mut entry.observation.stopping, true);
        let observation = entry.observation.clone();
        if observation.phase.is_alive() && !was_stopping {
            self.note(&stop.id, Event::StopOrdered);
        }
        match observation.phase {
            Phase::Starting => self.end(&stop.id, End::Exit(Exit::Signal(15))),
            Phase::Running if ignored => {
                let kill = Due::End(stop.id.clone(), Exit::Signal(9));
                self.after(Duration::from_millis(stop.grace_ms), kill);
            }
            Phase::Running => self.after(Duration::ZERO, Due::End(stop.id.clone(), Exit::Signal(15))),
            Phase::NotStarted { .. } | Phase::Ended { .. } => self.forget_if_asked(&stop.id),
        }
        let now = self.starts.get(&stop.id).map(|entry| entry.observation.clone());
        Ok(Some(now.unwrap_or(observation)))
    }

    fn forget(&mut self, id: &StartId, epoch: u64) -> Result<(), Error> {
        self.enter(epoch)?;
        if self
            .starts
            .get(id)
            .is_some_and(|entry| entry.observation.phase.is_alive())
        {
            return Err(Error::StillRunning);
        }
        self.starts.remove(id);
        Ok(())
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::Begin(id) => self.begin(&id),
            Due::End(id, exit) => self.end(&id, End::Exit(exit)),
            Due::Tell(id) => drop(self.news.send(News::Changed(id))),
        }
    }

    /// Creates the process of a pending order.
    fn begin(&mut self, id: &StartId) {
        let fails = self.chance(self.faults.failed_starts);
        let failure = StartFailure::ALL[self.random.random_range(0..FAILURES)];
        let number = self.begun + 1;
        let Some(entry) = self.starts.get_mut(id) else {
            return;
        };
        if entry.observation.phase != Phase::Starting {
            return;
        }
        let event = if fails {
            let message = format!("drawn from the seed: {failure:?}");
            entry.observation.phase = Phase::NotStarted { failure, message };
            Event::NotStarted(failure)
        } else {
            entry.observation.phase = Phase::Running;
            entry.observation.backend_id = Some(number.to_string());
            self.begun = number;
            self.doom(id);
            Event::Begun
        };
        self.note(id, event);
        self.tell(id);
    }

    /// Draws the time and cause of a new process's end.
    fn doom(&mut self, id: &StartId) {
        if self.chance(self.faults.exits) {
            let exit = match self.random.random_range(0..6) {
                0 => Exit::Code(0),
                1 => Exit::Code(1),
                2 => Exit::Code(127),
                3 => Exit::Signal(11),
                4 => Exit::OutOfMemory,
                _ => Exit::Unknown,
            };
            let life = self.draw(self.faults.max_life);
            self.after(life, Due::End(id.clone(), exit));
        }
    }

    /// Ends a living process. Only the first end counts.
    fn end(&mut self, id: &StartId, end: End) {
        let at = self.now;
        let is_adopted = self.adopted.remove(id);
        let Some(entry) = self.starts.get_mut(id) else {
            return;
        };
        if entry.observation.phase.is_alive() {
            let end = match end {
                End::Exit(_) if is_adopted => End::Exit(Exit::Unknown),
                known => known,
            };
            entry.observation.phase = Phase::Ended { end, at };
            let was_ordered = entry.observation.stopping;
            self.note(id, Event::Ended { end, was_ordered });
            self.tell(id);
            self.forget_if_asked(id);
        }
    }

    fn forget_if_asked(&mut self, id: &StartId) {
        if self.starts.get(id).is_some_and(|entry| entry.then != Then::Keep) {
            self.starts.remove(id);
        }
    }

    /// Sends news, delayed or lost as the seed determines.
    fn tell(&mut self, id: &StartId) {
        if !self.chance(self.faults.lost_news) {
            let delay = self.draw(self.faults.max_delay);
            self.after(delay, Due::Tell(id.clone()));
        }
    }

    fn after(&mut self, wait: Duration, due: Due) {
        self.made += 1;
        self.due.insert((self.now.after(wait), self.made), due);
    }

    fn chance(&mut self, of_thousand: u32) -> bool {
        self.random.random_range(0..1_000) < of_thousand
    }

    fn draw(&mut self, longest: Duration) -> Duration {
        let longest = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(self.random.random_range(0..=longest))
    }
}

fn refused(message: &str) -> Error {
    Error::Refused {
        backend: NAME,
        message: message.to_owned(),
    }
}

impl Backend for Simulated {
    fn name(&self) -> &'static str {
        NAME
    }

    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn start(&self, start: Start) -> BoxFuture<'_, Result<Observation, Error>> {
        Box::pin(async move { self.world.lock().ask(|machine| machine.start(start, self.epoch)) })
    }

    fn stop(&self, stop: Stop) -> BoxFuture<'_, Result<Option<Observation>, Error>> {
        Box::pin(async move { self.world.lock().ask(|machine| machine.stop(&stop, self.epoch)) })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Observation>, Error>> {
        Box::pin(async move {
            self.world.lock().ask(|machine| {
                let starts = machine.starts.values();
                Ok(starts.map(|entry| entry.observation.clone()).collect())
            })
        })
    }

    fn forget(&self, id: StartId, _remove_output: bool) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { self.world.lock().ask(|machine| machine.forget(&id, self.epoch)) })
    }

    fn free_memory(&self) -> Option<u64> {
        self.world.lock().free_memory
    }

    fn news(&self) -> broadcast::Receiver<News> {
        self.world.lock().news.subscribe()
    }
}

#[cfg(test)]
mod tests;
