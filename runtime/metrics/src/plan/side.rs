//! The two sides of a comparison, with cuts and time ranges.

use watershed_schedule::Grain;

use crate::calendar::Range;

/// A dimension that rows are grouped by, with the grain that it is cut to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) dimension: usize,
    pub(super) grain: Option<Grain>,
}

/// A time range on a dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) dimension: usize,
    pub(super) range: Range,
}

/// Base or comparison: the two sides of a query with a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Base,
    Comparison,
}
