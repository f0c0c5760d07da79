//! Trees of owners and their parts for readers, computed from one listing and never stored.

use std::collections::BTreeMap;

use watershed_controller::resource::Row;
use watershed_controller::{Key, Resource, Uid};

use crate::deliver::EVENT_KIND;
use crate::record::{Record, record_of};
use crate::stages::Stage;

/// A resource with all its parts and theirs in turn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree {
    /// The kind and name of the resource.
    pub key: Key,
    /// The identity of the resource.
    pub uid: Uid,
    /// The stage of the resource; none for kinds without stages, or before the first pass.
    pub stage: Option<Stage>,
    /// The stage that the resource moves towards; none for kinds without stages, or before the first pass.
    pub goal: Option<Stage>,
    /// The health of the resource, without regard to its parts.
    pub health: Health,
    /// The message of the resource's error, if there is one.
    pub message: Option<String>,
    /// The parts of the resource, ordered by kind and name.
    pub parts: Vec<Tree>,
}

/// The health of a resource, from good to bad.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Health {
    /// The resource is ready.
    There,
    /// The resource is on its way to a stage, or waits.
    Moving,
    /// A step has failed and is being retried.
    Trying,
    /// The resource has failed.
    Failed,
}

/// Returns the tree of a resource, from a listing that includes hidden resources; none if the resource is not in it.
pub fn tree(resources: &[Resource], root: Uid) -> Option<Tree> {
    let mut below: BTreeMap<Uid, Vec<&Row>> = BTreeMap::new();
    for resource in resources {
        if let Some(owner) = resource
            .row
            .owner
            .filter(|_| resource.row.kind.as_str() != EVENT_KIND)
        {
            below.entry(owner).or_default().push(&resource.row);
        }
    }
    let found = resources.iter().find(|resource| resource.row.uid == root)?;
    Some(grow(&found.row, &mut below))
}

/// Builds the tree of a row. Each row is used once, so that owners in a circle do not loop.
fn grow(row: &Row, below: &mut BTreeMap<Uid, Vec<&Row>>) -> Tree {
    let parts = below.remove(&row.uid).unwrap_or_default();
    let record = row.state.as_deref().and_then(|state| record_of(state).ok());
    let mut parts: Vec<Tree> = parts.into_iter().map(|part| grow(part, below)).collect();
    parts.sort_by(|one, other| one.key.cmp(&other.key));
    Tree {
        key: Key {
            kind: row.kind.clone(),
            name: row.name.clone(),
        },
        uid: row.uid,
        health: health(row, record.as_ref()),
        message: row.error.as_ref().map(|error| error.message.to_string()),
        stage: record.as_ref().map(|record| record.stage.clone()),
        goal: record.map(|record| record.goal),
        parts,
    }
}

fn health(row: &Row, record: Option<&Record>) -> Health {
    let is_trying = |record: &Record| {
        record
            .current
            .as_ref()
            .is_some_and(|step| step.attempts.count > 0)
    };
    match record {
        Some(record) if record.failure.is_some() => Health::Failed,
        Some(record) if is_trying(record) => Health::Trying,
        _ if row.error.is_some() => Health::Failed,
        _ if row.unready.is_some() || row.last_success.is_none() => Health::Moving,
        _ => Health::There,
    }
}

impl Tree {
    /// Returns the number of resources in the tree at each stage, including the topmost.
    pub fn counts(&self) -> BTreeMap<Stage, usize> {
        let mut counts = BTreeMap::new();
        self.visit(&mut |tree| {
            if let Some(stage) = &tree.stage {
                *counts.entry(stage.clone()).or_default() += 1;
            }
        });
        counts
    }

    /// Returns the resource in the tree with the worst health; of several equal ones a deepest, which is nearest to the
    /// cause.
    pub fn worst(&self) -> &Tree {
        let candidates = self.parts.iter().map(Tree::worst);
        // The last of equal ones wins, so the owner stands first and the first part last.
        let worst = candidates.rev().max_by_key(|tree| tree.health);
        worst.filter(|part| part.health >= self.health).unwrap_or(self)
    }

    fn visit<'a>(&'a self, seen: &mut impl FnMut(&'a Tree)) {
        seen(self);
        for part in &self.parts {
            part.visit(seen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(name: &str, stage: &str, health: Health) -> Tree {
        Tree {
            key: Key::new("part", name),
            uid: watershed_controller::Resource::fresh_uid(),
            stage: Some(stage.into()),
            goal: None,
            health,
            message: None,
            parts: Vec::new(),
        }
    }

    /// Checks that the deepest of several equally bad resources is chosen (rule M8).
    #[test]
    fn the_worst_resource_is_the_deepest_of_those_that_do_worst() {
        use Health::{Failed, Moving, There, Trying};
        let all = [There, Moving, Trying, Failed];
        for owner in all {
            for first in all {
                for second in all {
                    let mut tree = leaf("owner", "active", owner);
                    tree.parts = vec![leaf("a", "active", first), leaf("b", "gone", second)];
                    let worst = owner.max(first).max(second);
                    let expected = if first == worst {
                        "a"
                    } else if second == worst {
                        "b"
                    } else {
                        "owner"
                    };
                    assert_eq!(
                        tree.worst().key.name.as_str(),
                        expected,
                        "{owner:?} {first:?} {second:?}"
                    );
                    assert_eq!(tree.counts().values().sum::<usize>(), 3);
                    assert_eq!(tree.counts()[&Stage::from("active")], 2);
                }
            }
        }
    }
}
