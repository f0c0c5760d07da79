//! Dense indexes: how the parts of the core speak of resources, names, kinds and cycles.

/// Dense index of a resource; used again after it is gone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Slot(pub(crate) u32);

/// Dense index of a (kind, name) that something has or refers to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct NameId(pub(crate) u32);

/// Dense index of a kind, in order of first sight.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct KindId(pub(crate) u32);

/// Dense index of a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CycleId(pub(crate) u32);

pub(crate) fn index_u32(index: usize) -> u32 {
    u32::try_from(index).expect("fewer than 2^32 entries")
}
