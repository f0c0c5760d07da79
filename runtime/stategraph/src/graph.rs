//! Graphs of items: the intended one and the current one.
//!
//! Invariants:
//! 1. Every ref that an item has or mentions has one slot, found through `index`; a slot that no item
//!    fills and none mentions is free.
//! 2. `edges` of a filled slot has one entry per target of its item, in the order of the item's
//!    dependencies; each has its counterpart in the target's `dependents`.
//! 3. `attention` holds exactly the slots whose item a later call must look at unasked.
//! 4. `tally` counts the items; a place is plain if its item is missing or [`Spec::is_plain`].

mod changes;
mod diff;
mod displaced;
mod extent;
mod fingerprint;
mod groups;
mod order;
mod stored;
mod tally;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

pub(crate) use changes::Known;
pub use diff::{Difference, ItemChange};
pub(crate) use displaced::Displaced;
pub use extent::Extent;
pub use groups::{Group, GroupPath};
use groups::{GroupId, Groups};

use crate::item::Item;
use crate::reference::{Ref, RefMap};
use order::Order;
use tally::Tally;

/// Index of a ref within one graph, without meaning in another.
pub(crate) type Slot = u32;

/// A target of an item, with the item's index among the target's dependents, so that either end can be removed without
/// a search.
#[derive(Debug, Clone, Copy)]
struct Edge {
    to: Slot,
    at: u32,
}

/// A ref's slot with its item, if there is one, and its edges.
#[derive(Debug, Clone)]
struct SlotEntry<V> {
    reference: Ref,
    group: GroupId,
    is_plain: bool,
    item: Option<Item<V>>,
    edges: Box<[Edge]>,
    dependents: Vec<Slot>,
}

/// Reason to refuse a change of a graph. The graph has not changed.
///
/// ```
/// # mod warehouse { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/warehouse.rs.in")); }
/// # use serde_json::json;
/// use watershed_stategraph::{GraphError, Item, Ref};
/// let mut graph = warehouse::intended()?;
/// let again = Item::new(Ref::parse("table/orders")?, json!(["week"]));
/// match graph.insert(again.clone()) {
///     Err(GraphError::Duplicate(taken)) => assert_eq!(taken.as_str(), "table/orders"),
///     other => panic!("{other:?}"),
/// }
/// graph.put(again)?; // replaces it
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// An item with this ref exists already.
    #[error("there are two items `{0}`")]
    Duplicate(Ref),
    /// An external item has dependencies, although no handler could wait for them.
    #[error("`{0}` is external and has dependencies")]
    ExternalWithDependencies(Ref),
    /// No item has this ref.
    #[error("there is no item `{0}`")]
    Missing(Ref),
    /// An item has more dependencies or targets than can be counted.
    #[error("`{0}` has too many dependencies")]
    TooLarge(Ref),
}

/// Items by ref, in named groups that can be nested.
///
/// The same type serves as intended graph, which the embedder renders, and as current graph, which is
/// handed to every call and stored between calls.
///
/// ```
/// use serde_json::json;
/// use watershed_stategraph::{Dependency, Graph, Item, Ref};
/// let mut graph = Graph::new("warehouse");
/// let table = Ref::parse("table/orders")?;
/// graph.insert(Item::new(table.clone(), json!({"columns": ["day"]})))?;
/// graph.insert_at("views/daily", Item::new(Ref::parse("view/daily")?, json!({})).needs(Dependency::on(table)))?;
/// let refs: Vec<String> = graph.items().map(|item| item.reference().to_string()).collect();
/// assert_eq!(refs, ["table/orders", "view/daily"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Graph<V> {
    name: String,
    description: String,
    groups: Groups,
    places: Vec<SlotEntry<V>>,
    free: Vec<Slot>,
    /// Slots to free after the call, so that the planner can keep slots during it; none outside a call.
    unneeded: Option<Vec<Slot>>,
    index: RefMap<Slot>,
    tally: Tally,
    attention: BTreeSet<Slot>,
    /// Items outside of a converged part that were deleted for it and are still to be restored.
    displaced: BTreeMap<Ref, Displaced<V>>,
    order: OnceLock<Order>,
    /// Id of the executor with operations under way on this graph.
    holder: Option<String>,
    /// Counter of changes to anything that is stored.
    changes: u64,
}

