//! Names with their resources and referrers, and owners.

use std::collections::{BTreeSet, HashMap};

use super::Findings;
use crate::core::Core;
use crate::resource::Slot;
use crate::{QuickHash, Uid};

impl Core {
    /// Each live resource is the one of its name; claims and referrers agree with rows.
    pub(super) fn check_names_agree(&self, findings: &mut Findings) {
        for (slot, resource) in self.slots.iter() {
            let entry = &self.names[resource.name];
            let same = entry.name == resource.row.name && self.kinds[entry.kind].kind == resource.row.kind;
            findings.ensure_of(self, slot, same, || format!("is bound to \"{}\"", entry.name));
            let bound = if resource.is_live() {
                entry.live == Some(slot)
            } else {
                entry.others.contains(&slot)
            };
            findings.ensure_of(self, slot, bound, || "is not bound to its name".into());
            let claimed = resource
                .claims
                .iter()
                .all(|name| self.names[*name].others.contains(&slot));
            findings.ensure_of(self, slot, claimed, || "misses a claim on a former name".into());
            let known = self.slots.find(resource.row.uid) == Some(slot);
            findings.ensure_of(self, slot, known, || "is not found by its uid".into());
            self.check_links(slot, findings);
        }
        for (_, entry) in self.names.iter() {
            let is_live = |slot: Slot| self.slots.get(slot).is_some_and(|it| it.is_live());
            findings.ensure(entry.live.is_none_or(is_live), || {
                format!("\"{}\" belongs to nobody live", entry.name)
            });
            let there = entry.others.iter().all(|other| self.slots.get(*other).is_some());
            findings.ensure(there, || format!("\"{}\" is claimed by nobody known", entry.name));
        }
    }

    /// Its links are its refs, each known to the name that it names.
    fn check_links(&self, slot: Slot, findings: &mut Findings) {
        let resource = &self.slots[slot];
        let all = !resource.is_live() || resource.links.len() == resource.row.refs.len();
        findings.ensure_of(self, slot, all, || {
            format!(
                "has {} links for {} refs",
                resource.links.len(),
                resource.row.refs.len()
            )
        });
        for (index, (link, reference)) in resource.links.iter().zip(resource.row.refs.iter()).enumerate() {
            let entry = &self.names[link.name];
            let named = entry.name == reference.name && self.kinds[entry.kind].kind == reference.kind;
            let referrer = entry.referrers.get(link.position as usize);
            let known = referrer.is_some_and(|it| it.slot == slot && it.index as usize == index);
            findings.ensure_of(self, slot, named && known, || format!("lost its link {index}"));
        }
    }

    /// What each owner owns is what the rows say.
    pub(super) fn check_owners_agree(&self, findings: &mut Findings) {
        let mut owned: HashMap<Uid, BTreeSet<Slot>, QuickHash> = HashMap::default();
        for (slot, resource) in self.slots.iter() {
            let stored = resource.life != crate::resource::Life::Gone;
            if let Some(owner) = resource.row.owner.filter(|_| stored) {
                owned.entry(owner).or_default().insert(slot);
            }
        }
        for (owner, slots) in &owned {
            let known = self.owned.get(owner);
            findings.ensure(known == Some(slots), || {
                format!(
                    "{owner} owns {} resources, known: {}",
                    slots.len(),
                    known.map_or(0, BTreeSet::len)
                )
            });
        }
        findings.ensure(owned.len() == self.owned.len(), || {
            format!("{} owners are known, not {}", self.owned.len(), owned.len())
        });
    }
}
