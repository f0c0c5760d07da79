//! The naive reference: slow, and meant to be obviously right.
//!
//! It keeps its own model of the world, which only operations change, and decides for each operation whether the rules
//! allow it, examining everything anew each time.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use watershed_stategraph::{Dependency, Graph, Operation, Ref, Start};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Thing {
    pub(crate) value: Json,
    pub(crate) needs: Vec<Dependency>,
    pub(crate) external: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct World {
    /// Items that exist, with their value and dependencies.
    pub(crate) things: BTreeMap<Ref, Thing>,
    /// Items as intended.
    pub(crate) wanted: BTreeMap<Ref, Thing>,
    /// Running operations by item, each with the form that the item is to have; none for a final delete.
    pub(crate) running: BTreeMap<Ref, (Operation, Option<Thing>)>,
    /// Items that existed when the call began.
    pub(crate) before: BTreeMap<Ref, Thing>,
    /// Items whose create failed: none of them exists, but a handler may be asked to delete remains.
    pub(crate) debris: BTreeSet<Ref>,
    pub(crate) failed: BTreeSet<Ref>,
    /// True if an operation failed in this call or an earlier one.
    pub(crate) with_failures: bool,
    /// Items to be recreated whose delete failed, and is tried again.
    pub(crate) recreating: BTreeSet<Ref>,
    /// Items outside of a part that were deleted for a call on the part, in their form before.
    pub(crate) displaced: BTreeMap<Ref, Thing>,
    /// Dependencies, by item and position, that items outside of a part lacked before the call. The rules ignore these.
    pub(crate) broken_before: BTreeSet<(Ref, usize)>,
    /// Items whose delete failed and is not due yet.
    pub(crate) resting: BTreeSet<Ref>,
    /// Items created during this call.
    pub(crate) made: BTreeSet<Ref>,
    /// Pairs of an item and its target, where the item has switched to the target's replacement.
    turned: BTreeSet<(Ref, Ref)>,
}

pub(crate) fn things(graph: &Graph<Json>) -> BTreeMap<Ref, Thing> {
    graph
        .items()
        .filter(|item| item.is_created())
        .map(|item| {
            let (value, needs) = (item.value().clone(), item.dependencies().to_vec());
            (
                item.reference().clone(),
                Thing {
                    value,
                    needs,
                    external: item.is_external(),
                },
            )
        })
        .collect()
}

pub(crate) fn show(things: &BTreeMap<Ref, Thing>) -> String {
    let line = |(reference, thing): (&Ref, &Thing)| {
        let needs: Vec<String> = thing
            .needs
            .iter()
            .map(|need| {
                let order = if need.is_order_only() { " (order only)" } else { "" };
                let recreate = if need.recreates_when_modified() {
                    " (recreates)"
                } else {
                    ""
                };
                format!("{need}{order}{recreate}")
            })
            .collect();
        format!("  {reference} {} needs {}\n", thing.value, needs.join("; "))
    };
    things.iter().map(line).collect()
}

pub(crate) fn holds(need: &Dependency, value: &Json) -> bool {
    need.predicate()
        .is_none_or(|predicate| predicate.holds(value, &|_, _| false))
}

pub(crate) fn hard(thing: &Thing) -> impl Iterator<Item = &Dependency> {
    thing.needs.iter().filter(|need| !need.is_order_only())
}

impl World {
    pub(crate) fn new(current: &Graph<Json>, intended: Option<&Graph<Json>>) -> Self {
        let things = things(current);
        let wanted = intended.map(self::things).unwrap_or_default();
        Self {
            before: things.clone(),
            things,
            wanted,
            running: BTreeMap::new(),
            debris: current
                .items()
                .filter(|item| !item.is_created())
                .map(|item| item.reference().clone())
                .collect(),
            failed: BTreeSet::new(),
            with_failures: false,
            recreating: BTreeSet::new(),
            displaced: BTreeMap::new(),
            broken_before: BTreeSet::new(),
            resting: BTreeSet::new(),
            made: BTreeSet::new(),
            turned: BTreeSet::new(),
        }
    }

