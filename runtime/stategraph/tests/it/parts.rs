//! Graphs whose items are in three parts, drawn at random.

use std::collections::BTreeSet;

use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::Value as Json;
use watershed_stategraph::{Extent, Graph, GroupPath, Ref};

use crate::worlds::{Drawing, draw, r};

const PARTS: [&str; 3] = ["one", "two", "two/inner"];

/// Returns the part of an item, by its name; none for one at the root.
pub(crate) fn part_of(reference: &Ref) -> Option<&'static str> {
    let at = reference.name().bytes().map(usize::from).sum::<usize>() % 4;
    PARTS.get(at).copied()
}

/// An intended graph whose items are in parts, some of them in another one than before.
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