impl<V> Graph<V> {
    /// Creates an empty graph.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            groups: Groups::default(),
            places: Vec::new(),
            free: Vec::new(),
            unneeded: None,
            index: RefMap::default(),
            tally: Tally::default(),
            attention: BTreeSet::new(),
            displaced: BTreeMap::new(),
            order: OnceLock::new(),
            holder: None,
            changes: 0,
        }
    }

    /// Sets a description of the graph's purpose.
    #[must_use]
    pub fn describe(mut self, text: impl Into<String>) -> Self {
        self.description = text.into();
        self
    }

    /// Returns the name, which a current graph and its intended graph share.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the description of the graph's purpose.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the number of items, including external ones and replacements.
    pub fn len(&self) -> usize {
        self.tally.items()
    }

    /// Returns true if the graph has no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the item with this ref.
    pub fn get(&self, reference: &Ref) -> Option<&Item<V>> {
        self.item(self.slot(reference)?)
    }

    /// Returns all items, in order of ref.
    pub fn items(&self) -> impl Iterator<Item = &Item<V>> {
        let mut items: Vec<&Item<V>> = self
            .places
            .iter()
            .filter_map(|place| place.item.as_ref())
            .collect();
        items.sort_unstable_by(|left, right| left.reference.cmp(&right.reference));
        items.into_iter()
    }

    /// Returns the items that depend on this ref, in order of ref.
    pub fn dependents(&self, reference: &Ref) -> Vec<&Item<V>> {
        let slots = self
            .slot(reference)
            .map_or(&[][..], |slot| self.dependents_of(slot));
        let unique: BTreeMap<&Ref, &Item<V>> = slots
            .iter()
            .filter_map(|&slot| self.item(slot))
            .map(|item| (&item.reference, item))
            .collect();
        unique.into_values().collect()
    }
}

/// Internal access by slot, for the planner.
impl<V> Graph<V> {
    pub(crate) fn slot(&self, reference: &Ref) -> Option<Slot> {
        self.index.get(reference).copied()
    }

    /// Returns true if this is the slot of a ref, without a search. A free slot may still have a ref.
    pub(crate) fn is_at(&self, reference: &Ref, slot: Slot) -> bool {
        let Some(place) = self.places.get(slot as usize) else {
            return false;
        };
        (place.item.is_some() || !place.dependents.is_empty())
            && (place.reference.is_shared_with(reference) || &place.reference == reference)
    }

    pub(crate) fn item(&self, slot: Slot) -> Option<&Item<V>> {
        self.places.get(slot as usize)?.item.as_ref()
    }

    /// Returns the ref of a slot in use.
    pub(crate) fn reference(&self, slot: Slot) -> &Ref {
        &self.places[slot as usize].reference
    }

    /// Lists the slots of an item's targets, in the order of its dependencies.
    pub(crate) fn edges(&self, slot: Slot) -> impl ExactSizeIterator<Item = Slot> + '_ {
        let edges = self
            .places
            .get(slot as usize)
            .map_or(&[][..], |place| &place.edges);
        edges.iter().map(|edge| edge.to)
    }

    /// Returns the slots of the items that depend on this one, once for each dependency.
    pub(crate) fn dependents_of(&self, slot: Slot) -> &[Slot] {
        self.places
            .get(slot as usize)
            .map_or(&[], |place| &place.dependents)
    }

    /// Returns the range of all slots, used or not.
    pub(crate) fn slots(&self) -> std::ops::Range<Slot> {
        // `intern` refuses to grow beyond what a slot can count.
        0..self.places.len() as Slot
    }

    /// Returns true if every dependency of the item has one target and no options; true also for an empty slot.
    pub(crate) fn is_plain(&self, slot: Slot) -> bool {
        self.places.get(slot as usize).is_none_or(|place| place.is_plain)
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Returns the replacement of an item.
    pub(crate) fn alias_of(&self, reference: &Ref) -> Option<&Item<V>> {
        if self.tally.aliases() == 0 {
            return None;
        }
        self.get(&reference.alias())
    }

    pub(crate) fn attention(&self) -> impl Iterator<Item = Slot> {
        self.attention.iter().copied()
    }

    /// Returns true if an item's state says that an operation is under way.
    pub(crate) fn is_under_way(&self) -> bool {
        let busy = |&slot: &Slot| {
            self.item(slot)
                .is_some_and(|item| item.state.operation().is_some())
        };
        self.attention.iter().any(busy)
    }

    /// Returns the id of the executor that last had operations under way on this graph.
    pub(crate) fn holder(&self) -> Option<&str> {
        self.holder.as_deref()
    }

    pub(crate) fn set_holder(&mut self, holder: &str) {
        if self.holder() != Some(holder) {
            self.holder = Some(holder.to_owned());
        }
    }

    pub(crate) fn set_description(&mut self, description: &str) {
        if self.description != description {
            description.clone_into(&mut self.description);
            self.changes += 1;
        }
    }

    /// Returns the counter of changes to anything that is stored.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns the ranks and cycles, which are computed once until the edges change.
    pub(crate) fn order(&self) -> &Order {
        self.order.get_or_init(|| Order::from_graph(self))
    }
}
