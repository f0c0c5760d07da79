//! The rules as the reference sees them: objections to an operation that is about to start.

use std::collections::BTreeSet;

use serde_json::Value as Json;
use watershed_stategraph::{Dependency, Operation, Ref, Start};

use crate::naive::{Thing, World, hard, holds};

impl World {
    /// Returns the rule that forbids this operation to start now; none if it may start.
    pub(crate) fn objection(&self, start: &Start<Json>) -> Option<String> {
        let item = start.reference.base();
        if self.running.contains_key(&start.reference) {
            return Some("S7: the item has an operation already".into());
        }
        for other in self.running.keys().map(Ref::base).filter(|other| *other != item) {
            if self.is_related(&item, &other) || self.is_related(&other, &item) {
                return Some(format!("S8: {other} is related and has an operation under way"));
            }
        }
        match start.operation {
            Operation::Create => self.objection_to_create(start),
            Operation::Modify => self.objection_to_modify(start),
            Operation::Delete => self.objection_to_delete(start),
            Operation::Adopt => (self.things.contains_key(&item)
                || !self.things.contains_key(&start.reference))
            .then(|| "S4: the old one is there, or the new one is not".into()),
        }
    }

    fn objection_to_create(&self, start: &Start<Json>) -> Option<String> {
        let item = start.reference.base();
        let end = self.end();
        let Some(thing) = end.get(&item) else {
            return Some("S2: is not to be there".into());
        };
        if self.things.contains_key(&start.reference) {
            return Some("S2: is there".into());
        }
        let unmet = hard(thing).find(|need| !self.satisfied(need, &end));
        unmet.map(|need| format!("S3: {need} is not satisfied"))
    }

    fn objection_to_modify(&self, start: &Start<Json>) -> Option<String> {
        let end = self.end();
        let (Some(old), Some(new)) = (self.things.get(&start.reference), end.get(&start.reference)) else {
            return Some("S2: is not there, or is not to be".into());
        };
        let counts = |at: usize| !self.broken_before.contains(&(start.reference.clone(), at));
        let counted = new.needs.iter().enumerate().filter(|(at, _)| counts(*at));
        let mut hard_needs = counted.map(|(_, need)| need).filter(|need| !need.is_order_only());
        if let Some(need) = hard_needs.find(|need| !self.satisfied(need, &end)) {
            return Some(format!("S3: {need} is not satisfied"));
        }
        let broken = self.things.iter().find(|(_, thing)| {
            hard(thing).any(|need| {
                need.targets().any(|target| *target == start.reference)
                    && holds(need, &old.value)
                    && !holds(need, &new.value)
                    && !need
                        .targets()
                        .any(|other| *other != start.reference && self.is_there(other, need))
            })
        });
        broken.map(|(dependent, _)| format!("S3: breaks a condition of {dependent}"))
    }

    fn objection_to_delete(&self, start: &Start<Json>) -> Option<String> {
        let reference = &start.reference;
        if !self.things.contains_key(reference) && !self.debris.contains(reference) {
            return Some("S3: is not there".into());
        }
        let replaced = self.things.contains_key(&reference.alias());
        let leaning = self
            .leaning_on(reference)
            .into_iter()
            .find(|one| !self.in_circle(one, reference));
        if let Some(leaning) = leaning.filter(|_| !replaced && !reference.is_alias()) {
            return Some(format!("S3: {leaning} depends on it"));
        }
        if !reference.is_alias() && !replaced && !self.may_go(reference) {
            return Some("S2: is left alone, as nothing makes it go".into());
        }
        self.deleted_in_vain(reference, &start.reason)
    }

    /// Returns true if two items depend on each other by what exists, or existed when the call began.
    fn in_circle(&self, one: &Ref, other: &Ref) -> bool {
        let reaches = |from: &Ref, to: &Ref| {
            let mut seen = BTreeSet::new();
            let mut queue = vec![from.clone()];
            while let Some(at) = queue.pop() {
                let alias = at.alias();
                let known = [&self.before, &self.things];
                let known = known.map(|things| [things.get(&at), things.get(&alias)]).concat();
                for target in known
                    .into_iter()
                    .flatten()
                    .flat_map(hard)
                    .flat_map(Dependency::targets)
                {
                    if target == to {
                        return true;
                    }
                    if seen.insert(target.clone()) {
                        queue.push(target.clone());
                    }
                }
            }
            false
        };
        one == other || (reaches(one, other) && reaches(other, one))
    }

    /// Returns true if something requires the item's delete: a change of the item, or of an item that it depends on.
    fn may_go(&self, reference: &Ref) -> bool {
        let end = self.end();
        let stays = |one: &Ref| {
            end.get(one)
                .zip(self.before.get(one))
                .is_some_and(|(new, old)| new.value == old.value && new.needs == old.needs)
        };
        let mut seen = BTreeSet::new();
        let mut queue = vec![reference.clone()];
        while let Some(at) = queue.pop() {
            let recreates = |thing: &Thing| thing.needs.iter().any(Dependency::recreates_when_modified);
            // What failed in an earlier call may only now show that a target was modified since, and an external
            // one may have changed before the call.
            let before = self.before.get(&at);
            if !stays(&at)
                || before.is_some_and(|thing| self.with_failures && recreates(thing))
                || before.is_some_and(|thing| self.recreates_with_external(thing))
            {
                return true;
            }
            for target in self
                .before
                .get(&at)
                .into_iter()
                .flat_map(hard)
                .flat_map(Dependency::targets)
            {
                if seen.insert(target.clone()) {
                    queue.push(target.clone());
                }
            }
        }
        false
    }

    fn recreates_with_external(&self, thing: &Thing) -> bool {
        let recreating = thing.needs.iter().filter(|need| need.recreates_when_modified());
        let mut targets = recreating.flat_map(Dependency::targets);
        targets.any(|target| self.before.get(target).is_some_and(|thing| thing.external))
    }
}
