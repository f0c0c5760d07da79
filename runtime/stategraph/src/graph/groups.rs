//! Named places for items, one inside the other. They are for people and for converging a part alone.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Graph;
use crate::reference::Ref;

/// The way to a group: names joined by slashes. The empty path is the whole graph.
///
/// ```
/// use watershed_stategraph::GroupPath;
/// let daily = GroupPath::from("views/daily");
/// assert_eq!((daily.leaf(), daily.parent()), ("daily", Some(GroupPath::from("views"))));
/// assert!(daily.is_within(&GroupPath::from("views")) && daily.is_within(&GroupPath::root()));
/// assert!(!daily.is_within(&GroupPath::from("view")));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GroupPath(String);

impl GroupPath {
    /// The whole graph.
    pub fn root() -> Self {
        Self::default()
    }

    /// Whether it is the whole graph.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this group is that one or is nested in it.
    pub fn is_within(&self, outer: &Self) -> bool {
        outer.is_root()
            || self
                .0
                .strip_prefix(&outer.0)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The group around this one.
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        Some(Self(
            self.0
                .rsplit_once('/')
                .map_or_else(String::new, |(outer, _)| outer.to_owned()),
        ))
    }

    /// The last name of the path.
    pub fn leaf(&self) -> &str {
        self.0.rsplit_once('/').map_or(&self.0, |(_, leaf)| leaf)
    }
}

impl From<&str> for GroupPath {
    fn from(text: &str) -> Self {
        let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
        Self(parts.join("/"))
    }
}

impl From<&GroupPath> for GroupPath {
    fn from(path: &GroupPath) -> Self {
        path.clone()
    }
}

impl fmt::Display for GroupPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A named, described place for items.
///
/// ```
/// # mod warehouse { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/warehouse.rs.in")); }
/// use watershed_stategraph::{Group, Ref};
/// let mut graph = warehouse::intended()?;
/// graph.add_group("views", "what analysts read");
/// graph.move_to(&Ref::parse("view/daily")?, "views")?;
/// let groups: Vec<&Group> = graph.groups().collect();
/// assert_eq!((groups[0].path.as_str(), groups[0].description.as_str()), ("views", "what analysts read"));
/// assert_eq!(graph.subgraph("views").len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Where it is.
    pub path: GroupPath,
    /// What it is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

impl Group {
    pub(super) fn root() -> Self {
        Self {
            path: GroupPath::root(),
            description: String::new(),
        }
    }
}

impl<V> Graph<V> {
    /// Makes a group, and those around it, or describes one anew.
    pub fn add_group(&mut self, path: impl Into<GroupPath>, description: impl Into<String>) {
        let path = path.into();
        let mut outer = path.parent();
        while let Some(path) = outer {
            self.intern_group(&path);
            outer = path.parent();
        }
        let group = self.intern_group(&path);
        self.groups[group as usize].description = description.into();
    }

    /// All groups but the root, in order of path.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        let mut groups: Vec<&Group> = self.groups.iter().filter(|group| !group.path.is_root()).collect();
        groups.sort_unstable_by(|left, right| left.path.cmp(&right.path));
        groups.into_iter()
    }

    /// The group that an item is in.
    pub fn group_of(&self, reference: &Ref) -> Option<&GroupPath> {
        let place = self.places.get(self.slot(reference)? as usize)?;
        place.item.as_ref()?;
        Some(&self.groups.get(place.group as usize)?.path)
    }

    /// How many groups there are is small beside the items, and groups are rarely made: a search will do.
    pub(crate) fn intern_group(&mut self, path: &GroupPath) -> u32 {
        if let Some(at) = self.groups.iter().rposition(|group| &group.path == path) {
            return at as u32;
        }
        self.groups.push(Group {
            path: path.clone(),
            description: String::new(),
        });
        (self.groups.len() - 1) as u32
    }

    /// The group of the item in a slot.
    pub(crate) fn path_of(&self, slot: super::Slot) -> Option<&GroupPath> {
        let place = self
            .places
            .get(slot as usize)
            .filter(|place| place.item.is_some())?;
        self.groups.get(place.group as usize).map(|group| &group.path)
    }

    pub(crate) fn has_group(&self, path: &GroupPath) -> bool {
        self.groups.iter().any(|group| group.path.is_within(path))
    }
}

impl<V: Clone> Graph<V> {
    /// A group with all that is nested in it, as a graph of its own.
    pub fn subgraph(&self, path: impl Into<GroupPath>) -> Self {
        let path = path.into();
        self.part(|at, _| at.is_within(&path))
    }

    /// One item as a graph of its own.
    pub fn item_graph(&self, reference: &Ref) -> Self {
        self.part(|_, found| found == reference)
    }

    fn part(&self, wanted: impl Fn(&GroupPath, &Ref) -> bool) -> Self {
        let mut part = Self::new(self.name.clone()).describe(self.description.clone());
        for place in &self.places {
            let (Some(item), Some(group)) = (&place.item, self.groups.get(place.group as usize)) else {
                continue;
            };
            if wanted(&group.path, &item.reference) {
                let at = part.intern_group(&group.path);
                part.groups[at as usize]
                    .description
                    .clone_from(&group.description);
                part.place(at, item.clone());
            }
        }
        part
    }
}
