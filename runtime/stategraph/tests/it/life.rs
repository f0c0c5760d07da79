//! One graph over many calls: the world, the known state of it, and the extent of each call.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use watershed_stategraph::{
    Extent, Graph, GroupPath, Input, Item, Operation, OperationId, Operations, Ref, State, Timestamp, Types,
};

use crate::naive::{Thing, World, show, things};
use crate::worlds::{retry_of, types};

/// A world over many calls, with the state that the calls know of it.
pub(crate) struct Life {
    pub(crate) types: Types<Json>,
    pub(crate) world: World,
    pub(crate) current: Graph<Json>,
    pub(crate) operations: Operations<Json>,
    pub(crate) intended: Option<Graph<Json>>,
    /// Operations that run in the background, with their items.
    pub(crate) behind: BTreeMap<OperationId, Ref>,
    /// Inputs about ended or cancelled operations that no call has received yet.
    pub(crate) unnoticed: Vec<Input<Json>>,
    /// Group that each displaced item was in.
    pub(crate) displaced_from: BTreeMap<Ref, GroupPath>,
    /// Part whose call displaced an item last, for each displaced item.
    pub(crate) displaced_by: BTreeMap<Ref, Extent>,
    pub(crate) now: Timestamp,
    pub(crate) story: String,
}

impl Life {
    pub(crate) fn new() -> Self {
        let current = Graph::new("g");
        let mut world = World::new(&current, None);
        world.with_failures = true;
        Self {
            types: types(),
            world,
            current,
            operations: Operations::default(),
            intended: None,
            behind: BTreeMap::new(),
            unnoticed: Vec::new(),
            displaced_from: BTreeMap::new(),
            displaced_by: BTreeMap::new(),
            now: Timestamp(1_000),
            story: String::new(),
        }
    }

    pub(crate) fn tell(&mut self, line: &str) {
        self.story.push_str(line);
        self.story.push('\n');
    }

    pub(crate) fn blame(&self, what: &str) -> ! {
        let current = show_places(&self.current);
        panic!(
            "{what}\n{}things\n{}before the call\n{current}",
            self.story,
            show(&self.world.things)
        );
    }

    pub(crate) fn is_inside(&self, extent: &Extent, reference: &Ref) -> bool {
        match extent {
            Extent::Everything | Extent::Changed(_) => true,
            Extent::Item(item) => *item == reference.base(),
            Extent::Group(path) => {
                let base = reference.base();
                let group = self.intended.as_ref().and_then(|graph| graph.group_of(&base));
                let group = group
                    .or_else(|| self.current.group_of(&base))
                    .or_else(|| self.current.group_of(&base.alias()))
                    .or_else(|| self.displaced_from.get(&base));
                group.is_some_and(|group| group.is_within(path))
            }
        }
    }

    /// Returns the intent of a call: for a part, the intended items in the part, and all other items as they are or
    /// were.
    fn wanted(&self, extent: &Extent) -> BTreeMap<Ref, Thing> {
        let intended = self.intended.as_ref().map(things).unwrap_or_default();
        if matches!(extent, Extent::Everything | Extent::Changed(_)) {
            return intended;
        }
        let inside = |one: &Ref| self.is_inside(extent, one);
        let mut wanted: BTreeMap<_, _> = intended.into_iter().filter(|(one, _)| inside(one)).collect();
        // One that is being deleted for another call is gone by then.
        let is_going = |one: &Ref| matches!(self.world.running.get(one), Some((Operation::Delete, _)));
        let staying = self.world.things.iter().filter(|(one, _)| !is_going(one));
        // What another part displaced is left to that, and to calls about the item.
        let is_ours = |one: &Ref| {
            let by = self.displaced_by.get(one);
            by.is_none_or(|by| self.covers(extent, by) || !self.has_part(by))
        };
        let displaced = self.world.displaced.iter().filter(|(one, _)| is_ours(one));
        let rest = staying.chain(displaced);
        for (reference, thing) in rest.filter(|(one, _)| !inside(one) && !one.is_alias()) {
            wanted.entry(reference.clone()).or_insert_with(|| thing.clone());
        }
        // One whose create failed is tried again by a call that is about it; until then others wait for it.
        let unmade =
            |item: &&Item<Json>| matches!(item.state(), State::Creating | State::Failed(Operation::Create));
        for item in self
            .current
            .items()
            .filter(unmade)
            .filter(|item| !inside(item.reference()))
        {
            let (value, needs) = (item.value().clone(), item.dependencies().to_vec());
            let thing = Thing {
                value,
                needs,
                external: false,
            };
            wanted.entry(item.reference().base()).or_insert(thing);
        }
        // One that is being replaced is there as its replacement, once others were turned to that or the delete of
        // the old one was tried.
        for (alias, thing) in self
            .world
            .things
            .iter()
            .filter(|(one, _)| one.is_alias() && !inside(one))
        {
            let old = self.current.get(&alias.base()).map(Item::state);
            // Its end may not be noticed yet.
            let is_going = matches!(old, Some(State::Deleting | State::Failed(Operation::Delete)));
            if is_going || self.world.is_turned_to(&alias.base()) {
                wanted.insert(alias.base(), thing.clone());
            } else {
                wanted.entry(alias.base()).or_insert_with(|| thing.clone());
            }
        }
        wanted
    }

