//! The invariants of the machine, numbered, each with a function that finds what breaks it.
//!
//! - I1. Each live resource is the one of its name; each name's referrers and the links agree.
//! - I2. Every edge between live resources is counted, and no other.
//! - I3. `unsettled_parents` and `busy_children` are what they stand for.
//! - I4. Pending is closed downwards: what is below an unsettled resource is unsettled.
//! - I5. The members of a cycle are exactly one strongly connected component, and settle together.
//! - I6. Invocations, limits and totals agree with the stages.
//! - I7. Deletes and renames that count are counted once.
//! - I8. A pending resource waits for something that will have it considered.

use std::collections::BTreeSet;

use crate::components::components;
use crate::core::Core;
use crate::graph::index_u32;
use crate::resource::{Life, Slot, Stage};

/// An invariant that does not hold.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("invariant {invariant}: {detail}")]
pub struct Violation {
    /// Its number.
    pub invariant: u8,
    /// What is wrong, for whoever debugs the core.
    pub detail: String,
}

fn ensure(holds: bool, invariant: u8, detail: impl FnOnce() -> String) -> Result<(), Violation> {
    if holds {
        Ok(())
    } else {
        Err(Violation {
            invariant,
            detail: detail(),
        })
    }
}

impl Core {
    /// Checks every invariant by computing it from scratch; costs time proportional to the catalog.
    ///
    /// # Errors
    /// The first invariant that is broken.
    pub fn check_consistency(&self) -> Result<(), Violation> {
        self.check_names()?;
        self.check_edges()?;
        self.check_counts()?;
        self.check_closure()?;
        self.check_cycles()?;
        self.check_totals()?;
        self.check_ops()?;
        self.check_waiting()
    }

    fn check_names(&self) -> Result<(), Violation> {
        for (slot, resource) in self.slots.iter() {
            let entry = &self.names[resource.name];
            ensure(entry.name == resource.row.name, 1, || {
                format!("{slot:?} is bound to {}", entry.name)
            })?;
            let bound = if resource.is_live() {
                entry.live == Some(slot)
            } else {
                entry.others.contains(&slot)
            };
            ensure(bound, 1, || {
                format!("{} is not bound to its name", resource.row.key())
            })?;
            let claimed = resource
                .claims
                .iter()
                .all(|name| self.names[*name].others.contains(&slot));
            ensure(claimed, 1, || format!("{} misses a claim", resource.row.key()))?;
            for (index, link) in resource.links.iter().enumerate() {
                let referrer = self.names[link.name].referrers.get(link.position as usize);
                let agrees = referrer.is_some_and(|it| it.slot == slot && it.index as usize == index);
                ensure(agrees, 1, || {
                    format!("link {index} of {} is lost", resource.row.key())
                })?;
            }
        }
        for (_, entry) in self.names.iter() {
            let live = entry
                .live
                .is_none_or(|slot| self.slots.get(slot).is_some_and(|it| it.is_live()));
            ensure(live, 1, || format!("{} belongs to nobody live", entry.name))?;
        }
        Ok(())
    }

    fn check_edges(&self) -> Result<(), Violation> {
        for (_, resource) in self.slots.iter() {
            ensure(resource.is_live() || resource.links.is_empty(), 2, || {
                format!("{} has links", resource.row.key())
            })?;
            for link in &resource.links {
                let edge = link.edge && self.names[link.name].live.is_some();
                ensure(link.counted == edge, 2, || {
                    format!("an edge into {}", resource.row.key())
                })?;
            }
        }
        Ok(())
    }

    fn check_counts(&self) -> Result<(), Violation> {
        let mut unsettled_parents = vec![0; self.slots.bound()];
        let mut busy_children = vec![0; self.slots.bound()];
        for (slot, resource) in self.slots.iter().filter(|(_, resource)| resource.is_live()) {
            for parent in self.parents(slot) {
                let (above, below) = (self.rep(parent), self.rep(slot));
                if above != below && self.slots[parent].is_unsettled() {
                    unsettled_parents[below.0 as usize] += 1;
                    busy_children[above.0 as usize] += u32::from(self.is_busy(below));
                }
            }
            ensure(!resource.summing, 3, || {
                format!("{} is left summing", resource.row.key())
            })?;
        }
        for (slot, resource) in self.slots.iter() {
            let counts = (resource.unsettled_parents, resource.busy_children);
            let expected = (unsettled_parents[slot.0 as usize], busy_children[slot.0 as usize]);
            ensure(counts == expected, 3, || {
                format!(
                    "{} has {counts:?} unsettled parents and busy children, not {expected:?}",
                    resource.row.key()
                )
            })?;
        }
        Ok(())
    }

    fn check_closure(&self) -> Result<(), Violation> {
        for (slot, resource) in self
            .slots
            .iter()
            .filter(|(_, it)| it.is_live() && it.is_unsettled())
        {
            for child in self.children(slot) {
                ensure(self.slots[child].is_unsettled(), 4, || {
                    format!(
                        "{} is settled below {}",
                        self.slots[child].row.key(),
                        resource.row.key()
                    )
                })?;
            }
        }
        Ok(())
    }

