//! Short linked lists in one vector: an owner holds only the head, so that an empty list costs little.

/// Head of a list; empty by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Chain(u32);

/// Lists of one course, each in no particular order.
#[derive(Debug)]
pub(super) struct Chains<T> {
    /// Values with the rest of their lists. A chain is the position of its first link plus one.
    links: Vec<(T, Chain)>,
}

impl<T> Default for Chains<T> {
    fn default() -> Self {
        Self { links: Vec::new() }
    }
}

impl<T: Copy + PartialEq> Chains<T> {
    pub(super) fn add(&mut self, chain: &mut Chain, value: T) {
        self.links.push((value, *chain));
        let at = u32::try_from(self.links.len());
        assert!(at.is_ok(), "a course has fewer than 2^32 links");
        *chain = Chain(at.unwrap_or_default());
    }

    pub(super) fn iter(&self, chain: Chain) -> impl Iterator<Item = T> + '_ {
        let first = self.link(chain);
        std::iter::successors(first, |(_, rest)| self.link(*rest)).map(|(value, _)| *value)
    }

    /// Returns a list without one occurrence of a value; none if the value is not in it. The space is freed with all
    /// lists.
    #[must_use]
    pub(super) fn remove(&mut self, chain: Chain, value: T) -> Option<Chain> {
        let values: Vec<T> = self.iter(chain).collect();
        let found = values.iter().position(|&one| one == value)?;
        let mut kept = Chain::default();
        for (at, &one) in values.iter().enumerate() {
            if at != found {
                self.add(&mut kept, one);
            }
        }
        Some(kept)
    }

    /// Removes all lists, and so invalidates their heads.
    pub(super) fn clear(&mut self) {
        self.links.clear();
    }

    fn link(&self, chain: Chain) -> Option<&(T, Chain)> {
        self.links.get((chain.0 as usize).checked_sub(1)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_grow_side_by_side_and_lose_one_value_at_a_time() {
        let mut chains = Chains::default();
        let (mut left, mut right) = (Chain::default(), Chain::default());
        for number in [1, 2, 1] {
            chains.add(&mut left, number);
            chains.add(&mut right, number * 10);
        }
        let sorted = |chains: &Chains<i32>, chain| {
            let mut values: Vec<i32> = chains.iter(chain).collect();
            values.sort_unstable();
            values
        };
        left = chains.remove(left, 1).unwrap();
        assert_eq!(sorted(&chains, left), [1, 2]);
        assert_eq!(sorted(&chains, right), [10, 10, 20]);
        assert!(chains.remove(right, 1).is_none());
        assert_eq!(chains.iter(Chain::default()).count(), 0);
    }
}
