//! Naive reference for edits, in bit sets. Shares only the events with the core.

/// The most resources.
pub(super) const NODES_MAX: usize = 4;
/// The one name beside those that the resources begin with.
pub(super) const SPARE: u8 = 4;

/// One stored resource. Names are numbers: that of the resource that began with it, or [`SPARE`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Item {
    pub(super) name: u8,
    /// Names that it refers to, as bits.
    pub(super) refs: u8,
    /// Names since the last completed rename.
    pub(super) former: u8,
    pub(super) deleted: bool,
    /// Its delete or rename has failed and holds nobody back.
    pub(super) failed: bool,
    /// Resources whose deletes come before its own.
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

    /// Names that it has or claims.
    pub(super) fn names(&self) -> u8 {
        self.former | 1 << self.name
    }
}

/// All of them.
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

    /// Returns the holder of a name.
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

    /// For each, what is above it; itself if it is on a cycle.
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

    /// A set and all that is below it.
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

    /// Those of the live ones that refer to a name whose holder is another one than before.
    pub(super) fn whose_refs_moved(&self, before: &Model) -> u8 {
        let moved = (0..=SPARE).filter(|name| self.holder(*name) != before.holder(*name));
        let moved = moved.fold(0, |all, name| all | 1 << name);
        let referring = self.live().filter(|(_, item)| item.refs & moved != 0);
        referring.fold(0, |all, (index, _)| all | 1 << index)
    }
}
