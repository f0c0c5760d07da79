//! Queries: what is asked of a metrics view.

mod check;
mod error;
mod filter;
mod json;
mod names;
mod operands;
mod read;

use watershed_schedule::{Grain, Zone};

use crate::range::{Offset, TimeRange};

pub use check::check;
pub use error::{Code, QueryError};
pub use filter::{Filter, Literal, Operator, Subquery};

/// A query of a metrics view. Its form for people is JSON: [`Query::from_json`].
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The view.
    pub metrics_view: String,
    /// The dimensions that rows are grouped by.
    pub dimensions: Vec<Dimension>,
    /// The measures of each group.
    pub measures: Vec<Measure>,
    /// The range of time; none for all rows.
    pub time_range: Option<Range>,
    /// The range that it is compared with.
    pub comparison_time_range: Option<Comparison>,
    /// The zone in which times are cut; UTC unless said otherwise, the same on every machine.
    pub time_zone: Zone,
    /// The rows that count.
    pub r#where: Option<Filter>,
    /// The groups that are shown.
    pub having: Option<Filter>,
    /// The order of rows.
    pub sort: Vec<Sort>,
    /// The number of rows at most.
    pub limit: Option<u64>,
    /// The number of rows that are left out first.
    pub offset: u64,
    /// The dimensions whose values become columns.
    pub pivot_on: Vec<String>,
    /// The groups that are there without rows, too.
    pub spine: Option<Spine>,
    /// A row of totals.
    pub totals: bool,
    /// The rows themselves, ungrouped.
    pub rows: bool,
    /// Columns are headed by names for people.
    pub use_display_names: bool,
}

/// A dimension of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dimension {
    /// The name of its column.
    pub name: String,
    /// The view's dimension.
    pub of: String,
    /// The grain that its times are cut to.
    pub grain: Option<Grain>,
}

/// A measure of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measure {
    /// The name of its column.
    pub name: String,
    /// The computation, if it is not the view's measure of that name.
    pub compute: Option<ComputedMeasure>,
}

/// A measure that a query computes by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComputedMeasure {
    /// The number of rows.
    Count,
    /// The number of a dimension's values.
    CountDistinct(String),
    /// A measure's value in the comparison.
    ComparisonValue(String),
    /// The difference of a measure to the comparison.
    ComparisonDelta(String),
    /// The difference, as a share of the comparison.
    ComparisonRatio(String),
    /// The bucket of the comparison that a time dimension's bucket is compared with.
    ComparisonTime(String),
    /// A measure's value as a share of its total.
    PercentOfTotal(String),
    /// The link of a dimension's value.
    Uri(String),
}

/// A range on a time dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The dimension, if it is not the view's own.
    pub time_dimension: Option<String>,
    /// The range.
    pub range: TimeRange,
}

/// A range that another is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Comparison {
    /// A range of its own.
    Range(Range),
    /// A distance from the base.
    Offset(Offset),
}

/// A column that rows are ordered by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sort {
    /// The column.
    pub name: String,
    /// From the largest.
    pub descending: bool,
}

/// The groups that an answer has even without rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Spine {
    /// Every bucket of the range.
    Time,
    /// The groups that meet a condition.
    Where(Filter),
}

/// Bounds of a query, which keep statements under a mebibyte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits;

impl Limits {
    /// Dimensions and measures together.
    pub const FIELDS: usize = 64;
    /// Values in filters.
    pub const VALUES: usize = 10_000;
    /// Buckets of a range that are paired with those of another, or filled.
    pub const BUCKETS: usize = 10_000;
    /// Columns that a pivot makes.
    pub const PIVOT_COLUMNS: usize = 1_000;
    /// Nesting of filters and subqueries.
    pub const DEPTH: usize = 8;
}

impl Query {
    /// Returns a query of a view that names nothing yet.
    pub fn of(metrics_view: &str) -> Self {
        Self {
            metrics_view: metrics_view.to_owned(),
            dimensions: Vec::new(),
            measures: Vec::new(),
            time_range: None,
            comparison_time_range: None,
            time_zone: Zone::UTC,
            r#where: None,
            having: None,
            sort: Vec::new(),
            limit: None,
            offset: 0,
            pivot_on: Vec::new(),
            spine: None,
            totals: false,
            rows: false,
            use_display_names: false,
        }
    }
}

impl Dimension {
    /// Returns the view's dimension of a name.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            of: name.to_owned(),
            grain: None,
        }
    }
}

impl Measure {
    /// Returns the view's measure of a name.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            compute: None,
        }
    }
}
