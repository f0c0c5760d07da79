//! Tests of the executor on a paused clock. A seed determines how long handlers take, and whether they fail, panic or
//! ignore a cancel; every start is checked against the running operations.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::{Value as Json, json};
use tokio::time::{Instant, sleep};
use watershed_stategraph::{
    ApplyError, Context, Dependency, Executor, Extent, Graph, Handler, HandlerError, Item, ItemType,
    Observed, Ref, ReplaceOrder, Retry, StalePlan, State, Timestamp,
};

use crate::naive::{World, things};
use crate::proof::for_seeds;
use crate::worlds::{Drawing, draw, needs_recreate, r, refs, rng};

struct Stage {
    rng: SmallRng,
    is_wild: bool,
    running: BTreeSet<Ref>,
    /// Items of both graphs with their dependencies, to tell which items are related; none if that is not checked.
    world: Option<World>,
    done: Vec<String>,
}

/// Handler that changes nothing, slowly.
#[derive(Clone)]
struct Actor(Arc<Mutex<Stage>>);

enum Mood {
    Ready,
    Slow(u64),
    Background(u64),
    Stubborn,
}

impl Actor {
    fn new(seed: u64, is_wild: bool) -> Self {
        let stage = Stage {
            rng: rng(seed),
            is_wild,
            running: BTreeSet::new(),
            world: None,
            done: Vec::new(),
        };
        Self(Arc::new(Mutex::new(stage)))
    }

    fn begin(&self, what: &str, reference: &Ref) -> (Mood, u32) {
        let mut stage = self.0.lock().unwrap();
        let item = reference.base();
        if let Some(world) = &stage.world {
            for other in &stage.running {
                assert!(*other != item, "S7: {item} has two operations");
                let related = world.is_related(&item, other) || world.is_related(other, &item);
                assert!(!related, "S8: {item} and {other} are related");
            }
        }
        stage.running.insert(item);
        stage.done.push(format!("{what} {reference}"));
        if !stage.is_wild {
            return (Mood::Ready, 9);
        }
        let mood = match stage.rng.random_range(0..8) {
            0..=3 => Mood::Ready,
            4..=5 => Mood::Slow(stage.rng.random_range(1..50)),
            6 => Mood::Background(stage.rng.random_range(1..500)),
            _ => Mood::Stubborn,
        };
        (mood, stage.rng.random_range(0..10))
    }

    async fn act(&self, what: &str, context: &Context, reference: &Ref) -> Result<(), HandlerError> {
        let (mood, fate) = self.begin(what, reference);
        let running = Running(self.0.clone(), reference.base());
        match mood {
            Mood::Ready => {}
            Mood::Slow(ms) => tokio::select! {
                () = sleep(Duration::from_millis(ms)) => {}
                () = context.cancelled().cancelled() => return Err(HandlerError::new("was cancelled")),
            },
            Mood::Background(ms) => {
                context.go_on_in_background();
                sleep(Duration::from_millis(ms)).await;
            }
            // Does not look at its cancel at all.
            Mood::Stubborn => sleep(Duration::from_millis(200)).await,
        }
        drop(running);
        match fate {
            0 => panic!("an actor lost its head"),
            1 => Err(HandlerError::new("no luck")),
            _ => Ok(()),
        }
    }
}

/// Guard that removes the item from the running ones, also when the actor panics.
struct Running(Arc<Mutex<Stage>>, Ref);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.lock().unwrap().running.remove(&self.1);
    }
}

impl Handler<Json> for Actor {
    async fn create(&self, context: &Context, reference: &Ref, _: &Json) -> Result<(), HandlerError> {
        self.act("create", context, reference).await
    }

    async fn modify(
        &self,
        context: &Context,
        reference: &Ref,
        _: &Json,
        _: &Json,
    ) -> Result<(), HandlerError> {
        self.act("modify", context, reference).await
    }

    async fn delete(&self, context: &Context, reference: &Ref, _: &Json) -> Result<(), HandlerError> {
        self.act("delete", context, reference).await
    }

    async fn adopt(&self, context: &Context, alias: &Ref, _: &Ref) -> Result<(), HandlerError> {
        self.act("adopt", context, alias).await
    }

