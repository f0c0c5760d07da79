//! The stored form of a graph: items in order of ref, so that equal graphs have equal bytes.

use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::displaced::Displaced;
use super::{Extent, Graph, Group, GroupPath};
use crate::dependency::Dependency;
use crate::item::{Failure, Item, Origin, Record, Spec, State};
use crate::reference::Ref;
use crate::value::{Fingerprint, Value};

#[derive(Serialize, Deserialize)]
#[serde(bound = "V: Value", deny_unknown_fields)]
struct StoredGraph<V> {
    name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    description: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    groups: Vec<Group>,
    #[serde(default = "Vec::new")]
    items: Vec<StoredItem<V>>,
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    displaced: Vec<StoredItem<V>>,
    /// Id of the executor with operations under way; none if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    holder: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(bound = "V: Value", deny_unknown_fields)]
pub(crate) struct StoredItem<V> {
    #[serde(rename = "ref")]
    reference: Ref,
    value: V,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    needs: Box<[Dependency]>,
    #[serde(default, skip_serializing_if = "GroupPath::is_root")]
    group: GroupPath,
    #[serde(default, skip_serializing_if = "is_default")]
    origin: Origin,
    #[serde(default, skip_serializing_if = "is_default")]
    state: State,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<StoredSpec<V>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    relied: Vec<(usize, Ref)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    witnessed: Vec<(Ref, Fingerprint)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    switched: Vec<Ref>,
    #[serde(default, skip_serializing_if = "is_default")]
    unmade: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    needs_recreate: Option<bool>,
    /// Part that a displaced item was deleted for; none for other items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    displaced_by: Option<Extent>,
}

#[derive(Serialize, Deserialize)]
#[serde(bound = "V: Value", deny_unknown_fields)]
struct StoredSpec<V> {
    value: V,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    needs: Box<[Dependency]>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    value == &T::default()
}

impl<V: Value> StoredItem<V> {
    pub(crate) fn from_item(item: &Item<V>, group: GroupPath) -> Self {
        let record = item.record.as_deref().cloned().unwrap_or_default();
        Self {
            reference: item.reference.clone(),
            value: item.spec.value.clone(),
            needs: item.spec.needs.clone(),
            group,
            origin: item.origin,
            state: item.state,
            next: record.next.map(|spec| StoredSpec {
                value: spec.value.clone(),
                needs: spec.needs.clone(),
            }),
            relied: record.relied,
            witnessed: record.witnessed,
            failure: record.failure,
            switched: record.switched,
            unmade: record.unmade,
            needs_recreate: record.needs_recreate,
            displaced_by: None,
        }
    }

    fn from_displaced(reference: &Ref, displaced: &Displaced<V>) -> Self {
        let item = Item::from_spec(reference.clone(), Arc::clone(&displaced.spec));
        Self {
            displaced_by: displaced.by.clone(),
            ..Self::from_item(&item, displaced.group.clone())
        }
    }

    fn into_displaced(self) -> (Ref, Displaced<V>) {
        let by = self.displaced_by.clone();
        let (group, item) = self.into_item();
        let spec = item.spec;
        (item.reference, Displaced { group, spec, by })
    }

    fn into_item(self) -> (GroupPath, Item<V>) {
        let spec = Arc::new(Spec {
            value: self.value,
            needs: self.needs,
        });
        let mut item = Item::from_spec(self.reference, spec);
        item.origin = self.origin;
        item.state = self.state;
        item.record(|record| {
            *record = Record {
                next: self.next.map(|spec| {
                    Arc::new(Spec {
                        value: spec.value,
                        needs: spec.needs,
                    })
                }),
                relied: self.relied,
                witnessed: self.witnessed,
                failure: self.failure,
                switched: self.switched,
                unmade: self.unmade,
                needs_recreate: self.needs_recreate,
            }
        });
        (self.group, item)
    }
}

impl<V: Value> Graph<V> {
    fn stored(&self) -> StoredGraph<V> {
        let group_of = |item: &Item<V>| self.group_of(&item.reference).cloned().unwrap_or_default();
        StoredGraph {
            name: self.name.clone(),
            description: self.description.clone(),
            groups: self.groups().cloned().collect(),
            items: self
                .items()
                .map(|item| StoredItem::from_item(item, group_of(item)))
                .collect(),
            displaced: self.stored_displaced(),
            holder: self.stored_holder(),
        }
    }

    /// Returns the holder to store: without running operations the last one does not matter.
    fn stored_holder(&self) -> Option<String> {
        self.holder.clone().filter(|_| self.is_under_way())
    }

    pub(super) fn stored_displaced(&self) -> Vec<StoredItem<V>> {
        let displaced = self.displaced.iter();
        displaced
            .map(|(reference, displaced)| StoredItem::from_displaced(reference, displaced))
            .collect()
    }
}

/// Compares only stored parts: slots and the order of insertion don't count.
impl<V: Value> PartialEq for Graph<V> {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.description == other.description
            && self.displaced == other.displaced
            && self.groups().eq(other.groups())
            && self.items().eq(other.items())
            && self
                .items()
                .all(|item| self.group_of(&item.reference) == other.group_of(&item.reference))
    }
}

impl<V: Value> Serialize for Graph<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.stored().serialize(serializer)
    }
}

impl<'de, V: Value> Deserialize<'de> for Graph<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = StoredGraph::<V>::deserialize(deserializer)?;
        let mut graph = Self::new(stored.name).describe(stored.description);
        for group in stored.groups {
            graph.add_group(&group.path, group.description);
        }
        for item in stored.items {
            let (group, item) = item.into_item();
            graph.insert_at(group, item).map_err(D::Error::custom)?;
        }
        for item in stored.displaced {
            let (reference, displaced) = item.into_displaced();
            graph.displaced.insert(reference, displaced);
        }
        graph.holder = stored.holder;
        Ok(graph)
    }
}
