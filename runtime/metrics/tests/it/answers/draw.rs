//! Choices out of random numbers: 0 is the simplest choice, so that shrinking numbers shrinks what is made of them.

/// A source of choices; zeros at its end.
#[derive(Debug, Clone)]
pub(crate) struct Draw<'n> {
    numbers: std::slice::Iter<'n, u16>,
}

impl<'n> Draw<'n> {
    pub(crate) fn new(numbers: &'n [u16]) -> Self {
        Self {
            numbers: numbers.iter(),
        }
    }

    /// Draws a number below a bound.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::from(self.numbers.next().copied().unwrap_or_default()) % bound.max(1)
    }

    /// Draws true with a chance of one in so many; 0 is false.
    pub(crate) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) + 1 == count
    }

    pub(crate) fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }
}
