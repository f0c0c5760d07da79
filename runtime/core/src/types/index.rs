//! Dense indexes of resources, names, kinds and cycles inside the core.

/// Dense index of a resource, reused after the resource is gone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Slot(u32);

/// Dense index of a (kind, name) pair that a resource has or refers to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct NameId(u32);

/// Dense index of a kind, in order of first use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct KindId(u32);

/// Dense index of a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CycleId(u32);

macro_rules! index {
    ($($name:ident)*) => {$(
        impl $name {
            pub(crate) fn new(index: u32) -> Self {
                Self(index)
            }

            /// Returns the value as an index into a vector.
            pub(crate) fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

index!(Slot NameId KindId CycleId);

pub(crate) fn index_u32(index: usize) -> u32 {
    u32::try_from(index).expect("fewer than 2^32 entries")
}
