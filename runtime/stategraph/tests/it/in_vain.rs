//! Rule for deletes in a recreation: an item is deleted for it only if the recreation can go on, and is created again
//! once there is nothing to recreate.

use std::collections::BTreeSet;

use watershed_stategraph::{Dependency, Reason, Ref};

use crate::naive::{Thing, World, hard};

impl World {
    /// Returns an objection if an item is deleted for a recreation that can't go on, with the item in the way; none
    /// otherwise.
    pub(crate) fn deleted_in_vain(&self, item: &Ref, reason: &Reason) -> Option<String> {
        let Reason::TargetRecreated(target) = reason else {
            return None;
        };
        // One that does not need the target yet goes so that it can be made anew upon it.
        let needs_it = |thing: &Thing| hard(thing).any(|need| need.targets().any(|one| one == target));
        let is_in_vain = self.things.get(item).is_some_and(needs_it)
            && self.things.contains_key(target)
            && !self.made.contains(target)
            && !self.can_go(target, &mut BTreeSet::new());
        is_in_vain.then(|| {
            let keeper = self.keeper_of(target, &mut BTreeSet::new());
            let keeper = keeper.map_or_else(String::new, ToString::to_string);
            format!("S4: {item} is deleted for {target}, which cannot go; above it stays {keeper}")
        })
    }

    /// Returns true if an item may be deleted in this call: nothing above it stays, and either the item itself or one
    /// of its targets gives a reason.
    fn can_go(&self, reference: &Ref, seen: &mut BTreeSet<Ref>) -> bool {
        if !seen.insert(reference.clone()) {
            return true;
        }
        if self.keeper_of(reference, &mut BTreeSet::new()).is_some() {
            return false;
        }
        let (Some(thing), Some(wanted)) = (self.things.get(reference), self.wanted.get(reference)) else {
            return true;
        };
        let has_own_reason = thing != wanted
            || thing.needs.iter().any(is_special)
            || self.things.contains_key(&reference.alias());
        let mut targets = hard(wanted).flat_map(Dependency::targets);
        has_own_reason || targets.any(|target| self.can_go(target, seen))
    }

    /// Returns an item that stays throughout the call, before which another item can't be deleted; none if there is
    /// none.
    fn keeper_of(&self, reference: &Ref, seen: &mut BTreeSet<Ref>) -> Option<&Ref> {
        if !seen.insert(reference.clone()) {
            return None;
        }
        self.leaning_on(reference).into_iter().find_map(|one| {
            if self.stays(one, reference) {
                return Some(one);
            }
            let still_needs = |thing: &Thing| {
                hard(thing)
                    .any(|need| need.targets().count() == 1 && need.targets().any(|to| to == reference))
            };
            let goes_first = self.wanted.get(one).is_none_or(still_needs);
            goes_first.then(|| self.keeper_of(one, seen)).flatten()
        })
    }

    /// Returns true if an item keeps depending on a target throughout the call: its delete failed and is not due yet,
    /// it is stuck, or a running modify leaves it above the target.
    fn stays(&self, one: &Ref, target: &Ref) -> bool {
        let is_resting = self.resting.contains(one) && !self.wanted.contains_key(one);
        let needs_it = |thing: &Thing| hard(thing).any(|need| need.targets().any(|one| one == target));
        let is_busy = self.coming(one).is_some_and(needs_it);
        !one.is_alias() && (is_resting || is_busy || self.stuck().contains(one))
    }

    /// Returns an objection if an item that was deleted for a recreation stays absent, although nothing is to be
    /// recreated any more.
    pub(crate) fn left_away(&self) -> Option<String> {
        let (end, stuck) = (self.end(), self.stuck());
        let away = end.iter().find(|(reference, wanted)| {
            let known = [(*reference).clone(), reference.alias()];
            let is_known = known.iter().any(|one| {
                self.things.contains_key(one) || self.debris.contains(one) || self.running.contains_key(one)
            });
            !is_known
                && !stuck.contains(*reference)
                && !wanted.external
                && hard(wanted).flat_map(Dependency::targets).all(|target| {
                    end.contains_key(target) && self.is_settled(target, &stuck, &mut BTreeSet::new())
                })
        });
        away.map(|(reference, _)| format!("S2: {reference} could be created, as all below it is as intended"))
    }

    /// Returns true if an item and all items below it are as intended, with no operation running.
    fn is_settled(&self, reference: &Ref, stuck: &BTreeSet<Ref>, seen: &mut BTreeSet<Ref>) -> bool {
        if !seen.insert(reference.clone()) {
            return true;
        }
        let Some(thing) = self.things.get(reference) else {
            return false;
        };
        if thing.external {
            return true;
        }
        let is_same = self.wanted.get(reference) == Some(thing);
        let is_busy = self.running.contains_key(reference) || self.running.contains_key(&reference.alias());
        is_same
            && !is_busy
            && !stuck.contains(reference)
            && !self.things.contains_key(&reference.alias())
            && !thing.needs.iter().any(is_special)
            && hard(thing)
                .flat_map(Dependency::targets)
                .all(|target| self.is_settled(target, stuck, seen))
    }
}

/// Returns true if a dependency may cause its item to be deleted although the target stays.
fn is_special(need: &Dependency) -> bool {
    need.recreates_when_modified() || need.predicate().is_some() || need.targets().count() > 1
}
