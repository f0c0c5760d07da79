//! Groups of the current graph, and graphs that were stored by earlier versions.

use serde_json::{Value as Json, json};
use watershed_stategraph::{
    Effect, Extent, Graph, Group, Input, Item, Operation, Operations, Options, Planner, State, Timestamp,
};

use crate::worlds::{r, types};

fn call(current: &mut Graph<Json>, intended: &Graph<Json>, extent: &Extent) -> usize {
    let (types, mut operations) = (types(), Operations::default());
    let options = Options::default();
    let mut planner =
        Planner::new(&types, current, &mut operations, Some(intended), extent, options).unwrap();
    let mut inputs = vec![Input::Begin];
    let mut started = 0;
    while let Some(input) = inputs.pop() {
        for effect in planner.step(Timestamp(100_000), input) {
            match effect {
                Effect::Start(start) => {
                    started += 1;
                    let (id, result) = (start.id, Ok(()));
                    inputs.push(Input::Ended { id, result });
                }
                Effect::Ask { reference, .. } => {
                    let answer = Ok(false);
                    inputs.push(Input::Answered { reference, answer });
                }
                _ => {}
            }
        }
    }
    started
}

fn groups(graph: &Graph<Json>) -> Vec<String> {
    let line = |group: &Group| format!("{} {}", group.path, group.description).trim().to_owned();
    graph.groups().map(line).collect()
}

#[test]
fn s9_descriptions_reach_the_current_graph_and_empty_groups_leave_it() {
    let mut current = Graph::new("g");
    let mut intended = Graph::new("g").describe("all there is");
    intended.insert_at("a/b", Item::new(r("t/x"), json!(1))).unwrap();
    intended.add_group("a", "outer");
    intended.add_group("empty", "for later");
    call(&mut current, &intended, &Extent::Everything);
    assert_eq!(groups(&current), ["a outer", "a/b", "empty for later"]);
    assert_eq!(current.description(), "all there is");
    for extent in [
        Extent::Group("a".into()),
        Extent::Item(r("t/x")),
        Extent::Changed([r("t/x")].into()),
    ] {
        let mut current = current.clone();
        let mut intended = Graph::new("g");
        intended.insert_at("a/c", Item::new(r("t/x"), json!(2))).unwrap();
        intended.add_group("a", "changed");
        call(&mut current, &intended, &extent);
        assert_eq!(
            groups(&current),
            ["a changed", "a/c", "empty for later"],
            "{extent:?}"
        );
    }
    call(&mut current, &Graph::new("g"), &Extent::Everything);
    assert_eq!(groups(&current), [""; 0]);
}

#[test]
fn s9_a_thousand_renamed_groups_leave_one() {
    let mut current = Graph::new("g");
    for at in 0..1_000 {
        let mut intended = Graph::new("g");
        let path = format!("p{at}/inner");
        intended
            .insert_at(path.as_str(), Item::new(r("t/x"), json!(1)))
            .unwrap();
        let extent = if at % 2 == 0 {
            Extent::Everything
        } else {
            Extent::Changed([r("t/x")].into())
        };
        call(&mut current, &intended, &extent);
    }
    assert_eq!(groups(&current), ["p999", "p999/inner"]);
}

#[test]
fn s1_a_group_within_a_group_is_stored_and_read_as_it_was_made() {
    let mut graph = Graph::new("g");
    graph.insert_at("x/y/z", Item::new(r("t/a"), json!(1))).unwrap();
    let read: Graph<Json> = serde_json::from_str(&serde_json::to_string(&graph).unwrap()).unwrap();
    assert_eq!(groups(&graph), ["x", "x/y", "x/y/z"]);
    assert_eq!(read, graph);
    assert_eq!(read.fingerprint(), graph.fingerprint());
}

#[test]
fn a_graph_that_an_earlier_version_stored_is_read_and_converged() {
    let stored = include_str!("stored-1.json");
    let mut current: Graph<Json> = serde_json::from_str(stored).unwrap();
    let failed = current.get(&r("t/failed")).unwrap();
    assert_eq!(failed.state(), State::Failed(Operation::Modify));
    assert_eq!(failed.failure().map(|failure| failure.attempts), Some(2));
    assert_eq!(current.displaced().collect::<Vec<_>>(), [&r("t/displaced")]);
    assert_eq!(groups(&current), ["outer", "outer/inner described"]);
    let mut intended = Graph::new("g");
    for (name, value) in [("t/failed", 2), ("t/base", 1), ("t/displaced", 1)] {
        intended
            .insert(Item::new(r(name), json!({"v": value, "k": 0})))
            .unwrap();
    }
    // The failed modify, the displaced create, and the rest of the failed create.
    assert_eq!(call(&mut current, &intended, &Extent::Everything), 3);
    assert_eq!(call(&mut current, &intended, &Extent::Everything), 0);
    assert_eq!(current.len(), 3);
    assert_eq!(groups(&current), [""; 0]);
}
