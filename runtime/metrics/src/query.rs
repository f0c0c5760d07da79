//! Queries of metrics views.

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

/// A query of a metrics view. People write it as JSON: [`Query::from_json`].
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The name of the metrics view to query.
    pub metrics_view: String,
    /// The dimensions that rows are grouped by.
    pub dimensions: Vec<Dimension>,
    /// The measures of each group.
    pub measures: Vec<Measure>,
    /// The time range of the rows; none for all rows.
    pub time_range: Option<Range>,
    /// The time range that the first one is compared with, if any.
    pub comparison_time_range: Option<Comparison>,
    /// The time zone in which times are cut; UTC by default, on every machine.
    pub time_zone: Zone,
    /// The condition on rows, if any.
    pub r#where: Option<Filter>,
    /// The condition on groups, if any.
    pub having: Option<Filter>,
    /// The columns that rows are ordered by, first to last.
    pub sort: Vec<Sort>,
    /// The largest number of rows; none for all.
    pub limit: Option<u64>,
    /// The number of rows to skip first.
    pub offset: u64,
    /// The names of the dimensions whose values become columns.
    pub pivot_on: Vec<String>,
    /// The groups that appear even without rows, if any.
    pub spine: Option<Spine>,
    /// True if a row of totals is added.
    pub totals: bool,
    /// True if ungrouped rows are returned.
    pub rows: bool,
    /// True if columns are headed by display names.
    pub use_display_names: bool,
}

/// A dimension that a query groups by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dimension {
    /// The name of the column in the answer.
    pub name: String,
    /// The name of the view's dimension.
    pub of: String,
    /// The grain that times are cut to; none for the values themselves.
    pub grain: Option<Grain>,
}

/// A measure that a query asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measure {
    /// The name of the column in the answer.
    pub name: String,
    /// The computation by the query; none for the view's measure of that name.
    pub compute: Option<ComputedMeasure>,
}

/// A measure that a query computes itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComputedMeasure {
    /// The number of rows in the group.
    Count,
    /// The number of distinct values of a dimension.
    CountDistinct(String),
    /// The value that a measure has in the comparison range.
    ComparisonValue(String),
    /// The difference of a measure between base and comparison.
    ComparisonDelta(String),
    /// The difference of a measure as a share of its value in the comparison.
    ComparisonRatio(String),
    /// The comparison's bucket that is paired with the bucket of a time dimension.
    ComparisonTime(String),
    /// The value of a measure as a share of its total.
    PercentOfTotal(String),
    /// The link of a dimension's value.
    Uri(String),
}

/// A time range on a dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The name of the time dimension; none for the view's own.
    pub time_dimension: Option<String>,
    /// The time range to evaluate.
    pub range: TimeRange,
}

/// The time range of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Comparison {
    /// A range given independently of the base range.
    Range(Range),
    /// The base range, moved by an offset.
    Offset(Offset),
}

/// A column that rows are ordered by, with the direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sort {
    /// The name of the column to order by.
    pub name: String,
    /// True if the largest values come first.
    pub descending: bool,
}

/// The groups that appear in an answer even without rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Spine {
    /// All buckets of the time range.
    Time,
    /// The groups of all rows that meet a condition.
    Where(Filter),
}

/// The limits of a query, which keep statements below 1 MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits;

impl Limits {
    /// The largest number of dimensions and measures together.
    pub const FIELDS: usize = 64;
    /// The largest number of values in filters.
    pub const VALUES: usize = 10_000;
    /// The largest number of buckets in a range that are paired or filled.
    pub const BUCKETS: usize = 10_000;
    /// The largest number of columns that a pivot creates.
    pub const PIVOT_COLUMNS: usize = 1_000;
    /// The largest nesting depth of filters and subqueries.
    pub const DEPTH: usize = 8;
}

impl Query {
    /// Returns a query of a view without any fields.
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
    /// Returns the view's dimension of a name, as a column of that name.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            of: name.to_owned(),
            grain: None,
        }
    }
}

impl Measure {
    /// Returns the view's measure of a name, as a column of that name.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            compute: None,
        }
    }
}