    /// Lists the dependencies that items outside of a part lack before the call, by item and position.
    fn broken_before(&self, extent: &Extent) -> BTreeSet<(Ref, usize)> {
        let outside = self
            .world
            .things
            .iter()
            .filter(|(one, _)| self.is_part(extent) && !self.is_inside(extent, one));
        let is_going = |one: &Ref| {
            let state = self.current.get(one).map(Item::state);
            matches!(state, Some(State::Deleting | State::Failed(Operation::Delete)))
        };
        let left_out = self.world.left_out();
        // One whose old item is gone is there as its replacement.
        let things: Vec<(Ref, &Thing)> = outside
            .filter(|(one, _)| !is_going(one))
            .filter(|(one, _)| !one.is_alias() || !self.world.things.contains_key(&one.base()))
            .map(|(one, thing)| (one.base(), thing))
            .collect();
        let broken = things.iter().flat_map(|(one, thing)| {
            let needs = thing.needs.iter().enumerate();
            let left_out = &left_out;
            let unmet = needs.filter(move |(at, need)| {
                let is_open = |target: &&Ref| !left_out.contains(&((*one).clone(), *at, (*target).clone()));
                let mut open = need.targets().filter(is_open);
                !open.any(|target| self.world.held_before(target, need))
            });
            unmet.map(|(at, _)| (one.clone(), at))
        });
        broken.collect()
    }

    /// Lists the items whose delete failed and is not due yet.
    fn resting(&self) -> BTreeSet<Ref> {
        let rests = |item: &&Item<Json>| {
            let retry = retry_of(item.reference().type_name());
            let next = item.failure().and_then(|failure| retry.next(failure));
            item.state() == State::Failed(Operation::Delete)
                && item.failure().is_some()
                && next.is_none_or(|next| next > self.now)
        };
        let resting = self.current.items().filter(rests);
        resting.map(|item| item.reference().clone()).collect()
    }

    pub(crate) fn begin(&mut self, extent: &Extent) {
        let wanted = self.wanted(extent);
        self.world.things.retain(|_, thing| !thing.external);
        let externals = things(&self.current)
            .into_iter()
            .filter(|(_, thing)| thing.external);
        self.world.things.extend(externals);
        self.world.before = self.world.things.clone();
        self.world.wanted = wanted;
        self.world.failed.clear();
        self.world.made.clear();
        self.world.broken_before = self.broken_before(extent);
        if *extent == Extent::Everything {
            self.world.displaced.clear();
            self.displaced_from.clear();
        }
        self.world.resting = self.resting();
        // What another part displaced comes back as it is intended by now.
        for reference in self.world.displaced.keys().cloned().collect::<Vec<_>>() {
            if self.is_inside(extent, &reference) {
                let path = self
                    .intended
                    .as_ref()
                    .and_then(|graph| graph.group_of(&reference))
                    .cloned();
                match path.zip(self.world.wanted.get(&reference)) {
                    Some((path, thing)) => {
                        self.world.displaced.insert(reference.clone(), thing.clone());
                        self.displaced_from.insert(reference, path);
                    }
                    None => {
                        self.world.displaced.remove(&reference);
                        self.displaced_from.remove(&reference);
                    }
                }
            }
        }
    }

    /// Makes the present form of an item outside of a part its intended form, once its replacement was given up or
    /// adopted.
    pub(crate) fn follow(&mut self, extent: &Extent, reference: &Ref) {
        let base = reference.base();
        let is_outside = self.is_part(extent) && !self.is_inside(extent, &base);
        if is_outside && reference.is_alias() && !self.world.things.contains_key(reference) {
            let thing = self.world.things.get(&base).cloned();
            self.world.wanted.extend(thing.map(|thing| (base, thing)));
        }
    }

    /// Returns true if a call for one extent covers everything that a call for the other covered.
    fn covers(&self, extent: &Extent, other: &Extent) -> bool {
        match (extent, other) {
            (Extent::Group(outer), Extent::Group(inner)) => inner.is_within(outer),
            (Extent::Group(_), Extent::Item(item)) => self.is_inside(extent, item),
            (one, other) => one == other,
        }
    }

    /// Returns true if the part still exists in one of the graphs, so that calls for it are possible.
    fn has_part(&self, extent: &Extent) -> bool {
        let mut graphs = std::iter::once(&self.current).chain(&self.intended);
        graphs.any(|graph| match extent {
            Extent::Group(path) => graph.groups().any(|group| group.path.is_within(path)),
            Extent::Item(item) => graph.get(item).is_some(),
            Extent::Everything | Extent::Changed(_) => true,
        })
    }

    pub(crate) fn is_part(&self, extent: &Extent) -> bool {
        matches!(extent, Extent::Group(_) | Extent::Item(_))
    }
}

/// Formats the items of a graph with their groups and states, one line each.
pub(crate) fn show_places(graph: &Graph<Json>) -> String {
    let all = things(graph);
    let line = |item: &Item<Json>| {
        let reference = item.reference();
        let place = graph
            .group_of(reference)
            .filter(|path| !path.to_string().is_empty());
        let place = place.map_or_else(String::new, |path| format!(" in {path}"));
        let thing = all.get(reference).cloned();
        let thing = thing.map(|thing| show(&BTreeMap::from([(reference.clone(), thing)])));
        let thing = thing.unwrap_or_else(|| format!("  {reference}\n"));
        format!("{}{place} [{}]\n", thing.trim_end_matches('\n'), item.state())
    };
    graph.items().map(line).collect()
}
