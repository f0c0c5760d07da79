//! Candidates of a selection, with the edges between them.

use std::collections::{BTreeSet, HashMap};

use watershed_core::{Key, Row, Uid};
use watershed_outputs::selection::Candidate;

use crate::report::{health, kinds, made};

/// The candidates of a selection, with the edges between them.
pub(super) struct Listing<'a> {
    pub(super) nodes: Vec<Node<'a>>,
    /// Indices of each node's dependencies and dependents, by the node's index.
    parents: Vec<Vec<usize>>,
    children: Vec<Vec<usize>>,
}

/// A candidate of a selection.
pub(super) struct Node<'a> {
    pub(super) row: &'a Row,
    pub(super) is_modified: bool,
}

/// A direction along refs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// Towards dependencies.
    Up,
    /// Towards dependents.
    Down,
}

impl<'a> Listing<'a> {
    pub(super) fn new(candidates: &[Candidate<'a>]) -> Self {
        let nodes: Vec<Node<'a>> = candidates
            .iter()
            .map(|candidate| Node {
                row: candidate.row,
                is_modified: candidate.is_modified,
            })
            .collect();
        let by_key: HashMap<Key, usize> = nodes
            .iter()
            .enumerate()
            .map(|(at, node)| (node.row.key(), at))
            .collect();
        let mut parents = vec![Vec::new(); nodes.len()];
        let mut children = vec![Vec::new(); nodes.len()];
        for (at, (node, above)) in nodes.iter().zip(&mut parents).enumerate() {
            let read = node.row.refs.iter().filter_map(|to| by_key.get(&to.key()));
            for parent in read.copied().filter(|parent| *parent != at) {
                above.push(parent);
                if let Some(below) = children.get_mut(parent) {
                    below.push(at);
                }
            }
        }
        let by_uid: HashMap<Uid, usize> = nodes
            .iter()
            .enumerate()
            .map(|(at, node)| (node.row.uid, at))
            .collect();
        for (migration, model) in made::readers(nodes.iter().map(|node| node.row)) {
            if let (Some(above), Some(below)) = (by_uid.get(&migration), by_uid.get(&model)) {
                parents
                    .get_mut(*below)
                    .into_iter()
                    .for_each(|it: &mut Vec<usize>| it.push(*above));
                children
                    .get_mut(*above)
                    .into_iter()
                    .for_each(|it: &mut Vec<usize>| it.push(*below));
            }
        }
        Self {
            nodes,
            parents,
            children,
        }
    }

    /// Returns the nodes with all that are within some steps in one direction.
    pub(super) fn reach(&self, from: &BTreeSet<usize>, way: Direction, steps: usize) -> BTreeSet<usize> {
        let next = match way {
            Direction::Up => &self.parents,
            Direction::Down => &self.children,
        };
        let mut reached = from.clone();
        let mut edge: Vec<usize> = from.iter().copied().collect();
        let mut left = steps;
        while left > 0 && !edge.is_empty() {
            let beyond = edge.iter().filter_map(|at| next.get(*at)).flatten().copied();
            edge = beyond.filter(|at| reached.insert(*at)).collect();
            left -= 1;
        }
        reached
    }
}

impl Node<'_> {
    /// Returns the kind as its file names it: `source` for a model that is declared as one.
    pub(super) fn kind(&self) -> String {
        let declared = kinds::declared_as(self.row);
        declared.unwrap_or_else(|| self.row.kind.to_string())
    }

    /// Returns the kinds that match the resource: its own, and `source` if it is declared as one.
    pub(super) fn kinds(&self) -> Vec<String> {
        let declared = kinds::declared_as(self.row);
        [self.row.kind.to_string()].into_iter().chain(declared).collect()
    }

    pub(super) fn tags(&self) -> impl Iterator<Item = &str> {
        let tags = self.row.labels.get("tags").map_or("", AsRef::as_ref);
        tags.split(',').filter(|tag| !tag.is_empty())
    }

    pub(super) fn has_failed(&self) -> bool {
        health::own_error(self.row).is_some()
    }
}