    /// Returns an existing item that depends on itself, by dependencies with a single target only; none if there is
    /// none.
    pub(crate) fn on_cycle(&self) -> Option<&Ref> {
        let targets = |at: &Ref, thing: &Thing| {
            let single = hard(thing).filter(|need| need.targets().count() == 1);
            let relied = |target: &Ref| {
                let turned = self.turned.contains(&(at.clone(), target.clone()));
                if turned { target.alias() } else { target.clone() }
            };
            single
                .flat_map(|need| need.targets().map(relied).collect::<Vec<_>>())
                .collect::<Vec<Ref>>()
        };
        self.things.keys().find(|start| {
            let (mut seen, mut queue) = (BTreeSet::new(), vec![(*start).clone()]);
            while let Some(at) = queue.pop() {
                for target in self
                    .things
                    .get(&at)
                    .map(|thing| targets(&at, thing))
                    .unwrap_or_default()
                {
                    if target == **start {
                        return true;
                    }
                    if seen.insert(target.clone()) {
                        queue.push(target);
                    }
                }
            }
            false
        })
    }

    /// Returns true if one item leads to another by intended dependencies, without the given alternatives.
    fn leads_to(&self, from: &Ref, to: &Ref, without: &BTreeSet<(Ref, usize, Ref)>) -> bool {
        let mut seen = BTreeSet::from([from.clone()]);
        let mut queue = vec![from.clone()];
        while let Some(at) = queue.pop() {
            let Some(thing) = self.wanted.get(&at) else {
                continue;
            };
            for (position, need) in thing.needs.iter().enumerate() {
                for target in need.targets() {
                    if without.contains(&(at.clone(), position, target.clone())) {
                        continue;
                    }
                    if target == to {
                        return true;
                    }
                    if seen.insert(target.clone()) {
                        queue.push(target.clone());
                    }
                }
            }
        }
        false
    }

    /// Lists the alternatives that lead back to their own item, found round by round.
    pub(crate) fn left_out(&self) -> BTreeSet<(Ref, usize, Ref)> {
        let mut left_out = BTreeSet::new();
        loop {
            let mut found = BTreeSet::new();
            for (reference, thing) in &self.wanted {
                for (position, need) in thing.needs.iter().enumerate() {
                    let open: Vec<&Ref> = need
                        .targets()
                        .filter(|target| {
                            !left_out.contains(&(reference.clone(), position, (*target).clone()))
                        })
                        .collect();
                    let back: Vec<&Ref> = open
                        .iter()
                        .copied()
                        .filter(|target| *target == reference || self.leads_to(target, reference, &left_out))
                        .collect();
                    if need.targets().count() > 1 && back.len() < open.len() {
                        found.extend(
                            back.into_iter()
                                .map(|target| (reference.clone(), position, target.clone())),
                        );
                    }
                }
            }
            if found.is_empty() {
                return left_out;
            }
            left_out.extend(found);
        }
    }

    /// Lists the items on a cycle of the intended graph, and the items that can't do without them.
    pub(crate) fn stuck(&self) -> BTreeSet<Ref> {
        let without = self.left_out();
        let mut stuck: BTreeSet<Ref> = self
            .wanted
            .keys()
            .filter(|one| self.leads_to(one, one, &without))
            .cloned()
            .collect();
        loop {
            let more: Vec<Ref> = self
                .wanted
                .iter()
                .filter(|(reference, _)| !stuck.contains(*reference))
                .filter(|(reference, thing)| {
                    thing.needs.iter().enumerate().any(|(position, need)| {
                        !need.is_order_only()
                            && need.targets().all(|target| {
                                stuck.contains(target)
                                    || without.contains(&((*reference).clone(), position, target.clone()))
                            })
                            && need.targets().any(|target| stuck.contains(target))
                    })
                })
                .map(|(reference, _)| reference.clone())
                .collect();
            if more.is_empty() {
                return stuck;
            }
            stuck.extend(more);
        }
    }

    /// Returns the items that exist in the end if nothing fails.
    pub(crate) fn end(&self) -> BTreeMap<Ref, Thing> {
        let stuck = self.stuck();
        let without = self.left_out();
        let mut end: BTreeMap<Ref, Thing> = self
            .before
            .iter()
            .filter(|(reference, thing)| thing.external || stuck.contains(*reference))
            .map(|(reference, thing)| (reference.clone(), thing.clone()))
            .collect();
        loop {
            let more: Vec<(Ref, Thing)> = self
                .wanted
                .iter()
                .filter(|(reference, _)| !end.contains_key(*reference) && !stuck.contains(*reference))
                .filter(|(reference, thing)| {
                    thing.needs.iter().enumerate().all(|(position, need)| {
                        need.is_order_only()
                            || self.broken_before.contains(&((*reference).clone(), position))
                            || need.targets().any(|target| {
                                !without.contains(&((*reference).clone(), position, target.clone()))
                                    && end.get(target).is_some_and(|thing| holds(need, &thing.value))
                            })
                    })
                })
                .map(|(reference, thing)| (reference.clone(), thing.clone()))
                .collect();
            if more.is_empty() {
                return end;
            }
            end.extend(more);
        }
    }

