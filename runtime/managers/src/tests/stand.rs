//! The real controller over a world, in simulated time.

use std::time::Duration;

use watershed_controller::clock::TokioClock;
use watershed_controller::store::MemoryStore;
use watershed_controller::{Controller, Key, Resource, Timestamp, Uid};

use super::world::{Node, Thing, World, record};
use crate::{Desired, Managed, Record, Wanted, desired_of};

/// The time at which tests begin: 2027-03-01T00:00Z.
pub(super) const BEGIN: Timestamp = Timestamp(1_803_859_200_000);
/// Longer than anything takes, in simulated time.
pub(super) const LONG: Duration = Duration::from_secs(24 * 3600);

pub(super) struct Stand {
    pub(super) world: World,
    pub(super) store: MemoryStore,
    pub(super) clock: TokioClock,
    pub(super) controller: Controller,
}

impl Stand {
    /// Tokio's clock must be paused.
    pub(super) async fn new(world: World) -> Self {
        let (store, clock) = (MemoryStore::new(), TokioClock::starting_at(BEGIN));
        let controller = start(&world, &store, clock).await;
        Self {
            world,
            store,
            clock,
            controller,
        }
    }

    /// Starts another controller on the same store; the one before loses its lease, where it stands.
    pub(super) async fn restart(&mut self) {
        self.controller = start(&self.world, &self.store, self.clock).await;
    }

    pub(super) async fn apply(&self, name: &str, desired: Desired, node: Node) -> Uid {
        let things = self.controller.resources::<Managed<Thing>>();
        things.apply(name, &Wanted::new(desired, node)).await.unwrap()
    }

    /// Waits until nothing runs. Time passes only if something that runs waits for it.
    pub(super) async fn idle(&self) {
        self.controller.wait_until_idle(LONG).await.unwrap();
    }

    pub(super) async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        self.idle().await;
    }

    pub(super) fn get(&self, name: &str) -> Resource {
        let found = self.controller.get(Key::new("thing", name));
        found.unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(super) fn record(&self, name: &str) -> Record {
        record(&self.get(name)).unwrap()
    }

    pub(super) fn stage(&self, name: &str) -> String {
        self.record(name).stage.to_string()
    }

    pub(super) fn error(&self, name: &str) -> String {
        let error = self.get(name).row.error.clone();
        error.map_or_else(String::new, |error| format!("{}: {}", error.code, error.message))
    }

    /// Changes what is desired of a resource.
    pub(super) async fn wish(&self, name: &str, change: impl FnOnce(&mut Desired)) {
        let found = self.get(name);
        let mut desired = desired_of(&found.row.spec).unwrap();
        change(&mut desired);
        let node = found.spec::<Wanted<Node>>().unwrap().spec;
        self.apply(name, desired, (*node).clone()).await;
    }

    pub(super) fn now(&self) -> Timestamp {
        watershed_controller::clock::Clock::now(&self.clock).wall
    }

    /// Seconds since the beginning.
    pub(super) fn seconds(at: Timestamp) -> i64 {
        (at.0 - BEGIN.0) / 1000
    }

    /// The world has seen nothing that must not be.
    pub(super) fn check(&self) {
        assert_eq!(self.world.wrong(), Vec::<String>::new());
    }
}

async fn start(world: &World, store: &MemoryStore, clock: TokioClock) -> Controller {
    let builder = Controller::builder().store(store.clone()).clock(clock);
    let controller = Managed::new(Thing(world.clone()))
        .register(builder)
        .start()
        .await
        .unwrap();
    world.watch(controller.handle());
    controller
}
