//! Contents of a diagram, independent of its format.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::{Graph, GroupPath};
use crate::item::{Item, State};
use crate::reference::Ref;
use crate::types::Types;
use crate::value::Value;

/// State or coming change of an item, as a diagram shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Look {
    Created,
    Busy,
    Failed,
    Unknown,
    External,
    /// The item is referred to, but in neither graph.
    Missing,
    ToCreate,
    ToModify,
    ToDelete,
}

impl Look {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Busy => "busy",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
            Self::External => "external",
            Self::Missing => "missing",
            Self::ToCreate => "to create",
            Self::ToModify => "to modify",
            Self::ToDelete => "to delete",
        }
    }

    pub(super) fn colour(self) -> &'static str {
        match self {
            Self::Created => "#d5e8d4",
            Self::Busy => "#fff2cc",
            Self::Failed => "#f8cecc",
            Self::Unknown => "#e1d5e7",
            Self::External => "#dae8fc",
            Self::Missing => "#ffffff",
            Self::ToCreate => "#b9e0a5",
            Self::ToModify => "#ffe6a0",
            Self::ToDelete => "#ea9999",
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) reference: Ref,
    pub(super) group: GroupPath,
    pub(super) look: Look,
    pub(super) state: String,
}

#[derive(Debug, Clone)]
pub(super) struct Edge {
    pub(super) from: Ref,
    pub(super) to: Ref,
    pub(super) label: String,
    pub(super) is_satisfied: bool,
    pub(super) is_order_only: bool,
}

#[derive(Debug, Clone)]
pub(super) struct View {
    pub(super) name: String,
    pub(super) groups: BTreeMap<GroupPath, String>,
    pub(super) nodes: BTreeMap<Ref, Node>,
    pub(super) edges: Vec<Edge>,
}

impl View {
    pub(super) fn from_graph<V: Value>(
        graph: &Graph<V>,
        intended: Option<&Graph<V>>,
        types: &Types<V>,
    ) -> Self {
        let mut view = Self {
            name: graph.name().to_owned(),
            groups: BTreeMap::new(),
            nodes: BTreeMap::new(),
            edges: Vec::new(),
        };
        for source in std::iter::once(graph).chain(intended) {
            view.add_groups(source);
        }
        let refs: BTreeSet<&Ref> = graph
            .items()
            .chain(intended.into_iter().flat_map(Graph::items))
            .map(Item::reference)
            .collect();
        for reference in refs {
            view.add(reference, graph, intended, types);
        }
        view.add_missing();
        view
    }

    fn add_groups<V: Value>(&mut self, graph: &Graph<V>) {
        for group in graph.groups() {
            let description = self.groups.entry(group.path.clone()).or_default();
            if !group.description.is_empty() {
                description.clone_from(&group.description);
            }
            let mut outer = group.path.parent();
            while let Some(path) = outer.filter(|path| !path.is_root()) {
                outer = path.parent();
                self.groups.entry(path).or_default();
            }
        }
    }

    fn add<V: Value>(
        &mut self,
        reference: &Ref,
        now: &Graph<V>,
        intended: Option<&Graph<V>>,
        types: &Types<V>,
    ) {
        let (old, new) = (
            now.get(reference),
            intended.and_then(|graph| graph.get(reference)),
        );
        let Some(item) = new.or(old) else { return };
        let source = intended.filter(|_| new.is_some()).unwrap_or(now);
        let group = source.group_of(reference).cloned().unwrap_or_default();
        let look = look(old, new, intended.is_some());
        let state = old.map_or_else(|| look.name().to_owned(), |old| old.state().to_string());
        self.nodes.insert(
            reference.clone(),
            Node {
                reference: reference.clone(),
                group,
                look,
                state,
            },
        );
        for need in item.dependencies() {
            let serves = |target: &Ref| {
                let target = now.get(target).filter(|target| target.is_created());
                target.is_some_and(|target| {
                    let named =
                        |name: &str, value: &V| types.named(target.reference().type_name(), name, value);
                    need.predicate()
                        .is_none_or(|predicate| predicate.holds(target.value(), &named))
                })
            };
            let is_satisfied = need.is_order_only() || need.targets().any(serves);
            for target in need.targets() {
                let label = need
                    .predicate()
                    .map(ToString::to_string)
                    .unwrap_or_else(|| need.description().to_owned());
                self.edges.push(Edge {
                    from: reference.clone(),
                    to: target.clone(),
                    label,
                    is_satisfied,
                    is_order_only: need.is_order_only(),
                });
            }
        }
    }

    fn add_missing(&mut self) {
        for edge in &self.edges {
            self.nodes.entry(edge.to.clone()).or_insert_with(|| Node {
                reference: edge.to.clone(),
                group: GroupPath::root(),
                look: Look::Missing,
                state: Look::Missing.name().to_owned(),
            });
        }
    }

    /// Lists the groups directly inside a group.
    pub(super) fn inner_groups<'a>(&'a self, outer: &'a GroupPath) -> impl Iterator<Item = &'a GroupPath> {
        self.groups
            .keys()
            .filter(move |path| path.parent().as_ref() == Some(outer))
    }

    pub(super) fn nodes_in<'a>(&'a self, group: &'a GroupPath) -> impl Iterator<Item = &'a Node> {
        self.nodes.values().filter(move |node| &node.group == group)
    }
}

fn look<V: Value>(old: Option<&Item<V>>, new: Option<&Item<V>>, is_transition: bool) -> Look {
    match (old, new) {
        (Some(old), _) if old.is_external() => Look::External,
        (None, Some(new)) if new.is_external() => Look::Missing,
        (None, _) => Look::ToCreate,
        (Some(_), None) if is_transition => Look::ToDelete,
        (Some(old), _) if matches!(old.state(), State::Failed(_)) => Look::Failed,
        (Some(old), Some(new)) if old.spec() != new.spec() => Look::ToModify,
        (Some(old), _) => match old.state() {
            State::Created => Look::Created,
            State::Unknown(_) => Look::Unknown,
            State::Failed(_) => Look::Failed,
            State::Creating | State::Modifying | State::Deleting => Look::Busy,
        },
    }
}
