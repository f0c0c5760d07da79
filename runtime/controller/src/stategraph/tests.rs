//! Tests of operations that outlive their invocation, and of external items that come and go.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use watershed_core::{Error, Key};
use watershed_stategraph::{
    Context, Dependency, Executor, Graph, Handler, HandlerError, Item, ItemType, Ref, State,
};

use super::{GraphContext, GraphReconciler, GraphState, Renderer};
use crate::{Controller, KindOptions, Resource, json_message};

const LONG: Duration = Duration::from_secs(20);

#[derive(serde::Serialize, serde::Deserialize)]
struct Menu(Vec<String>);

json_message!(Menu, format = 1);

/// Cakes need the oven, and the oven needs power, which is not ours.
#[derive(Default)]
struct Kitchen {
    has_power: Arc<AtomicBool>,
}

fn named(text: &str) -> Ref {
    Ref::parse(text).unwrap()
}

impl Renderer for Kitchen {
    type Spec = Menu;
    type Value = Value;

    fn render(&self, context: &GraphContext<Self>, intended: &mut Graph<Value>) -> Result<(), Box<Error>> {
        let oven = Item::new(named("oven/kitchen"), json!("hot"));
        intended
            .put(oven.needs(Dependency::on(named("supply/mains"))))
            .unwrap();
        for name in &context.spec().0 {
            let cake = Item::new(Ref::new("cake", name).unwrap(), json!("baked"));
            intended
                .put(cake.needs(Dependency::on(named("oven/kitchen"))))
                .unwrap();
        }
        Ok(())
    }

    fn surroundings(&self, _: &GraphContext<Self>, current: &mut Graph<Value>) -> Result<(), Box<Error>> {
        if self.has_power.load(Ordering::SeqCst) {
            current
                .put(Item::external(named("supply/mains"), json!({})))
                .unwrap();
        } else {
            current.remove(&named("supply/mains"));
        }
        Ok(())
    }
}

/// The things that stand in the kitchen.
type Things = Arc<Mutex<BTreeSet<Ref>>>;

struct Cook {
    things: Things,
    /// One permit for each oven that may become hot; none is waited for if there is no such gate.
    heat: Option<Arc<Semaphore>>,
}

impl Handler<Value> for Cook {
    async fn create(&self, context: &Context, reference: &Ref, _: &Value) -> Result<(), HandlerError> {
        if let Some(heat) = &self.heat {
            context.go_on_in_background();
            tokio::select! {
                permit = heat.acquire() => permit.map_err(|error| HandlerError::new(error.to_string()))?.forget(),
                () = context.cancelled().cancelled() => return Err(HandlerError::new("cancelled")),
            }
        }
        self.things.lock().unwrap().insert(reference.clone());
        Ok(())
    }

    async fn modify(&self, _: &Context, _: &Ref, _: &Value, _: &Value) -> Result<(), HandlerError> {
        Ok(())
    }

    async fn delete(&self, _: &Context, reference: &Ref, _: &Value) -> Result<(), HandlerError> {
        self.things.lock().unwrap().remove(reference);
        Ok(())
    }
}

struct World {
    controller: Controller,
    follower: tokio::task::JoinHandle<()>,
    has_power: Arc<AtomicBool>,
    heat: Arc<Semaphore>,
    things: Things,
}

impl World {
    async fn new(ovens_take_long: bool) -> Self {
        let (things, heat) = (Things::default(), Arc::new(Semaphore::new(0)));
        let cook = |heat: Option<&Arc<Semaphore>>| Cook {
            things: Arc::clone(&things),
            heat: heat.cloned(),
        };
        let executor = Executor::new()
            .handle("oven", ItemType::new(), cook(ovens_take_long.then_some(&heat)))
            .handle("cake", ItemType::new(), cook(None));
        let kitchen = Kitchen::default();
        let has_power = Arc::clone(&kitchen.has_power);
        let kind = GraphReconciler::new(kitchen, executor);
        let controller = Controller::builder()
            .kind(KindOptions::new("kitchen"), kind.clone())
            .start()
            .await
            .unwrap();
        let follower = tokio::spawn(kind.follow(controller.handle()));
        Self {
            controller,
            follower,
            has_power,
            heat,
            things,
        }
    }

    fn key() -> Key {
        Key::new("kitchen", "mine")
    }

