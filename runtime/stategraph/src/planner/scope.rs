//! The extent of a call, and the graph that it works towards.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::graph::{Displaced, Extent, Graph, GroupPath, Slot};
use crate::item::{Item, Operation, State};
use crate::reference::Ref;
use crate::value::Value;

impl Extent {
    /// Returns true if an item belongs to the extent.
    fn part<V>(&self, current: &Graph<V>, intended: Option<&Graph<V>>, reference: &Ref) -> bool {
        match self {
            Self::Everything | Self::Changed(_) => true,
            Self::Item(item) => item == &reference.base(),
            Self::Group(path) => {
                // The intended place decides: it is the same before and after an item was moved, so that a
                // repeated call is about the same items.
                let intended = intended.and_then(|intended| intended.group_of(&reference.base()));
                let displaced = current.displaced_specs().get(&reference.base());
                let group = intended
                    .or_else(|| current.group_of(reference))
                    .or_else(|| displaced.map(|displaced| &displaced.group));
                group.is_some_and(|group| group.is_within(path))
            }
        }
    }

    pub(super) fn is_part(&self) -> bool {
        matches!(self, Self::Group(_) | Self::Item(_))
    }

    /// Returns true if a call with this extent covers everything that one with the other extent does.
    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Group(outer), Self::Group(inner)) => inner.is_within(outer),
            (one, other) => one == other,
        }
    }

    /// Returns true if the graph contains this part.
    fn is_in<V>(&self, graph: &Graph<V>) -> bool {
        match self {
            Self::Everything | Self::Changed(_) => true,
            Self::Group(path) => graph.has_group(path),
            Self::Item(item) => graph.get(item).is_some(),
        }
    }
}

/// The graph that a call works towards.
///
/// When a part is converged alone, that is a graph made for the purpose: the intended items of the part,
/// and the others with the values that they have.
pub(super) struct Intent<'a, V> {
    graph: Whole<'a, V>,
    /// Intended graph as given, even if only a part is converged.
    given: Option<&'a Graph<V>>,
    pub(super) extent: Extent,
    part: Part,
}

/// A part of the graph that is converged alone.
#[derive(Default)]
struct Part {
    /// Items of the part.
    inside: BTreeSet<Ref>,
    /// Displaced items left to calls about the part that displaced them, or about themselves: otherwise two parts would
    /// delete and restore them in turns (S9).
    left: BTreeSet<Ref>,
}

enum Whole<'a, V> {
    None,
    Given(&'a Graph<V>),
    Made(Box<Graph<V>>),
}

impl<'a, V: Value> Intent<'a, V> {
    pub(super) fn new(current: &Graph<V>, intended: Option<&'a Graph<V>>, extent: &Extent) -> Self {
        if extent.is_part() {
            let inside = inside(current, intended, extent);
            let left = left_to_others(current, intended, extent, &inside);
            let part = Part { inside, left };
            let graph = Whole::Made(Box::new(partial(current, intended, &part)));
            return Self {
                graph,
                given: intended,
                extent: extent.clone(),
                part,
            };
        }
        let graph = intended.map_or(Whole::None, Whole::Given);
        Self {
            graph,
            given: intended,
            extent: extent.clone(),
            part: Part::default(),
        }
    }

    pub(super) fn graph(&self) -> Option<&Graph<V>> {
        match &self.graph {
            Whole::None => None,
            Whole::Given(graph) => Some(graph),
            Whole::Made(graph) => Some(graph),
        }
    }

    /// Updates the intent of an item outside of the part to its present state, after an operation of an earlier call
    /// has ended on it. Returns true if the intent changed.
    pub(super) fn follow(&mut self, current: &Graph<V>, reference: &Ref) -> bool {
        if self.is_inside(reference) {
            return false;
        }
        let Whole::Made(graph) = &mut self.graph else {
            return false;
        };
        let before = graph.get(reference).map(|item| Arc::clone(&item.spec));
        let now = as_it_is(current, reference, &self.part);
        let is_same = match (&before, &now) {
            (Some(before), Some((_, item))) => super::same(before, &item.spec),
            (before, now) => before.is_none() && now.is_none(),
        };
        match now {
            Some((path, item)) => {
                let group = graph.intern_group(&path);
                graph.place(group, item);
            }
            None => drop(graph.remove(reference)),
        }
        !is_same
    }

    /// Returns true if the item's own intent counts in this call.
    pub(super) fn is_inside(&self, reference: &Ref) -> bool {
        !self.extent.is_part() || self.part.inside.contains(reference)
    }

    pub(super) fn inside(&self) -> &BTreeSet<Ref> {
        &self.part.inside
    }

    /// Notes that this call displaces an item, and so must restore it.
    pub(super) fn take_over(&mut self, reference: &Ref) {
        self.part.left.remove(reference);
    }

    /// Returns true if this call restores a displaced item.
    pub(super) fn brings_back(&self, reference: &Ref) -> bool {
        !self.part.left.contains(reference)
    }