    async fn needs_recreate(&self, _: &Ref, old: &Json, new: &Json) -> Result<bool, HandlerError> {
        Ok(needs_recreate(old, new))
    }

    async fn observe(&self, _: &Ref, known: &Json) -> Observed<Json> {
        Observed::Present(known.clone())
    }
}

fn executor(actor: &Actor) -> Executor<Json> {
    let retry = Retry::Backoff {
        base_ms: 10,
        cap_ms: 100,
        attempts: None,
    };
    let plain = || ItemType::new().retry(retry).cancel_deadline_ms(100);
    let start = Instant::now();
    Executor::new()
        .handle("t", plain(), actor.clone())
        .handle("n", plain().replace(ReplaceOrder::CreateFirst), actor.clone())
        .handle("o", plain().observes(), actor.clone())
        .limit(4)
        .clock(move || Timestamp(1_000 + u64::try_from(start.elapsed().as_millis()).unwrap()))
}

async fn wild_round(seed: u64) {
    let mut rng = rng(seed);
    let drawing = Drawing {
        items: rng.random_range(1..=8),
        features: true,
    };
    let refs = refs(&mut rng, &drawing);
    let actor = Actor::new(seed, true);
    let executor = executor(&actor);
    let mut current = Graph::new("g");
    let mut intended = draw(&mut rng, &refs, &drawing);
    for _ in 0..6 {
        if rng.random_bool(0.4) {
            intended = draw(&mut rng, &refs, &drawing);
        }
        let call = executor.converge(&mut current, Some(&intended), &Extent::Everything);
        if rng.random_bool(0.2) {
            // Dropped in the middle: nothing is lost.
            let _ = tokio::time::timeout(Duration::from_millis(rng.random_range(0..30)), call).await;
        } else {
            call.await.unwrap();
        }
        if rng.random_bool(0.3) {
            executor.cancel("g", |_, _| true);
        }
        sleep(Duration::from_millis(rng.random_range(0..300))).await;
    }
    // Handlers come to their senses, and everything is mended.
    actor.0.lock().unwrap().is_wild = false;
    for _ in 0..5 {
        sleep(Duration::from_millis(1_000)).await;
        executor
            .converge(&mut current, Some(&intended), &Extent::Everything)
            .await
            .unwrap();
    }
    let world = World::new(&current, Some(&intended));
    if world.stuck().is_empty() {
        assert_eq!(things(&current), world.end(), "S5: not mended");
    }
}

#[test]
fn s7_wild_handlers_are_survived_and_everything_is_mended() {
    for_seeds("wild", |seed| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build();
        runtime.unwrap().block_on(wild_round(seed));
    });
}

fn pair() -> Graph<Json> {
    let mut graph = Graph::new("g");
    graph.insert(Item::new(r("t/a"), json!({"v": 1}))).unwrap();
    graph
        .insert(Item::new(r("t/b"), json!({"v": 1})).needs(Dependency::on(r("t/a"))))
        .unwrap();
    graph
}

