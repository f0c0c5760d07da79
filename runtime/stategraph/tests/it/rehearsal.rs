//! Runs of the planner against the naive reference, in an order that a seed determines.

use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::Value as Json;
use watershed_stategraph::{
    Effect, Extent, Graph, Input, Operation, OperationId, Operations, Options, Planner, Ref, Start, Status,
    Timestamp, Types,
};

use crate::naive::{World, show};
use crate::worlds::needs_recreate;

/// Behavior of handlers during a call.
#[derive(Clone, Copy, Default)]
pub(crate) struct Manners {
    /// Average number of operations per failure; zero for no failures.
    pub(crate) fails: u32,
    /// True if an operation failed in an earlier call.
    pub(crate) with_failures: bool,
    pub(crate) limit: usize,
}

pub(crate) struct Outcome {
    pub(crate) done: Vec<(Operation, Ref)>,
    pub(crate) status: Status,
    /// Operations and their reasons, as text for failure messages.
    pub(crate) log: String,
    pub(crate) world: World,
}

/// Runs one call to its end, and panics if an operation breaks a rule.
pub(crate) fn call(
    rng: &mut SmallRng,
    types: &Types<Json>,
    current: &mut Graph<Json>,
    intended: Option<&Graph<Json>>,
    manners: Manners,
    now: Timestamp,
) -> Outcome {
    let mut world = World::new(current, intended);
    world.with_failures = manners.with_failures;
    let mut operations = Operations::default();
    let options = Options {
        limit: manners.limit.max(1),
        ..Options::default()
    };
    let mut planner = Planner::new(
        types,
        current,
        &mut operations,
        intended,
        &Extent::Everything,
        options,
    )
    .unwrap();
    let mut done = Vec::new();
    let mut running: Vec<Start<Json>> = Vec::new();
    let mut effects = planner.step(now, Input::Begin);
    loop {
        let mut answers = Vec::new();
        world.relink(planner.current());
        for effect in effects {
            match effect {
                Effect::Start(start) => {
                    if let Some(objection) = world.objection(&start) {
                        let (things, wanted) = (show(&world.before), show(&world.wanted));
                        let (operation, reference) = (start.operation, &start.reference);
                        let open = planner.current().items().filter(|item| item.failure().is_some());
                        let open: Vec<_> = open.map(|item| (item.reference(), item.state())).collect();
                        panic!(
                            "{operation} {reference}: {objection}\nbefore\n{things}intended\n{wanted}open {open:?}\n{}",
                            planner.log()
                        );
                    }
                    world.start(&start);
                    done.push((start.operation, start.reference.clone()));
                    running.push(start);
                }
                Effect::Ask { reference, old, new } => {
                    let answer = Ok(needs_recreate(old.value(), new.value()));
                    answers.push(Input::Answered { reference, answer });
                }
                Effect::Done => {}
                other => panic!("unexpected {other:?}"),
            }
        }
        if !answers.is_empty() {
            effects = answers
                .into_iter()
                .flat_map(|answer| planner.step(now, answer))
                .collect();
            continue;
        }
        if running.is_empty() {
            break;
        }
        let ended = running.swap_remove(rng.random_range(0..running.len()));
        let fails = manners.fails > 0 && rng.random_ratio(1, manners.fails);
        world.end_of(&ended.reference, !fails);
        effects = planner.step(
            now,
            Input::Ended {
                id: ended.id,
                result: result(ended.id, fails),
            },
        );
    }
    assert!(
        planner.is_done(),
        "the call came to rest without an end\n{}",
        planner.log()
    );
    let (log, status) = planner.into_report();
    Outcome {
        done,
        status,
        log: log.to_string(),
        world,
    }
}

fn result(id: OperationId, fails: bool) -> Result<(), String> {
    if fails {
        Err(format!("operation {} failed", id.0))
    } else {
        Ok(())
    }
}