    fn check_cycles(&self) -> Result<(), Violation> {
        let nodes: Vec<Slot> = self.slots.iter().map(|(slot, _)| slot).collect();
        let index_of = |slot: Slot| nodes.binary_search(&slot).map(index_u32).ok();
        let children: Vec<Vec<u32>> = nodes
            .iter()
            .map(|slot| self.children(*slot).filter_map(index_of).collect())
            .collect();
        let component = components(&children);
        let mut sizes = std::collections::HashMap::new();
        for number in &component {
            *sizes.entry(*number).or_insert(0_usize) += 1;
        }
        for (index, slot) in nodes.iter().enumerate() {
            let resource = &self.slots[*slot];
            let size = sizes[&component[index]];
            let on_cycle = size > 1 || children[index].contains(&index_u32(index));
            ensure(resource.cycle.is_some() == on_cycle, 5, || {
                format!("{} and its cycle", resource.row.key())
            })?;
            let Some(cycle) = resource.cycle else { continue };
            let members = self.cycles.members(cycle);
            ensure(members.len() == size && members.contains(slot), 5, || {
                format!("cycle {cycle:?}")
            })?;
            let together = members
                .iter()
                .all(|it| self.slots[*it].is_unsettled() == resource.is_unsettled());
            ensure(together, 5, || {
                format!("the cycle of {} is torn", resource.row.key())
            })?;
        }
        Ok(())
    }

    fn check_totals(&self) -> Result<(), Violation> {
        let unsettled = self.slots.iter().filter(|(_, it)| it.is_unsettled()).count();
        ensure(unsettled == self.unsettled, 6, || {
            format!("{} counted unsettled, not {unsettled}", self.unsettled)
        })?;
        let mut running = 0;
        for (slot, resource) in self.slots.iter() {
            let Stage::Running(run) = &resource.stage else {
                continue;
            };
            running += 1;
            ensure(self.runs.get(&run.invocation) == Some(&slot), 6, || {
                format!("{:?} is lost", run.invocation)
            })?;
        }
        ensure(running == self.active(), 6, || {
            format!("{} invocations, not {running}", self.active())
        })?;
        let stuck = self
            .slots
            .iter()
            .filter(|(_, it)| it.extra().stuck.is_some())
            .count();
        ensure(stuck == self.abandoned, 6, || {
            format!("{} abandoned, not {stuck}", self.abandoned)
        })?;
        let by_kind: usize = self.kinds.ids().map(|kind| self.kinds[kind].running).sum();
        ensure(by_kind == running, 6, || {
            format!("{by_kind} invocations by kind, not {running}")
        })?;
        let lingering = self
            .slots
            .iter()
            .filter_map(|(_, it)| it.run())
            .filter(|run| run.lingering)
            .count();
        ensure(lingering == self.lingering, 6, || {
            format!("{} lingering, not {lingering}", self.lingering)
        })?;
        for (slot, resource) in self.slots.iter().filter(|(slot, _)| self.rep(*slot) == *slot) {
            let mut busy = 0;
            let mut index = 0;
            while let Some(member) = self.member(slot, index) {
                index += 1;
                let member = &self.slots[member];
                busy += u32::from(member.is_live() && member.run().is_some_and(|run| run.busy));
            }
            ensure(busy == resource.running, 6, || {
                format!("{} runs {busy}", resource.row.key())
            })?;
        }
        let gates: BTreeSet<Slot> = self
            .slots
            .iter()
            .filter(|(_, it)| it.gates)
            .map(|(slot, _)| slot)
            .collect();
        ensure(gates == self.gate, 6, || "the gate".into())
    }

    fn check_ops(&self) -> Result<(), Violation> {
        let counting = |life| {
            self.slots
                .iter()
                .filter(|(_, it)| it.life == life && it.op_counts())
                .count()
        };
        let expected = (counting(Life::Deleted), counting(Life::Live));
        let counted = self.holds.counting();
        ensure(counted == expected, 7, || {
            format!("{counted:?} deletes and renames count, not {expected:?}")
        })?;
        for (slot, resource) in self.slots.iter() {
            let marked = resource.row.marks.is_deleted() || resource.row.marks.is_renamed();
            let has_op = resource.has_op() && resource.life != Life::Gone;
            ensure(!has_op || marked, 7, || {
                format!("{} has nothing to do", resource.row.key())
            })?;
            let must = marked && resource.life != Life::Gone && self.can_run(slot);
            ensure(!must || resource.has_op(), 7, || {
                format!("{} forgot its mark", resource.row.key())
            })?;
        }
        Ok(())
    }

    /// With nothing running, no commit awaited and nothing that counts, whatever is pending is a lost wake-up.
    fn check_waiting(&self) -> Result<(), Violation> {
        let awaited = self.active() > 0 || !self.awaiting.is_empty() || !self.queue.is_empty();
        if awaited || !self.is_serving() || self.kinds.is_exclusively_full() {
            return Ok(());
        }
        let stuck = self.slots.iter().find(|(_, it)| it.is_unsettled());
        ensure(stuck.is_none(), 8, || {
            stuck
                .map(|(slot, it)| format!("{} ({slot:?}) waits for nothing: {:?}", it.row.key(), it.stage))
                .unwrap_or_default()
        })
    }
}
