//! Checks of durability: changed rows are on their way to the store, and the store agrees with the core.

use std::collections::HashMap;

use super::Findings;
use super::Parts;
use crate::graph::resource::Life;
use crate::{Compared, Consistency, Rule, Stored, StoredRow, Subject, Uid};
use rustc_hash::FxBuildHasher;

impl Parts<'_> {
    /// Checks that no row is newer than the catalog, and that every change not yet handed to the store is marked as
    /// such.
    pub(super) fn check_changes_are_stored(&self, findings: &mut Findings) {
        let (durable, handed_out) = (self.journal.durable(), self.journal.handed_out());
        findings.ensure(
            durable <= handed_out && handed_out <= self.journal.revision(),
            || {
                format!(
                    "revision {} is durable, {handed_out} handed out, {} reached",
                    durable,
                    self.journal.revision()
                )
            },
        );
        for (revision, slots) in self.journal.awaiting() {
            findings.ensure(*revision > durable, || {
                format!(
                    "{} resources wait for revision {revision}, which is durable",
                    slots.len()
                )
            });
        }
        let dirty = self.journal.dirty_slots();
        for (slot, resource) in self.graph.stored() {
            let revision = resource.row().revision;
            findings.ensure_of(self.graph, slot, revision <= self.journal.revision(), || {
                format!("has revision {revision} of {}", self.journal.revision())
            });
            let listed = resource.is_row_dirty() && dirty.contains(&slot);
            findings.ensure_of(self.graph, slot, listed || revision <= handed_out, || {
                format!("changed at revision {revision}, and nobody stores it")
            });
        }
    }

    /// Checks every rule, and compares the stored catalog with the core.
    pub(crate) fn check_against(&self, stored: Option<&Stored>) -> Consistency {
        let mut findings = self.check();
        let mut rules: Vec<Rule> = Parts::rules().collect();
        let compared = match stored {
            None => Compared::Not,
            Some(stored) => {
                rules.push(Rule::StoreAgrees);
                let mut of_store = Findings::for_rule(Rule::StoreAgrees);
                let compared = self.compare(stored, &mut of_store);
                findings.extend(of_store.list);
                compared
            }
        };
        Consistency {
            revision: self.journal.revision(),
            resources: self.graph.stored().count(),
            rules,
            compared,
            findings,
        }
    }

    fn compare(&self, stored: &Stored, findings: &mut Findings) -> Compared {
        findings.ensure(stored.epoch == self.journal.epoch(), || {
            format!(
                "the store has epoch {}, not {}",
                stored.epoch,
                self.journal.epoch()
            )
        });
        // A store may be behind the core. Ahead of what it was given, it has had another writer.
        let handed_out = self.journal.handed_out();
        findings.ensure(stored.revision <= handed_out, || {
            format!(
                "the store has revision {}, and {handed_out} was handed out last",
                stored.revision
            )
        });
        let by_uid: HashMap<Uid, &StoredRow, FxBuildHasher> = stored
            .rows
            .iter()
            .map(|stored| (stored.row.uid, stored))
            .collect();
        findings.ensure(by_uid.len() == stored.rows.len(), || {
            "a uid is stored twice".into()
        });
        for (slot, resource) in self.graph.stored() {
            if resource.row().revision > stored.revision {
                continue; // written since, or not yet
            }
            let there = by_uid.get(&resource.row().uid);
            let same = there.is_some_and(|there| *there.row == **resource.row());
            findings.ensure_of(self.graph, slot, same, || match there {
                Some(there) => format!("is stored otherwise, as of revision {}", there.row.revision),
                None => "is not stored".into(),
            });
        }
        // Rows that are there and unknown may be removals that the store has yet to hear of.
        if stored.revision != self.journal.revision() {
            return Compared::Partly;
        }
        for stored in &stored.rows {
            let known = self.graph.find(stored.row.uid);
            if known.is_none_or(|slot| self.graph[slot].life() == Life::Gone) {
                let subject = Subject {
                    uid: stored.row.uid,
                    key: stored.row.key(),
                };
                findings.add(Some(subject), "is stored, and nobody knows it".into());
            }
        }
        Compared::Whole
    }
}
