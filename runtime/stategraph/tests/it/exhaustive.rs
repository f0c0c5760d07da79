//! Tests of all graphs of three items with all intents: each item is absent or has one of three values, one of which
//! needs a recreate, and each pair is connected or not.
//!
//! `WATERSHED_PROOF=all` runs all of them. Other runs take as many as their share allows, drawn at random.

use rand::Rng;
use serde_json::json;
use watershed_stategraph::{Dependency, Graph, Item, Operator, Predicate, Timestamp};

use crate::naive::things;
use crate::proof::{Share, for_seeds, share};
use crate::rehearsal::{Manners, call};
use crate::worlds::{r, rng, types};

const NAMES: [&str; 3] = ["t/a", "n/b", "t/c"];

/// Returns the index and value of each item that `code` makes present, with one of three values; the others are absent.
fn values(code: usize) -> impl Iterator<Item = (usize, i32, i32)> {
    (0..3).filter_map(move |at| match code / 4_usize.pow(at as u32) % 4 {
        0 => None,
        1 => Some((at, 0, 0)),
        2 => Some((at, 1, 0)),
        _ => Some((at, 1, 1)),
    })
}

/// Returns the graph with the values of `code`, an edge for each bit of `edges`, and a predicate for each bit of
/// `conditions`. Bits stand for the six ordered pairs of items.
fn graph(code: usize, edges: usize, conditions: usize) -> Graph<serde_json::Value> {
    let mut graph = Graph::new("g");
    let pairs = [(0, 1), (0, 2), (1, 2), (1, 0), (2, 0), (2, 1)];
    for (at, v, k) in values(code) {
        let targets = pairs
            .iter()
            .enumerate()
            .filter(|(bit, pair)| edges >> bit & 1 == 1 && pair.0 == at);
        let needs = targets.map(|(bit, pair)| {
            let need = Dependency::on(r(NAMES[pair.1]));
            let at_least_one = Predicate::field("v", Operator::Ge, json!(1));
            if conditions >> bit & 1 == 1 {
                need.when(at_least_one)
            } else {
                need
            }
        });
        let item = Item::new(r(NAMES[at]), json!({"v": v, "k": k})).with_dependencies(needs.collect());
        graph.insert(item).unwrap();
    }
    graph
}

/// Converges to a graph, checks every operation on the way, and checks that nothing is left to do.
fn converge(current: &mut Graph<serde_json::Value>, intended: &Graph<serde_json::Value>, at: u64) {
    let (types, mut rng) = (types(), rng(7));
    let manners = Manners {
        limit: 3,
        ..Manners::default()
    };
    let before = current.clone();
    let outcome = call(&mut rng, &types, current, Some(intended), manners, Timestamp(at));
    let end = outcome.world.end();
    if things(current) != end {
        let stuck = outcome.world.stuck();
        let alone = stuck.iter().any(|one| outcome.world.before.contains_key(one));
        assert!(alone, "{before:?}\n{intended:?}\n{}", outcome.log);
    }
    let again = call(&mut rng, &types, current, Some(intended), manners, Timestamp(at));
    assert_eq!(again.done, [], "{before:?}\n{intended:?}");
}

/// Changes every graph into every other one. The first graph has edges along one order only, which covers every acyclic
/// graph up to names.
fn every_change(suite: &str, edges_after: usize, conditions: impl Fn(usize) -> usize + Sync) {
    let first = |before: usize, edges: usize| {
        let mut first = Graph::new("g");
        converge(&mut first, &graph(before, edges, conditions(edges)), 1_000);
        first
    };
    let change = |first: &Graph<serde_json::Value>, after: usize, edges: usize| {
        let mut current = first.clone();
        converge(&mut current, &graph(after, edges, conditions(edges)), 200_000);
    };
    if share() != Share::All {
        return for_seeds(suite, |seed| {
            let mut rng = rng(seed);
            let mut draw = |below: usize| rng.random_range(0..below);
            let first = first(draw(64), draw(8));
            change(&first, draw(64), draw(edges_after));
        });
    }
    let run = |half: usize| {
        for before in (half..64).step_by(2) {
            for edges in 0..8 {
                let first = first(before, edges);
                for after in 0..64 {
                    (0..edges_after).for_each(|edges| change(&first, after, edges));
                }
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| run(0));
        run(1);
    });
}

#[test]
fn every_change_between_two_graphs_of_three_items_is_right() {
    every_change("changes", 64, |_| 0);
}

#[test]
fn every_change_under_conditions_is_right() {
    every_change("conditions", 8, |edges| edges);
}
