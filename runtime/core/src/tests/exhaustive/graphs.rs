//! Directed graphs without loops, one of each up to isomorphism.

use std::collections::BTreeSet;

/// Returns all orders of the first `count` numbers.
pub(super) fn permutations(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let shorter = permutations(count - 1);
    let with = |short: &Vec<usize>, at: usize| {
        let mut longer = short.clone();
        longer.insert(at, count - 1);
        longer
    };
    shorter
        .iter()
        .flat_map(|short| (0..count).map(move |at| with(short, at)))
        .collect()
}

/// A graph: for each node, the nodes that it refers to, as bits.
pub(super) type Graph = Vec<u8>;

/// Returns one graph of each class of graphs that are equal up to a renaming of nodes.
pub(super) fn graphs(count: usize) -> Vec<Graph> {
    let orders = permutations(count);
    let pairs: Vec<(usize, usize)> = (0..count)
        .flat_map(|from| (0..count).map(move |to| (from, to)))
        .filter(|(from, to)| from != to)
        .collect();
    let renamed = |graph: &Graph, order: &[usize]| {
        let mut other = vec![0; count];
        for &(from, to) in &pairs {
            if graph[from] & (1 << to) != 0 {
                other[order[from]] |= 1 << order[to];
            }
        }
        other
    };
    let graph = |chosen: u32| {
        let mut graph = vec![0; count];
        for (bit, &(from, to)) in pairs.iter().enumerate() {
            if chosen & (1 << bit) != 0 {
                graph[from] |= 1 << to;
            }
        }
        graph
    };
    let least = |graph: Graph| orders.iter().map(|order| renamed(&graph, order)).min();
    let classes: BTreeSet<Graph> = (0..1_u32 << pairs.len())
        .filter_map(|it| least(graph(it)))
        .collect();
    classes.into_iter().collect()
}

#[test]
fn there_are_as_many_classes_as_the_literature_says() {
    assert_eq!([1, 2, 3, 4].map(|count| graphs(count).len()), [1, 3, 16, 218]);
}
