//! A mark that all descendants of a process have, also those that emptied their environment and left group and session.
//!
//! It is the soft limit of file locks: the kernel has not enforced that since its version 2.4, hands it on with each fork and
//! keeps it over each exec. Only a program that changes this very limit loses it. [`Tag`](crate::tag::Tag) is for people and says which start a process is
//! of; the mark says as much to whoever knows the start.

use crate::start_id::StartId;

/// Bits of a mark that tell the state folder, so that nobody takes a process of another one for their own.
const INSTANCE_BITS: u32 = 40;
/// Bits of a mark that tell the start. Two starts with equal ones are not told apart, so what the one has left may live as long
/// as the other. Together the bits leave out the highest, as a limit of all ones is none.
const START_BITS: u32 = 23;

/// The mark of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark(u64);

impl Mark {
    /// Returns the mark of a start of a journal's instance.
    pub(crate) fn of(instance: &str, id: &StartId) -> Self {
        let start = hash(&format!("{instance}/{id}")) & ((1 << START_BITS) - 1);
        Self(Self::part_of(instance) << START_BITS | start)
    }

    /// Returns the mark that a limit stands for, if it is one of an instance.
    pub(crate) fn read(limit: u64, instance: &str) -> Option<Self> {
        (limit >> START_BITS == Self::part_of(instance)).then_some(Self(limit))
    }

    /// Returns the limit that stands for it.
    pub(crate) fn limit(self) -> u64 {
        self.0
    }

    fn part_of(instance: &str) -> u64 {
        hash(instance) & ((1 << INSTANCE_BITS) - 1)
    }
}

/// FNV-1a, which spreads short texts well enough over so many bits.
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
