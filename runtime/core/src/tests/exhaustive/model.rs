//! Naive reference for edits, in bit sets. Shares only the events with the core.

/// Maximum number of resources.
pub(super) const NODES_MAX: usize = 4;
/// A name that no resource has at the beginning.
pub(super) const SPARE: u8 = 4;

/// A stored resource. Names are numbers: the index of the resource that had the name first, or [`SPARE`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Item {
    pub(super) name: u8,
    /// Names that the resource refers to, as bits.
    pub(super) refs: u8,
    /// Earlier names since the last completed rename, as bits.
    pub(super) former: u8,
    pub(super) deleted: bool,
    /// True if the delete or rename has failed and holds no other resource back.
    pub(super) failed: bool,
    /// Resources whose deletes come before that of this one, as bits.
    pub(super) waits: u8,
}

impl Item {
    pub(super) fn new(name: u8, refs: u8) -> Self {
        Self {
            name,
            refs,
            former: 0,
            deleted: false,
            failed: false,
            waits: 0,
        }
    }

    pub(super) fn is_marked(&self) -> bool {
        self.deleted || self.former != 0
    }

    /// Returns the names that the resource has or claims, as bits.
    pub(super) fn names(&self) -> u8 {
        self.former | 1 << self.name
    }
}

/// All resources of the naive reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Model {
    pub(super) items: [Option<Item>; NODES_MAX],
}

pub(super) fn bits(mask: u8) -> impl Iterator<Item = usize> {
    (0..8).filter(move |bit| mask & (1 << bit) != 0)
}

impl Model {
    pub(super) fn live(&self) -> impl Iterator<Item = (usize, &Item)> {
        let items = self.items.iter().enumerate();
        items
            .filter_map(|(index, item)| Some((index, item.as_ref()?)))
            .filter(|(_, item)| !item.deleted)
    }

    pub(super) fn is_live(&self, index: usize) -> bool {
        self.items[index].is_some_and(|item| !item.deleted)
    }

    /// Returns the live resource with a name; none if there is none.
    pub(super) fn holder(&self, name: u8) -> Option<usize> {
        self.live()
            .find(|(_, item)| item.name == name)
            .map(|(index, _)| index)
    }

    fn parents(&self) -> [u8; NODES_MAX] {
        let mut parents = [0; NODES_MAX];
        for (index, item) in self.live() {
            for name in bits(item.refs) {
                if let Some(parent) = self.holder(name as u8) {
                    parents[index] |= 1 << parent;
                }
            }
        }
        parents
    }

    /// Returns the ancestors of each resource, as bits; on a cycle, the resource itself is among them.
    pub(super) fn ancestors(&self) -> [u8; NODES_MAX] {
        let mut above = self.parents();
        for through in 0..NODES_MAX {
            for index in 0..NODES_MAX {
                if above[index] & (1 << through) != 0 {
                    above[index] |= above[through];
                }
            }
        }
        above
    }

    pub(super) fn direct_parents(&self, index: usize) -> u8 {
        self.parents()[index]
    }

    /// Returns a set of resources with all their descendants.
    pub(super) fn with_descendants(&self, set: u8) -> u8 {
        let above = self.ancestors();
        let below = (0..NODES_MAX).filter(|index| above[*index] & set != 0);
        below.fold(set, |all, index| all | 1 << index)
    }

    pub(super) fn on_cycles(&self) -> u8 {
        let above = self.ancestors();
        let on = (0..NODES_MAX).filter(|index| above[*index] & (1 << index) != 0);
        on.fold(0, |all, index| all | 1 << index)
    }

    /// Returns the live resources that refer to a name with another holder than before.
    pub(super) fn whose_refs_moved(&self, before: &Model) -> u8 {
        let moved = (0..=SPARE).filter(|name| self.holder(*name) != before.holder(*name));
        let moved = moved.fold(0, |all, name| all | 1 << name);
        let referring = self.live().filter(|(_, item)| item.refs & moved != 0);
        referring.fold(0, |all, (index, _)| all | 1 << index)
    }
}
