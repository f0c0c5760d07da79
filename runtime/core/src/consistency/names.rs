//! Checks of names, their resources and referrers, and of owners.

use std::collections::{BTreeSet, HashMap};

use super::Findings;
use super::Parts;
use crate::Uid;
use crate::types::index::Slot;
use rustc_hash::FxBuildHasher;

impl Parts<'_> {
    /// Checks that each live resource is the one bound to its name, and that claims and referrers match the rows.
    pub(super) fn check_names_agree(&self, findings: &mut Findings) {
        for (slot, resource) in self.graph.iter() {
            let entry = self.graph.name(resource.name());
            let same = *entry.name() == resource.row().name
                && *self.graph.kinds()[entry.kind()].kind() == resource.row().kind;
            findings.ensure_of(self.graph, slot, same, || {
                format!("is bound to \"{}\"", entry.name())
            });
            let bound = if resource.is_live() {
                entry.live() == Some(slot)
            } else {
                entry.others().contains(&slot)
            };
            findings.ensure_of(self.graph, slot, bound, || "is not bound to its name".into());
            let claimed = resource
                .claims()
                .iter()
                .all(|name| self.graph.name(*name).others().contains(&slot));
            findings.ensure_of(self.graph, slot, claimed, || {
                "misses a claim on a former name".into()
            });
            let known = self.graph.find(resource.row().uid) == Some(slot);
            findings.ensure_of(self.graph, slot, known, || "is not found by its uid".into());
            self.check_links(slot, findings);
        }
        for (_, entry) in self.graph.names() {
            let is_live = |slot: Slot| self.graph.get(slot).is_some_and(|it| it.is_live());
            findings.ensure(entry.live().is_none_or(is_live), || {
                format!("\"{}\" belongs to nobody live", entry.name())
            });
            let there = entry
                .others()
                .iter()
                .all(|other| self.graph.get(*other).is_some());
            findings.ensure(there, || {
                format!("\"{}\" is claimed by nobody known", entry.name())
            });
        }
    }

    /// Checks that a resource's links match its refs, and that each is among the referrers of its name.
    fn check_links(&self, slot: Slot, findings: &mut Findings) {
        let resource = &self.graph[slot];
        let all = !resource.is_live() || resource.links().len() == resource.row().refs.len();
        findings.ensure_of(self.graph, slot, all, || {
            format!(
                "has {} links for {} refs",
                resource.links().len(),
                resource.row().refs.len()
            )
        });
        for (index, (link, reference)) in resource
            .links()
            .iter()
            .zip(resource.row().refs.iter())
            .enumerate()
        {
            let entry = self.graph.name(link.name());
            let named =
                *entry.name() == reference.name && *self.graph.kinds()[entry.kind()].kind() == reference.kind;
            let referrer = entry.referrer(link.position());
            let known = referrer == Some((slot, index));
            findings.ensure_of(self.graph, slot, named && known, || {
                format!("lost its link {index}")
            });
        }
    }

    /// Checks that the index of owners matches the rows.
    pub(super) fn check_owners_agree(&self, findings: &mut Findings) {
        let mut owned: HashMap<Uid, BTreeSet<Slot>, FxBuildHasher> = HashMap::default();
        for (slot, resource) in self.graph.iter() {
            let stored = resource.life() != crate::graph::resource::Life::Gone;
            if let Some(owner) = resource.row().owner.filter(|_| stored) {
                owned.entry(owner).or_default().insert(slot);
            }
        }
        for (owner, slots) in &owned {
            let known = self.graph.owned(*owner);
            findings.ensure(known == Some(slots), || {
                format!(
                    "{owner} owns {} resources, known: {}",
                    slots.len(),
                    known.map_or(0, BTreeSet::len)
                )
            });
        }
        findings.ensure(owned.len() == self.graph.owners().count(), || {
            format!(
                "{} owners are known, not {}",
                self.graph.owners().count(),
                owned.len()
            )
        });
    }
}