    async fn create(&self) {
        let menu = Menu(vec!["apple".to_owned()]);
        let declared = Resource::declare("kitchen", "mine", &menu).unwrap();
        self.controller.create(declared).await.unwrap();
        self.controller.wait_until_idle(LONG).await.unwrap();
    }

    async fn set_power(&self, on: bool) {
        self.has_power.store(on, Ordering::SeqCst);
        let mut request = self.controller.reconcile(Self::key()).await.unwrap();
        request.settled(LONG).await.unwrap();
    }

    fn standing(&self) -> Vec<String> {
        let things = self.things.lock().unwrap();
        things.iter().map(ToString::to_string).collect()
    }
}

/// Returns the items of a kitchen with their states, as its state says.
fn states(resource: &Resource) -> Vec<(String, State)> {
    let state = resource.state::<GraphState<Value>>().unwrap();
    let items = state.iter().flat_map(|state| state.0.items());
    items
        .filter(|item| !item.is_external())
        .map(|item| (item.reference().to_string(), item.state()))
        .collect()
}

#[tokio::test]
async fn what_goes_on_in_the_background_asks_for_its_resource_when_it_has_ended() {
    let world = World::new(true).await;
    world.has_power.store(true, Ordering::SeqCst);
    world.create().await;
    // The invocation has ended, the oven is not hot yet.
    let resource = world.controller.get(World::key()).unwrap();
    assert_eq!(states(&resource), [("oven/kitchen".to_owned(), State::Creating)]);
    assert_eq!(world.standing(), Vec::<String>::new());

    world.heat.add_permits(1);
    let is_baked = |found: Option<&Resource>| found.is_some_and(|resource| states(resource).len() == 2);
    let found = world
        .controller
        .wait_until(World::key(), is_baked, LONG)
        .await
        .unwrap();
    world.controller.wait_until_idle(LONG).await.unwrap();
    assert!(found.is_some());
    assert_eq!(world.standing(), ["cake/apple", "oven/kitchen"]);
}

#[tokio::test]
async fn whoever_follows_what_goes_on_in_the_background_ends_with_the_controller() {
    let world = World::new(true).await;
    world.has_power.store(true, Ordering::SeqCst);
    world.create().await;
    // One end was followed, and another operation goes on.
    world.heat.add_permits(1);
    let is_baked = |found: Option<&Resource>| found.is_some_and(|resource| states(resource).len() == 2);
    let found = world.controller.wait_until(World::key(), is_baked, LONG).await;
    assert!(found.unwrap().is_some());
    let declared = Resource::declare("kitchen", "other", &Menu(Vec::new())).unwrap();
    world.controller.create(declared).await.unwrap();
    world.controller.wait_until_idle(LONG).await.unwrap();

    world.controller.shutdown(LONG).await.unwrap();
    tokio::time::timeout(LONG, world.follower)
        .await
        .expect("it ends although nothing of its graphs does")
        .unwrap();
}

#[tokio::test]
async fn whoever_follows_ends_with_a_controller_that_is_dropped() {
    let world = World::new(false).await;
    drop(world.controller);
    let ended = tokio::time::timeout(LONG, world.follower).await;
    ended.expect("there is nothing to follow any more").unwrap();
}

#[tokio::test]
async fn a_delete_ends_what_goes_on_in_the_background() {
    let world = World::new(true).await;
    world.has_power.store(true, Ordering::SeqCst);
    world.create().await;
    world.controller.delete(World::key()).await.unwrap();
    let is_gone = |found: Option<&Resource>| found.is_none();
    world
        .controller
        .wait_until(World::key(), is_gone, LONG)
        .await
        .unwrap();
    assert_eq!(world.standing(), Vec::<String>::new());
}

#[tokio::test]
async fn items_wait_for_what_others_bring_and_leave_with_it() {
    let world = World::new(false).await;
    world.create().await;
    assert_eq!(world.standing(), Vec::<String>::new());
    assert!(world.controller.get(World::key()).unwrap().row.error.is_none());

    world.set_power(true).await;
    assert_eq!(world.standing(), ["cake/apple", "oven/kitchen"]);

    world.set_power(false).await;
    assert_eq!(world.standing(), Vec::<String>::new());

    // The external item itself is nothing that a delete would have to wait for.
    world.set_power(true).await;
    world.controller.delete(World::key()).await.unwrap();
    world.controller.wait_until_idle(LONG).await.unwrap();
    assert_eq!(world.standing(), Vec::<String>::new());
    assert!(world.controller.get(World::key()).is_err());
}