    /// Returns true if `from` depends on `to`, directly or through other items, by the edges of either graph or of
    /// running modifies.
    pub(crate) fn is_related(&self, from: &Ref, to: &Ref) -> bool {
        let mut seen = BTreeSet::from([from.clone()]);
        let mut queue = vec![from.clone()];
        while let Some(at) = queue.pop() {
            if &at == to {
                return true;
            }
            let now = self.things.get(&at).into_iter().chain(self.wanted.get(&at));
            let now = now.chain(self.coming(&at));
            for target in now.flat_map(hard).flat_map(Dependency::targets) {
                if seen.insert(target.clone()) {
                    queue.push(target.clone());
                }
            }
        }
        false
    }

    /// Returns the form that a running modify gives an item, which may have it already; none without a modify.
    pub(crate) fn coming(&self, reference: &Ref) -> Option<&Thing> {
        match self.running.get(reference)? {
            (Operation::Modify, new) => new.as_ref(),
            _ => None,
        }
    }

    /// Returns true if a target exists, as the old item or its replacement, and every existing form satisfies the
    /// dependency.
    pub(crate) fn is_there(&self, target: &Ref, need: &Dependency) -> bool {
        let (old, new) = (self.things.get(target), self.things.get(&target.alias()));
        (old.is_some() || new.is_some()) && old.into_iter().chain(new).all(|thing| holds(need, &thing.value))
    }

    /// Returns true if the target or its replacement exists and satisfies the dependency.
    pub(crate) fn held_before(&self, target: &Ref, need: &Dependency) -> bool {
        let both = [self.things.get(target), self.things.get(&target.alias())];
        both.into_iter().flatten().any(|thing| holds(need, &thing.value))
    }

    pub(crate) fn satisfied(&self, need: &Dependency, end: &BTreeMap<Ref, Thing>) -> bool {
        need.targets().any(|target| {
            let deleting = self
                .running
                .get(target)
                .is_some_and(|(operation, _)| *operation == Operation::Delete);
            let goes = deleting || self.recreating.contains(target);
            let deleting = goes && !self.things.contains_key(&target.alias());
            let now = self.is_there(target, need);
            let next = end.get(target).is_some_and(|thing| holds(need, &thing.value));
            now && next && !deleting
        })
    }

    /// Returns true if any item has switched to the target's replacement.
    pub(crate) fn is_turned_to(&self, target: &Ref) -> bool {
        self.turned.iter().any(|(_, turned)| turned == target)
    }

    /// Returns true if an item has a replacement that will stay: it is as intended, or other items have switched to it.
    fn is_replaced(&self, target: &Ref) -> bool {
        let alias = self.things.get(&target.alias());
        alias.is_some_and(|alias| self.is_turned_to(target) || self.wanted.get(target) == Some(alias))
    }

    /// Lists the items that depend on an item and have no other target that satisfies the dependency.
    pub(crate) fn leaning_on(&self, reference: &Ref) -> Vec<&Ref> {
        let leans = |thing: &Thing| {
            hard(thing).any(|need| {
                need.targets().any(|target| target == reference)
                    && !need
                        .targets()
                        .any(|other| other != reference && self.is_there(other, need))
            })
        };
        self.things
            .iter()
            .filter(|(_, thing)| leans(thing))
            .map(|(dependent, _)| dependent)
            .collect()
    }

    pub(crate) fn start(&mut self, start: &Start<Json>) {
        let new = start.new.as_ref().map(|spec| Thing {
            value: spec.value().clone(),
            needs: spec.needs().to_vec(),
            external: false,
        });
        self.running
            .insert(start.reference.clone(), (start.operation, new));
    }

