//! The answer to a query of a metrics view.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Columns, rows and the ranges that they are about.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricsDocument {
    /// Name and version of this form: `watershed.metrics/1`.
    pub schema: String,
    /// The metrics view.
    pub metrics_view: String,
    /// The columns, in order.
    pub columns: Vec<MetricsColumn>,
    /// The rows, as the engine computed them; integers beyond 2^53, decimals and times are strings.
    pub rows: Vec<Vec<Value>>,
    /// The zone that times are cut in. Instants are in universal time.
    pub time_zone: String,
    /// There are more rows, which the command line left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// The rows were kept from an earlier question; nothing that they are made of has changed since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    /// Tables and files have the names for people in the heads of their columns: the question says so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub use_display_names: bool,
    /// The statement, where it was asked for instead of the rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<String>,
    /// The row of totals, if the query has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub totals: Option<Vec<Value>>,
    /// The range of time, if one bounds the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_range: Option<MetricsRange>,
    /// The range that it is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison_time_range: Option<MetricsRange>,
}

impl MetricsDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.metrics/1";
}

/// A column of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MetricsColumn {
    /// Its name.
    pub name: String,
    /// Its name for people.
    pub display_name: String,
    /// Its part in the answer.
    pub role: MetricsRole,
    /// The view's field that it shows or is computed from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field: String,
    /// Its type, in the engine's words.
    #[serde(rename = "type")]
    pub data_type: String,
    /// The grain that its times are cut to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grain: Option<String>,
    /// The preset that its numbers are written by.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub format_preset: String,
    /// The d3 pattern that its numbers are written by.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub format_d3: String,
}

/// The parts that columns have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MetricsRole {
    /// Rows are grouped by it.
    Dimension,
    /// A measure of the view.
    Measure,
    /// Computed by the query.
    Computed,
    /// A column of the table.
    Column,
}

/// A half-open range of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MetricsRange {
    /// The first instant.
    pub start: String,
    /// The first instant after it.
    pub end: String,
}

/// The ends of a metrics view's time dimension, over the rows that the viewer may see.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MetricsBoundsDocument {
    /// Name and version of this form: `watershed.metrics-bounds/1`.
    pub schema: String,
    /// The metrics view.
    pub metrics_view: String,
    /// The time dimension; null where the view has none, and no ends.
    pub time_dimension: Option<String>,
    /// The earliest time; null where there is no row.
    pub earliest: Option<String>,
    /// The latest time.
    pub latest: Option<String>,
    /// The time up to which the data is complete: that of the view's `watermark`, or else the latest.
    pub watermark: Option<String>,
}

impl MetricsBoundsDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.metrics-bounds/1";
}
