//! Nested groups of items, for people and for converging a part.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::Graph;
use crate::reference::Ref;

/// A path to a group: names joined by slashes. The empty path is the root, the whole graph.
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
    /// Returns the path of the whole graph.
    pub fn root() -> Self {
        Self::default()
    }

    /// Returns true if the path is that of the whole graph.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if this group is `outer` or nested in it.
    pub fn is_within(&self, outer: &Self) -> bool {
        outer.is_root()
            || self
                .0
                .strip_prefix(&outer.0)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Returns the path of the enclosing group; none for the root.
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

    /// Returns the last name of the path.
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

/// A group of items, with a path and a description.
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
    /// Path that identifies the group.
    pub path: GroupPath,
    /// Description of the group's purpose; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

impl Group {
    fn at(path: GroupPath) -> Self {
        Self {
            path,
            description: String::new(),
        }
    }
}

/// Index of a group, stored with each of its items.
pub(crate) type GroupId = u32;

/// Index of the root group, which contains all others.
const ROOT: GroupId = 0;

/// All groups of one graph, with their numbers of items.
///
/// Invariants:
/// 1. The root is there, and around each group that is there are all its outer ones.
/// 2. `members` of a group counts the items in it and in those nested in it; the count of the root stays zero.
#[derive(Debug, Clone)]
pub(crate) struct Groups {
    entries: Vec<Entry>,
    index: BTreeMap<GroupPath, GroupId>,
    free: Vec<GroupId>,
    /// Group of the last lookup, which often is that of the next one.
    last: GroupId,
    /// Groups that lost their last item since the call began; none outside a call.
    emptied: Option<Vec<GroupId>>,
}

#[derive(Debug, Clone)]
struct Entry {
    group: Group,
    parent: GroupId,
    members: usize,
}

impl Default for Groups {
    fn default() -> Self {
        let root = Entry {
            group: Group::at(GroupPath::root()),
            parent: ROOT,
            members: 0,
        };
        Self {
            entries: vec![root],
            index: BTreeMap::new(),
            free: Vec::new(),
            last: ROOT,
            emptied: None,
        }
    }
}

impl Groups {
    /// Lists all groups except the root, in order of path.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Group> {
        self.index.values().map(|&at| &self.entries[at as usize].group)
    }

    pub(super) fn path(&self, at: GroupId) -> &GroupPath {
        &self.entries[at as usize].group.path
    }

    fn find(&self, path: &GroupPath) -> Option<GroupId> {
        if path.is_root() {
            return Some(ROOT);
        }
        self.index.get(path).copied()
    }

    /// Returns the group with this path, creating it and the enclosing groups if necessary.
    pub(super) fn intern(&mut self, path: &GroupPath) -> GroupId {
        if self.path(self.last) == path {
            return self.last;
        }
        self.last = match self.find(path) {
            Some(at) => at,
            None => self.add(path),
        };
        self.last
    }

    fn add(&mut self, path: &GroupPath) -> GroupId {
        let parent = path.parent().map_or(ROOT, |parent| self.intern(&parent));
        let entry = Entry {
            group: Group::at(path.clone()),
            parent,
            members: 0,
        };
        let at = if let Some(at) = self.free.pop() {
            self.entries[at as usize] = entry;
            at
        } else {
            self.entries.push(entry);
            // There are at most as many groups as refs and calls that name one: far below 2^32.
            (self.entries.len() - 1) as GroupId
        };
        self.index.insert(path.clone(), at);
        at
    }

    /// Sets the description of a group; returns true if it changed.
    fn describe(&mut self, at: GroupId, description: &str) -> bool {
        let old = &mut self.entries[at as usize].group.description;
        let is_news = old != description;
        if is_news {
            description.clone_into(old);
        }
        is_news
    }

    /// Removes a group without items or nested groups; returns whether it did.
    fn remove_empty(&mut self, path: &GroupPath) -> bool {
        let Some(at) = self.find(path).filter(|&at| at != ROOT) else {
            return false;
        };
        let mut nested = self.index.range(GroupPath(format!("{path}/"))..);
        let is_outer = nested.next().is_some_and(|(other, _)| other.is_within(path));
        if is_outer || self.entries[at as usize].members > 0 {
            return false;
        }
        self.index.remove(path);
        self.free.push(at);
        self.last = ROOT;
        true
    }

    /// Counts an item that is added to a group.
    pub(super) fn enter(&mut self, at: GroupId) {
        self.count(at, |members| *members += 1);
    }

    /// Counts an item that is removed from a group.
    pub(super) fn leave(&mut self, at: GroupId) {
        self.count(at, |members| *members -= 1);
        if let Some(emptied) = &mut self.emptied
            && self.entries[at as usize].members == 0
        {
            emptied.push(at);
        }
    }

    /// Begins to record the groups that lose their last item.
    pub(super) fn watch(&mut self) {
        self.emptied.get_or_insert_default();
    }

    fn count(&mut self, mut at: GroupId, change: impl Fn(&mut usize)) {
        while at != ROOT {
            let entry = &mut self.entries[at as usize];
            change(&mut entry.members);
            at = entry.parent;
        }
    }
}

