//! Marks of descendants, which survive an emptied environment and a new group or session.
//!
//! It is the soft limit of file locks: the kernel has not enforced that since its version 2.4, hands it on with each fork and
//! keeps it over each exec. Only a program that changes this very limit loses it. [`Tag`](crate::tag::Tag) is for people and says which start a process is
//! of; the mark says as much to whoever knows the start.

use crate::start_id::StartId;

/// Number of bits in a mark that identify the state folder, so that shims ignore processes of other folders.
const INSTANCE_BITS: u32 = 40;
/// Number of bits in a mark that identify the start. Leftovers of two starts with equal bits are not distinguished, so
/// those of one may live as long as the other. The highest bit stays unused, since a limit of all ones means no limit.
const START_BITS: u32 = 23;

/// The mark of a start: a number that its descendants inherit as a resource limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark(u64);

impl Mark {
    /// Returns the mark of a start in a journal's instance.
    pub(crate) fn of(instance: &str, id: &StartId) -> Self {
        let start = hash(&format!("{instance}/{id}")) & ((1 << START_BITS) - 1);
        Self(Self::part_of(instance) << START_BITS | start)
    }

    /// Reads the mark from a limit; none if the limit is no mark of this instance.
    pub(crate) fn read(limit: u64, instance: &str) -> Option<Self> {
        (limit >> START_BITS == Self::part_of(instance)).then_some(Self(limit))
    }

    /// Returns the resource limit that encodes the mark.
    pub(crate) fn limit(self) -> u64 {
        self.0
    }

    fn part_of(instance: &str) -> u64 {
        hash(instance) & ((1 << INSTANCE_BITS) - 1)
    }
}

/// Computes an FNV-1a hash, which spreads short texts well enough over these bits.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn marks_tell_instances_and_starts_apart_and_are_limits() {
        let marks: BTreeSet<Mark> = (0..1_000)
            .map(|counter| Mark::of("a", &StartId::new("uid", counter).unwrap()))
            .collect();
        assert!(marks.len() > 990, "{}", marks.len());
        for mark in marks {
            assert!(mark.limit() < u64::MAX >> 1);
            assert_eq!(Mark::read(mark.limit(), "a"), Some(mark));
            assert_eq!(Mark::read(mark.limit(), "b"), None);
        }
        assert_eq!(Mark::read(u64::MAX, "a"), None);
    }
}
