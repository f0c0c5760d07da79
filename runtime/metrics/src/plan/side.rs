//! The sides of a comparison, and the dimensions and ranges that they have.

use watershed_schedule::Grain;

use crate::calendar::Range;

/// A dimension as rows are grouped by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) dimension: usize,
    pub(super) grain: Option<Grain>,
}

/// A range on a dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) dimension: usize,
    pub(super) range: Range,
}

/// The two sides of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Base,
    Comparison,
}
