//! Trees: an owner with its parts as readers see them, computed from one listing and never stored.

use std::collections::BTreeMap;

use watershed_controller::resource::Row;
use watershed_controller::{Key, Resource, Uid};

use crate::deliver::EVENT_KIND;
use crate::record::{Record, record_of};
use crate::stages::Stage;

/// A resource with everything below it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree {
    /// The resource.
    pub key: Key,
    /// The identity.
    pub uid: Uid,
    /// The stage; none for another kind, or before the first pass.
    pub stage: Option<Stage>,
    /// The stage that it moves towards.
    pub goal: Option<Stage>,
    /// The way in which it does, parts left aside.
    pub health: Health,
    /// The message of what is wrong with it, if something is.
    pub message: Option<String>,
    /// Its parts, in order of kind and name.
    pub parts: Vec<Tree>,
}

/// The ways in which a resource does, from good to bad.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Health {
    /// It is where it should be.
    There,
    /// It is on the way, or waits.
    Moving,
    /// A step has failed and is tried again.
    Trying,
    /// It has failed.
    Failed,
}

/// Returns the tree below a resource, from the rows of one listing with hidden ones. None if it is not among them.
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

/// Takes each row once, so that owners in a circle end.
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
    /// Returns how many resources of the tree, itself included, are at each stage.
    pub fn counts(&self) -> BTreeMap<Stage, usize> {
        let mut counts = BTreeMap::new();
        self.visit(&mut |tree| {
            if let Some(stage) = &tree.stage {
                *counts.entry(stage.clone()).or_default() += 1;
            }
        });
        counts
    }

    /// Returns the resource of the tree that does worst: of equal ones the deepest, for it is nearer to the cause.
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

    /// M8.
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