    /// Updates the groups of the current graph to the intended ones, as far as the call covers them.
    pub(super) fn update_groups(&self, current: &mut Graph<V>, touched: &[Slot]) {
        match &self.extent {
            Extent::Everything => {
                if let Some(given) = self.given {
                    current.set_description(given.description());
                }
                current.update_groups(self.given, &GroupPath::root());
            }
            Extent::Group(path) => current.update_groups(self.given, path),
            Extent::Changed(_) | Extent::Item(_) => current.update_groups_of(self.given, touched),
        }
    }

    /// Forgets displaced items that need not be restored from memory, because the call knows their intent.
    pub(super) fn begin(&self, current: &mut Graph<V>) {
        if self.extent == Extent::Everything {
            return current.forget_displaced();
        }
        let displaced: Vec<Ref> = current.displaced_specs().keys().cloned().collect();
        for reference in displaced {
            let is_back = current
                .get(&reference)
                .is_some_and(|item| item.is_created() && item.state.operation().is_none());
            let intended = self.graph().filter(|_| self.is_inside(&reference));
            let spec = intended.and_then(|graph| graph.get(&reference));
            if is_back || (self.is_inside(&reference) && spec.is_none()) {
                current.no_longer_displaced(&reference);
            } else if let Some((item, graph)) = spec.zip(intended) {
                let by = current.displaced_specs().get(&reference);
                let displaced = Displaced {
                    group: graph.group_of(&reference).cloned().unwrap_or_default(),
                    spec: Arc::clone(&item.spec),
                    by: by.and_then(|displaced| displaced.by.clone()),
                };
                current.displace(&reference, displaced);
            }
        }
    }
}

fn inside<V: Value>(current: &Graph<V>, intended: Option<&Graph<V>>, extent: &Extent) -> BTreeSet<Ref> {
    let refs = current
        .items()
        .chain(intended.into_iter().flat_map(Graph::items))
        .map(Item::reference)
        .chain(current.displaced_specs().keys());
    refs.filter(|reference| extent.part(current, intended, reference))
        .map(Ref::base)
        .collect()
}

/// Returns the displaced items that a call about a part leaves out: they were displaced for another part that still
/// exists, so calls about that one restore them.
fn left_to_others<V: Value>(
    current: &Graph<V>,
    intended: Option<&Graph<V>>,
    extent: &Extent,
    inside: &BTreeSet<Ref>,
) -> BTreeSet<Ref> {
    let is_other = |displaced: &Displaced<V>| {
        displaced.by.as_ref().is_some_and(|by| {
            let contains = matches!(by, Extent::Item(item) if inside.contains(item));
            let is_there = by.is_in(current) || intended.is_some_and(|intended| by.is_in(intended));
            is_there && !contains && !extent.covers(by)
        })
    };
    let displaced = current.displaced_specs().iter();
    let left = displaced.filter(|(reference, displaced)| !inside.contains(*reference) && is_other(displaced));
    left.map(|(reference, _)| reference.clone()).collect()
}

/// Returns the intent of an item outside of the part: its present state, or the displaced one. None for an item that
/// was never created and is to be deleted, or that another part displaced.
fn as_it_is<V: Value>(current: &Graph<V>, reference: &Ref, part: &Part) -> Option<(GroupPath, Item<V>)> {
    let displaced = current.displaced_specs().get(reference);
    if let Some(displaced) = displaced.filter(|_| !part.left.contains(reference)) {
        let item = Item::from_spec(reference.clone(), Arc::clone(&displaced.spec));
        return Some((displaced.group.clone(), item));
    }
    let item = current
        .get(reference)
        .filter(|item| item.state != State::Deleting && !item.is_unmade());
    // A replacement is what stays once others were turned to it, or the delete of the old one was tried.
    let alias = current.alias_of(reference).filter(|alias| alias.is_created());
    let is_going = item.is_some_and(|item| item.state == State::Failed(Operation::Delete));
    let staying = alias.filter(|alias| alias.is_turned_to() || is_going);
    let item = staying.or(item).or(alias)?;
    let path = current.group_of(&item.reference).cloned().unwrap_or_default();
    let origin = item.origin;
    let item = Item::from_spec(reference.clone(), Arc::clone(&item.spec));
    Some((path, Item { origin, ..item }))
}

fn partial<V: Value>(current: &Graph<V>, intended: Option<&Graph<V>>, part: &Part) -> Graph<V> {
    let mut graph = Graph::new(current.name());
    let mut add = |path: GroupPath, item: Item<V>| {
        let group = graph.intern_group(&path);
        graph.place(group, item);
    };
    for item in intended
        .into_iter()
        .flat_map(Graph::items)
        .filter(|item| part.inside.contains(&item.reference))
    {
        let path = intended
            .and_then(|intended| intended.group_of(&item.reference))
            .cloned()
            .unwrap_or_default();
        add(path, item.clone());
    }
    // Outside of the part all is intended to be as it is, so that one algorithm serves parts and wholes.
    let known = current.items().map(|item| item.reference.base());
    for reference in known.chain(current.displaced_specs().keys().cloned()) {
        if !part.inside.contains(&reference) {
            as_it_is(current, &reference, part)
                .into_iter()
                .for_each(|(path, item)| add(path, item));
        }
    }
    // The planner keeps slots of it while items come and go.
    graph.keep_slots();
    graph
}
