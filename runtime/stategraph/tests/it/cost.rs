//! Tests of the cost of calls in items and edges, and of equal results when only the changed items are named.

use std::collections::BTreeSet;

use rand::Rng;
use serde_json::{Value as Json, json};
use watershed_stategraph::{
    Dependency, Effect, Extent, Graph, Input, Item, Operations, Options, Planner, Ref, Timestamp,
};

use crate::naive::things;
use crate::worlds::{Drawing, draw, needs_recreate, r, refs, rng, types};

/// Carries out a call in which every operation succeeds at once. Returns the cost of planning, and the number of
/// operations.
fn call(current: &mut Graph<Json>, intended: Option<&Graph<Json>>, extent: &Extent, at: u64) -> (u64, usize) {
    let (types, mut operations) = (types(), Operations::default());
    let options = Options::default();
    let mut planner = Planner::new(&types, current, &mut operations, intended, extent, options).unwrap();
    let mut inputs = vec![Input::Begin];
    let mut started = 0;
    while let Some(input) = inputs.pop() {
        for effect in planner.step(Timestamp(at), input) {
            match effect {
                Effect::Start(start) => {
                    started += 1;
                    inputs.push(Input::Ended {
                        id: start.id,
                        result: Ok(()),
                    });
                }
                Effect::Ask { reference, old, new } => inputs.push(Input::Answered {
                    reference,
                    answer: Ok(needs_recreate(old.value(), new.value())),
                }),
                Effect::Done => {}
                other => panic!("unexpected {other:?}"),
            }
        }
    }
    (planner.cost(), started)
}

fn name(at: usize) -> Ref {
    r(&format!("t/{at:06}"))
}

/// Builds a graph of `size` items, each of which depends on the earlier items that `shape` names.
fn graph(size: usize, shape: impl Fn(usize) -> Vec<usize>, value: i32) -> Graph<Json> {
    let mut graph = Graph::new("g");
    for at in 0..size {
        let needs = shape(at).into_iter().map(|target| Dependency::on(name(target)));
        let item = Item::new(name(at), json!({"v": value, "k": 0}));
        graph.insert(item.with_dependencies(needs.collect())).unwrap();
    }
    graph
}

fn chain(at: usize) -> Vec<usize> {
    at.checked_sub(1).into_iter().collect()
}

fn fan(at: usize) -> Vec<usize> {
    if at == 0 { Vec::new() } else { vec![0] }
}

fn ladder(at: usize) -> Vec<usize> {
    (at.saturating_sub(10)..at).collect()
}

/// Returns the costs of the calls in a graph's life: create, no change, change of every item, delete.
fn life(size: usize, shape: fn(usize) -> Vec<usize>) -> [u64; 4] {
    let (first, second) = (graph(size, shape, 1), graph(size, shape, 2));
    let mut current = Graph::new("g");
    let calls = [Some(&first), Some(&first), Some(&second), None];
    calls.map(|intended| call(&mut current, intended, &Extent::Everything, 1_000).0)
}

#[test]
fn s14_a_call_costs_as_much_as_there_are_items_and_edges() {
    for (what, shape) in [
        ("chain", chain as fn(usize) -> Vec<usize>),
        ("fan", fan),
        ("ladder", ladder),
    ] {
        let (small, large) = (life(1_000, shape), life(2_000, shape));
        for (phase, (small, large)) in small.into_iter().zip(large).enumerate() {
            let ratio = large as f64 / small as f64;
            assert!(
                ratio <= 2.2,
                "{what}, call {phase}: {small} for 1,000 items and {large} for 2,000"
            );
        }
    }
}

#[test]
fn s14_a_change_that_is_told_costs_as_much_as_it_concerns() {
    let costs = [1_000, 10_000].map(|size| {
        let mut intended = graph(size, ladder, 1);
        let mut current = Graph::new("g");
        call(&mut current, Some(&intended), &Extent::Everything, 1_000);
        let middle = name(size / 2);
        let item = intended.get(&middle).unwrap().clone();
        intended.put(item.with_value(json!({"v": 2, "k": 0}))).unwrap();
        let changed = Extent::Changed(BTreeSet::from([middle]));
        let (cost, started) = call(&mut current, Some(&intended), &changed, 2_000);
        assert_eq!(started, 1);
        cost
    });
    assert_eq!(costs[0], costs[1]);
    assert!(costs[0] < 500, "{costs:?}");
}

#[test]
fn telling_what_changed_leads_where_looking_at_everything_leads() {
    for seed in 0..5_000 {
        let mut rng = rng(seed);
        let drawing = Drawing {
            items: rng.random_range(1..=10),
            features: true,
        };
        let refs = refs(&mut rng, &drawing);
        let first = draw(&mut rng, &refs, &drawing);
        let mut told = Graph::new("g");
        call(&mut told, Some(&first), &Extent::Everything, 1_000);
        let mut whole = told.clone();
        let other = draw(&mut rng, &refs, &drawing);
        // Some items are taken from another graph, and named.
        let mut second = first.clone();
        let mut changed = BTreeSet::new();
        for reference in refs.iter().filter(|one| one.type_name() != "e") {
            if rng.random_bool(0.3) {
                second.remove(reference);
                if let Some(item) = other.get(reference) {
                    second.put(item.clone()).unwrap();
                }
                changed.insert(reference.clone());
            }
        }
        call(&mut whole, Some(&second), &Extent::Everything, 2_000);
        call(&mut told, Some(&second), &Extent::Changed(changed.clone()), 2_000);
        let (told, whole) = (things(&told), things(&whole));
        assert_eq!(told, whole, "seed {seed}, changed {changed:?}");
    }
}
