//! The rows of a metrics query, and the bounds of a time dimension.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The rows of a metrics query, with their columns and time ranges.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricsDocument {
    /// Name and version of this form: `watershed.metrics/1`.
    pub schema: String,
    /// Name of the metrics view.
    pub metrics_view: String,
    /// Columns of the rows, in order.
    pub columns: Vec<MetricsColumn>,
    /// Rows as the engine computed them. Integers beyond 2^53, decimals and times are strings.
    pub rows: Vec<Vec<Value>>,
    /// Time zone in which times are truncated. Instants themselves are in UTC.
    pub time_zone: String,
    /// True if there are more rows than the answer holds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// True if the rows come from the cache and their inputs have not changed since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    /// True if tables and files show the columns' display names as headers, as the query asks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub use_display_names: bool,
    /// SQL statement; absent unless it was requested instead of rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<String>,
    /// Row of totals; absent if the query asks for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub totals: Option<Vec<Value>>,
    /// Time range of the query; absent if no range bounds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_range: Option<MetricsRange>,
    /// Time range that the query compares with; absent if it compares with none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison_time_range: Option<MetricsRange>,
}

impl MetricsDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.metrics/1";
}

/// A column of a metrics query's rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MetricsColumn {
    /// Name of the column.
    pub name: String,
    /// Display name of the column, for people.
    pub display_name: String,
    /// Role of the column in the answer.
    pub role: MetricsRole,
    /// Field of the view that the column shows or is computed from; absent if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field: String,
    /// Type of the column, as the engine names it.
    #[serde(rename = "type")]
    pub data_type: String,
    /// Time grain to which the column's times are truncated; absent if they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grain: Option<String>,
    /// Name of the preset that formats the column's numbers; absent if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub format_preset: String,
    /// Pattern (d3-format) that formats the column's numbers; absent if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub format_d3: String,
}

/// The role of a column in a metrics query's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MetricsRole {
    /// A dimension by which rows are grouped.
    Dimension,
    /// A measure of the view, aggregated over each group.
    Measure,
    /// A value that the query computes from measures.
    Computed,
    /// A column of the underlying table, without aggregation.
    Column,
}

/// A half-open range of time: `start` inclusive, `end` exclusive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MetricsRange {
    /// Start of the range, inclusive.
    pub start: String,
    /// End of the range, exclusive.
    pub end: String,
}

/// The bounds of a metrics view's time dimension, over the rows that the viewer may see.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MetricsBoundsDocument {
    /// Name and version of this form: `watershed.metrics-bounds/1`.
    pub schema: String,
    /// Name of the metrics view.
    pub metrics_view: String,
    /// Name of the time dimension; null if the view has none, and then the bounds are null too.
    pub time_dimension: Option<String>,
    /// Earliest time in the data; null if there are no rows.
    pub earliest: Option<String>,
    /// Latest time in the data; null if there are no rows.
    pub latest: Option<String>,
    /// Time up to which the data is complete, from the view's `watermark`, or else the latest time; null if there are
    /// no rows.
    pub watermark: Option<String>,
}

impl MetricsBoundsDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.metrics-bounds/1";
}
