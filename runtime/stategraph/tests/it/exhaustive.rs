//! All graphs of three items with all intents: each item absent or with one of two values, each pair
//! connected or not, one value that cannot be modified into the other, in both graphs.

use serde_json::json;
use watershed_stategraph::{Dependency, Graph, Item, Operator, Predicate, Timestamp};

use crate::naive::things;
use crate::rehearsal::{Manners, call};
use crate::worlds::{r, rng, types};

const NAMES: [&str; 3] = ["t/a", "n/b", "t/c"];

/// Each item in one of four ways: absent, plain, another value, a value that needs a recreate.
fn values(code: usize) -> impl Iterator<Item = (usize, i32, i32)> {
    (0..3).filter_map(move |at| match code / 4_usize.pow(at as u32) % 4 {
        0 => None,
        1 => Some((at, 0, 0)),
        2 => Some((at, 1, 0)),
        _ => Some((at, 1, 1)),
    })
}

/// The graph with these values, and an edge for each bit: six ordered pairs of items.
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

/// Converges to the first graph, then to the second, checking every operation on the way.
fn round(first: &Graph<serde_json::Value>, second: &Graph<serde_json::Value>) {
    let types = types();
    let mut rng = rng(7);
    let mut current = Graph::new("g");
    for (intended, at) in [(first, 1_000), (second, 200_000)] {
        let manners = Manners {
            limit: 3,
            ..Manners::default()
        };
        let outcome = call(
            &mut rng,
            &types,
            &mut current,
            Some(intended),
            manners,
            Timestamp(at),
        );
        let alone = outcome
            .world
            .stuck()
            .iter()
            .any(|one| outcome.world.before.contains_key(one));
        assert!(
            alone || things(&current) == outcome.world.end(),
            "{first:?}\n{second:?}"
        );
        let again = call(
            &mut rng,
            &types,
            &mut current,
            Some(intended),
            manners,
            Timestamp(at),
        );
        assert_eq!(again.done, []);
    }
}

/// Edges along one order, which covers every acyclic graph up to names, against all edges of the intent.
#[test]
fn every_change_between_two_graphs_of_three_items_is_right() {
    for before in 0..64 {
        for edges in 0..8 {
            let first = graph(before, edges, 0);
            for after in 0..64 {
                for edges in 0..64 {
                    if (before * 31 + after * 7 + edges) % thinning() == 0 {
                        round(&first, &graph(after, edges, 0));
                    }
                }
            }
        }
    }
}

#[test]
fn every_change_under_conditions_is_right() {
    for before in 0..64 {
        for edges in 0..8 {
            let first = graph(before, edges, edges);
            for after in 0..64 {
                for edges in 0..8 {
                    if (before * 31 + after * 7 + edges) % thinning() == 0 {
                        round(&first, &graph(after, edges, edges));
                    }
                }
            }
        }
    }
}

/// Two million changes take minutes: a usual run takes every nth, `STATEGRAPH_EXHAUSTIVE=1` all.
fn thinning() -> usize {
    if std::env::var_os("STATEGRAPH_EXHAUSTIVE").is_some() {
        1
    } else {
        41
    }
}