    pub(crate) fn end_of(&mut self, reference: &Ref, succeeded: bool) {
        let (operation, new) = self.running.remove(reference).unwrap();
        if !succeeded {
            self.failed.insert(reference.base());
            if operation == Operation::Delete {
                self.resting.insert(reference.clone());
            }
            // The old one counts as one whose modify failed: a delete that was to be tried again is not.
            if operation == Operation::Create && reference.is_alias() {
                self.recreating.remove(&reference.base());
            }
            // What a recreation took down stays down until its delete is tried again, if it ever is.
            let is_tried_again = reference.type_name() != "y";
            if operation == Operation::Delete && new.is_some() && is_tried_again {
                self.recreating.insert(reference.clone());
            } else {
                self.recreating.remove(reference);
            }
            if operation == Operation::Create {
                self.debris.insert(reference.clone());
            }
            return;
        }
        self.recreating.remove(reference);
        self.debris.remove(reference);
        if operation == Operation::Create {
            self.made.insert(reference.clone());
        }
        let is_settled =
            operation == Operation::Adopt || (operation == Operation::Delete && reference.is_alias());
        let base = reference.base();
        // Without its replacement the old one counts as one whose modify failed as well.
        if is_settled {
            self.recreating.remove(&base);
        }
        self.turned
            .retain(|(one, target)| one != reference && !(is_settled && *target == base));
        match (operation, new) {
            (Operation::Create | Operation::Modify, Some(new)) => {
                let targets: Vec<Ref> = hard(&new).flat_map(Dependency::targets).cloned().collect();
                for target in targets {
                    if self.is_replaced(&target) {
                        self.turned.insert((reference.clone(), target));
                    }
                }
                self.things.insert(reference.clone(), new);
            }
            (Operation::Adopt, _) => {
                let thing = self.things.remove(reference).unwrap();
                self.things.insert(reference.base(), thing);
            }
            _ => {
                self.things.remove(reference);
            }
        }
    }

    /// Copies changed dependencies from the current graph where values agree, since such changes are no operation.
    pub(crate) fn relink(&mut self, current: &Graph<Json>) {
        let aliases: BTreeSet<Ref> = self.things.keys().filter(|one| one.is_alias()).cloned().collect();
        let aliases: BTreeSet<Ref> = aliases
            .into_iter()
            .filter(|one| self.is_replaced(&one.base()))
            .collect();
        for (reference, thing) in &mut self.things {
            let item = current.get(reference).filter(|item| item.value() == &thing.value);
            let item = item.filter(|_| !self.running.contains_key(reference));
            let Some(item) = item.filter(|item| item.dependencies() != thing.needs) else {
                continue;
            };
            thing.needs = item.dependencies().to_vec();
            let targets = hard(thing).flat_map(Dependency::targets);
            let replaced = targets.filter(|target| aliases.contains(&target.alias()));
            self.turned
                .extend(replaced.map(|target| (reference.clone(), target.clone())));
        }
    }

    /// Returns the targets of those given items that exist.
    fn below(&self, refs: &BTreeSet<Ref>) -> BTreeSet<Ref> {
        let things = refs.iter().filter_map(|one| self.things.get(one));
        let needs = things.flat_map(|thing| &thing.needs);
        needs.flat_map(Dependency::targets).cloned().collect()
    }

    /// Returns an objection if an operation that could be done was not; none otherwise.
    pub(crate) fn left_undone(&self) -> Option<String> {
        let end = self.end();
        for (reference, thing) in &end {
            let Some(wanted) = self.wanted.get(reference) else {
                continue;
            };
            let untouched = self.failed.contains(reference) || self.running.contains_key(reference);
            if thing.external || untouched || self.stuck().contains(reference) {
                continue;
            }
            // A target that something stuck keeps from getting its value is planned for deletion.
            let settled = |target: &Ref| {
                self.things.get(target).map(|thing| &thing.value) == end.get(target).map(|thing| &thing.value)
            };
            let satisfied =
                hard(wanted).all(|need| self.satisfied(need, &end) && need.targets().all(settled));
            if !self.things.contains_key(reference) && satisfied {
                return Some(format!("S2: {reference} could be created"));
            }
        }
        let stuck = self.stuck();
        // What is left alone keeps what it depends on, and that what it depends on.
        let direct = self.below(&stuck);
        let mut kept = direct.clone();
        loop {
            let more = self.below(&kept);
            if more.is_subset(&kept) {
                break;
            }
            kept.extend(more);
        }
        let leant_on = |one: &Ref| kept.contains(one) || direct.contains(&one.base());
        let gone = |one: &&Ref| {
            let excused = self.failed.contains(&one.base()) || stuck.contains(&one.base());
            !end.contains_key(*one) && !excused && !leant_on(one)
        };
        let left = self
            .things
            .keys()
            .filter(gone)
            .find(|one| self.leaning_on(one).is_empty());
        left.filter(|one| !self.running.contains_key(*one))
            .map(|one| format!("S2: {one} could be deleted"))
    }
}