#[tokio::test(start_paused = true)]
async fn s8_nothing_related_runs_at_the_same_time() {
    for seed in 0..100 {
        let mut rng = rng(seed);
        let drawing = Drawing {
            items: 8,
            features: true,
        };
        let refs = refs(&mut rng, &drawing);
        let (first, second) = (draw(&mut rng, &refs, &drawing), draw(&mut rng, &refs, &drawing));
        let actor = Actor::new(seed, true);
        let executor = executor(&actor);
        let mut current = Graph::new("g");
        actor.0.lock().unwrap().world = Some(World::new(&current, Some(&first)));
        executor
            .converge(&mut current, Some(&first), &Extent::Everything)
            .await
            .unwrap();
        // What still runs then belongs to the first intent: let it end.
        sleep(Duration::from_millis(1_000)).await;
        actor.0.lock().unwrap().world = None;
        executor
            .converge(&mut current, Some(&first), &Extent::Item(refs[0].clone()))
            .await
            .ok();
        sleep(Duration::from_millis(1_000)).await;
        executor
            .converge(&mut current, Some(&second), &Extent::Everything)
            .await
            .unwrap();
        sleep(Duration::from_millis(1_000)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn s11_apply_does_what_the_plan_says_and_refuses_a_stale_one() {
    let actor = Actor::new(1, false);
    let executor = executor(&actor);
    let mut current = Graph::new("g");
    let intended = pair();
    let plan = executor
        .plan(&current, Some(&intended), &Extent::Everything)
        .await
        .unwrap();
    let stored = serde_json::to_string(&plan).unwrap();
    let plan = serde_json::from_str(&stored).unwrap();
    executor
        .apply(&mut current, Some(&intended), &plan)
        .await
        .unwrap();
    assert_eq!(actor.0.lock().unwrap().done, ["create t/a", "create t/b"]);
    let refused = executor.apply(&mut current, Some(&intended), &plan).await;
    assert_eq!(refused, Err(ApplyError::Stale(StalePlan::Current)));
    let empty = executor
        .plan(&current, Some(&intended), &Extent::Everything)
        .await
        .unwrap();
    assert_eq!(empty.operations, []);
    let mut other = pair();
    other.remove(&r("t/b"));
    let refused = executor.apply(&mut current, Some(&other), &empty).await;
    assert_eq!(refused, Err(ApplyError::Stale(StalePlan::Intended)));
}

#[tokio::test(start_paused = true)]
async fn s7_the_caller_is_told_when_a_background_operation_ends() {
    struct Behind;
    impl Handler<Json> for Behind {
        async fn create(&self, context: &Context, _: &Ref, _: &Json) -> Result<(), HandlerError> {
            context.go_on_in_background();
            sleep(Duration::from_millis(50)).await;
            Ok(())
        }

        async fn modify(&self, _: &Context, _: &Ref, _: &Json, _: &Json) -> Result<(), HandlerError> {
            Ok(())
        }

        async fn delete(&self, _: &Context, _: &Ref, _: &Json) -> Result<(), HandlerError> {
            Ok(())
        }
    }
    let executor = Executor::new().handle("t", ItemType::new(), Behind);
    let (mut current, intended) = (Graph::new("g"), pair());
    let report = executor
        .converge(&mut current, Some(&intended), &Extent::Everything)
        .await
        .unwrap();
    assert_eq!(report.status.running.len(), 1);
    assert_eq!(current.get(&r("t/a")).map(Item::state), Some(State::Creating));
    for _ in 0..2 {
        assert_eq!(executor.ended().await.as_deref(), Some("g"));
        executor
            .converge(&mut current, Some(&intended), &Extent::Everything)
            .await
            .unwrap();
    }
    let report = executor
        .converge(&mut current, Some(&intended), &Extent::Everything)
        .await
        .unwrap();
    assert!(report.status.is_converged());
}

#[tokio::test(start_paused = true)]
async fn s7_rechecked_items_are_observed() {
    let actor = Actor::new(1, false);
    let executor = executor(&actor);
    let mut intended = Graph::new("g");
    intended.insert(Item::new(r("o/a"), json!({"v": 1}))).unwrap();
    let mut current = Graph::new("g");
    executor
        .converge(&mut current, Some(&intended), &Extent::Everything)
        .await
        .unwrap();
    executor.recheck(&mut current);
    assert_eq!(
        current.get(&r("o/a")).map(Item::state),
        Some(State::Unknown(None))
    );
    let report = executor
        .converge(&mut current, Some(&intended), &Extent::Everything)
        .await
        .unwrap();
    assert!(report.status.is_converged());
    assert_eq!(actor.0.lock().unwrap().done, ["create o/a"]);
}

#[tokio::test(start_paused = true)]
async fn s12_the_log_has_starts_ends_and_errors_as_lines() {
    let executor = executor(&Actor::new(1, false));
    let mut current = Graph::new("g");
    let report = executor
        .converge(&mut current, Some(&pair()), &Extent::Everything)
        .await
        .unwrap();
    let lines = report.log.to_string();
    assert_eq!(
        lines,
        "create t/a: is intended, 0 ms\ncreate t/b: is intended, 0 ms\n"
    );
    let stored = serde_json::to_string(&report.log).unwrap();
    assert_eq!(
        serde_json::from_str::<watershed_stategraph::Log>(&stored).unwrap(),
        report.log
    );
}
