//! Resolution of call targets to resources, and the names of resources in messages.

use super::Graph;
use super::resource::Life;
use crate::types::index::{NameId, Slot};
use crate::{Cause, InvocationId, Kind, Name, Refusal, Subject, Target, Unreturned};

impl Graph {
    /// Finds the live resource of a target.
    pub(crate) fn resolve(&self, target: &Target) -> Result<Slot, Refusal> {
        match target {
            Target::Uid(uid) => {
                let live = self.slots.find(*uid).filter(|slot| self.slots[*slot].is_live());
                live.ok_or_else(|| Refusal::Unknown(uid.to_string()))
            }
            Target::Key(key) => {
                let live = self
                    .name_id(&key.kind, &key.name)
                    .and_then(|name| self.names[name].live);
                live.ok_or_else(|| Refusal::Unknown(key.to_string()))
            }
            Target::Name(name) => self.only(name, |graph, id| graph.names[id].live),
        }
    }

    /// Finds the live resource of a target, or else the one of that name deleted last.
    pub(crate) fn resolve_with_deleted(&self, target: &Target) -> Result<Slot, Refusal> {
        let refusal = match self.resolve(target) {
            Err(Refusal::Unknown(what)) => Refusal::Unknown(what),
            other => return other,
        };
        match target {
            Target::Uid(uid) => {
                let found = self
                    .slots
                    .find(*uid)
                    .filter(|slot| self.slots[*slot].life == Life::Deleted);
                found.ok_or(refusal)
            }
            Target::Key(key) => {
                let found = self
                    .name_id(&key.kind, &key.name)
                    .and_then(|name| self.deleted_last(name));
                found.ok_or(refusal)
            }
            Target::Name(name) => self.only(name, Graph::deleted_last),
        }
    }

    pub(crate) fn name_id(&self, kind: &Kind, name: &Name) -> Option<NameId> {
        self.names.find(self.kinds.find(kind)?, name)
    }

    /// Finds the resource deleted last among those with an unfinished delete under this name.
    pub(crate) fn deleted_last(&self, name: NameId) -> Option<Slot> {
        let is_it = |slot: &Slot| self.slots[*slot].life == Life::Deleted && self.slots[*slot].name == name;
        self.names[name].others.iter().copied().rfind(is_it)
    }

    fn only(&self, name: &Name, find: impl Fn(&Graph, NameId) -> Option<Slot>) -> Result<Slot, Refusal> {
        let ids = self.kinds.ids().filter_map(|kind| self.names.find(kind, name));
        let mut found: Vec<Slot> = ids.filter_map(|id| find(self, id)).collect();
        match (found.pop(), found.is_empty()) {
            (None, _) => Err(Refusal::Unknown(name.to_string())),
            (Some(slot), true) => Ok(slot),
            // Several kinds have that name. To take one of them would cancel, or delete, what nobody meant.
            (Some(last), false) => {
                found.push(last);
                let mut candidates: Vec<_> = found.iter().map(|slot| self.slots[*slot].row.key()).collect();
                candidates.sort();
                Err(Refusal::Ambiguous {
                    name: name.to_string(),
                    candidates,
                })
            }
        }
    }

    pub(crate) fn subject(&self, slot: Slot) -> Subject {
        Subject {
            uid: self.slots[slot].row.uid,
            key: self.slots[slot].row.key(),
        }
    }

    /// Returns this resource as the cause of a request for another.
    pub(crate) fn cause_of(&self, slot: Slot) -> Cause {
        let row = &self.slots[slot].row;
        Cause::Resource {
            uid: row.uid,
            key: row.key(),
        }
    }

    /// Lists the invocations that have not returned, in order.
    pub(crate) fn unreturned(&self) -> Vec<Unreturned> {
        let describe = |(invocation, slot): (InvocationId, Slot)| {
            let resource = &self.slots[slot];
            let phase = resource.unreturned()?.phase;
            Some(Unreturned {
                invocation,
                uid: resource.row.uid,
                key: resource.row.key(),
                phase,
            })
        };
        let mut unreturned: Vec<_> = self.runs().filter_map(describe).collect();
        unreturned.sort_unstable_by_key(|one| one.invocation);
        unreturned
    }
}