impl<V> Graph<V> {
    /// Creates a group and the enclosing ones, or replaces the description of an existing group.
    pub fn add_group(&mut self, path: impl Into<GroupPath>, description: impl Into<String>) {
        let group = self.groups.intern(&path.into());
        self.groups.describe(group, &description.into());
        self.changes += 1;
    }

    /// Lists all groups except the root, in order of path.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter()
    }

    /// Returns the path of an item's group.
    pub fn group_of(&self, reference: &Ref) -> Option<&GroupPath> {
        self.path_of(self.slot(reference)?)
    }

    pub(crate) fn intern_group(&mut self, path: &GroupPath) -> GroupId {
        self.groups.intern(path)
    }

    /// Returns the group of the item in a slot.
    pub(crate) fn path_of(&self, slot: super::Slot) -> Option<&GroupPath> {
        let place = self
            .places
            .get(slot as usize)
            .filter(|place| place.item.is_some())?;
        Some(self.groups.path(place.group))
    }

    pub(crate) fn has_group(&self, path: &GroupPath) -> bool {
        self.groups.find(path).is_some()
    }

    /// Updates a group with all nested and enclosing ones to the intended ones: existence, descriptions, and removal of
    /// empty groups. Takes time linear in the groups.
    pub(crate) fn update_groups(&mut self, intended: Option<&Self>, within: &GroupPath) {
        let own = self.groups.iter().map(|group| &group.path);
        let mut paths: BTreeSet<GroupPath> = own.filter(|path| path.is_within(within)).cloned().collect();
        let others = intended
            .into_iter()
            .flat_map(Self::groups)
            .map(|group| &group.path);
        paths.extend(others.filter(|path| path.is_within(within)).cloned());
        // Nested ones first, so that those around them may be empty afterwards.
        for path in paths.iter().rev() {
            self.update_group(intended, path);
        }
        let mut outer = within.parent();
        while let Some(path) = outer.filter(|path| !path.is_root()) {
            self.update_group(intended, &path);
            outer = path.parent();
        }
    }

    /// Updates the groups of the given items and those that became empty, like [`Graph::update_groups`]. Takes time
    /// linear in these groups.
    pub(crate) fn update_groups_of(&mut self, intended: Option<&Self>, slots: &[super::Slot]) {
        let emptied = self.groups.emptied.take().unwrap_or_default();
        let left = emptied.into_iter().map(|at| self.groups.path(at));
        let entered = slots.iter().filter_map(|&slot| self.path_of(slot));
        let paths: BTreeSet<GroupPath> = left.chain(entered).cloned().collect();
        for path in paths.iter().rev() {
            let mut at = Some(path.clone());
            while let Some(path) = at.filter(|path| !path.is_root()) {
                self.update_group(intended, &path);
                at = path.parent();
            }
        }
    }

    /// Updates one group like [`Graph::update_groups`].
    pub(crate) fn update_group(&mut self, intended: Option<&Self>, path: &GroupPath) {
        if path.is_root() {
            return;
        }
        let wanted =
            intended.and_then(|graph| Some(&graph.groups.entries[graph.groups.find(path)? as usize]));
        let has_changed = match wanted {
            Some(wanted) => {
                let is_new = self.groups.find(path).is_none();
                let at = self.groups.intern(path);
                self.groups.describe(at, &wanted.group.description) || is_new
            }
            None => self.groups.remove_empty(path),
        };
        self.changes += u64::from(has_changed);
    }
}

impl<V: Clone> Graph<V> {
    /// Returns a group with all nested ones as a graph of its own.
    pub fn subgraph(&self, path: impl Into<GroupPath>) -> Self {
        let path = path.into();
        self.part(|at, _| at.is_within(&path))
    }

    /// Returns a graph with only this item.
    pub fn item_graph(&self, reference: &Ref) -> Self {
        self.part(|_, found| found == reference)
    }

    fn part(&self, wanted: impl Fn(&GroupPath, &Ref) -> bool) -> Self {
        let mut part = Self::new(self.name.clone()).describe(self.description.clone());
        for place in &self.places {
            let Some(item) = &place.item else { continue };
            let path = self.groups.path(place.group);
            if wanted(path, &item.reference) {
                let at = part.intern_group(path);
                part.place(at, item.clone());
            }
        }
        let paths: Vec<GroupPath> = part.groups().map(|group| group.path.clone()).collect();
        for path in paths {
            part.update_group(Some(self), &path);
        }
        part
    }
}
