//! The choices of a play, all from one seed.

use watershed_core::Key;

/// Generator of the choices of a play: equal seeds give equal choices.
///
/// A spec is made from a roll (see [`Kit::new`](super::Kit::new)), which also knows whom it is for.
///
/// ```
/// use watershed_testkit::Roll;
///
/// let (mut one, mut other) = (Roll::seeded(7), Roll::seeded(7));
/// assert_eq!(one.below(100), other.below(100));
/// assert!(["a", "b"].contains(one.pick(&["a", "b"])));
/// ```
#[derive(Debug, Clone)]
pub struct Roll {
    state: u64,
    name: String,
    refs: Vec<Key>,
}

impl Roll {
    /// Creates a generator that is not for a particular resource.
    pub fn seeded(seed: u64) -> Self {
        Self {
            state: seed,
            name: String::new(),
            refs: Vec::new(),
        }
    }

    /// Sets the name and refs of the resource that a spec is for.
    pub(super) fn of(mut self, name: &str, refs: &[Key]) -> Self {
        self.name = name.to_owned();
        self.refs = refs.to_vec();
        self
    }

    /// Returns the name of the resource that the spec is for, which may be renamed later.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the refs that the resource will have, in order.
    pub fn refs(&self) -> &[Key] {
        &self.refs
    }

    /// Returns a number of the whole range.
    pub fn any(&mut self) -> u64 {
        // SplitMix64: one addition and a mix, good enough for choices, and the same everywhere.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`; 0 if there is none.
    pub fn below(&mut self, end: u64) -> u64 {
        self.any().checked_rem(end).unwrap_or(0)
    }

    /// Returns one of the values, each with the same chance.
    ///
    /// # Panics
    /// If there are none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let at = self.below(from.len() as u64) as usize;
        from.get(at).expect("there is something to pick from")
    }

    /// Returns true with a chance of `chance` percent.
    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// Returns an index of a list with `end` entries.
    pub(super) fn index(&mut self, end: usize) -> usize {
        self.below(end as u64) as usize
    }
}
