//! Graphs whose items are in three parts, drawn at random.

use std::collections::BTreeSet;

use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::{Value as Json, json};
use watershed_stategraph::{Extent, Graph, GroupPath, Item, Ref};

use crate::worlds::{Drawing, draw, draw_value, r};

const PARTS: [&str; 3] = ["one", "two", "two/inner"];

/// Returns the part that an item belongs to, derived from its name; none for an item at the root.
pub(crate) fn part_of(reference: &Ref) -> Option<&'static str> {
    let at = reference.name().bytes().map(usize::from).sum::<usize>() % 4;
    PARTS.get(at).copied()
}

/// Draws an intended graph whose items are in parts; about a tenth of them are in a random part or none.
pub(crate) fn draw_in_parts(rng: &mut SmallRng, refs: &[Ref], drawing: &Drawing) -> Graph<Json> {
    let mut graph = draw(rng, refs, drawing);
    for reference in refs {
        let part = if rng.random_ratio(1, 10) {
            PARTS.get(rng.random_range(0..4)).copied()
        } else {
            part_of(reference)
        };
        if let Some(part) = part.filter(|_| graph.get(reference).is_some()) {
            graph.move_to(reference, part).unwrap();
            if rng.random_bool(0.3) {
                graph.add_group(part, format!("described by {}", reference.name()));
            }
        }
    }
    graph
}

/// Returns the graph unchanged or with up to three items changed or removed, so that a later intent may undo what was
/// begun.
pub(crate) fn sway(rng: &mut SmallRng, base: &Graph<Json>) -> Graph<Json> {
    let mut graph = base.clone();
    let refs: Vec<Ref> = base.items().map(|item| item.reference().clone()).collect();
    if refs.is_empty() || rng.random_bool(0.4) {
        return graph;
    }
    for _ in 0..rng.random_range(1..4) {
        let Some(item) = graph.get(&refs[rng.random_range(0..refs.len())]) else {
            continue;
        };
        let (reference, needs) = (item.reference().clone(), item.dependencies().to_vec());
        let value = match rng.random_range(0..5) {
            0..=2 => json!({"v": item.value()["v"], "k": 1 - item.value()["k"].as_i64().unwrap_or(0)}),
            3 => draw_value(rng),
            _ => {
                graph.remove(&reference);
                continue;
            }
        };
        graph
            .put(Item::new(reference, value).with_dependencies(needs))
            .unwrap();
    }
    graph
}

pub(crate) fn draw_extent(rng: &mut SmallRng, refs: &[Ref]) -> Extent {
    match rng.random_range(0..10) {
        0..=3 => Extent::Everything,
        4..=8 => Extent::Group(GroupPath::from(PARTS[rng.random_range(0..PARTS.len())])),
        _ => Extent::Item(refs[rng.random_range(0..refs.len())].clone()),
    }
}

#[test]
fn parts_are_not_empty() {
    let parts: BTreeSet<_> = (0..10).map(|at| part_of(&r(&format!("t/{at:02}")))).collect();
    assert_eq!(parts.len(), 4);
}
