//! The rows of an API or a report.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{MetricsColumn, MetricsDocument, MetricsRange, ResourceName};

/// The rows of an API or a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallDocument {
    /// Name and version of this form: `watershed.call/1`.
    pub schema: String,
    /// Kind and name of the API or report.
    pub resource: ResourceName,
    /// Columns of the rows, in order.
    pub columns: Vec<MetricsColumn>,
    /// Rows as the engine computed them. Integers beyond 2^53, decimals and times are strings.
    pub rows: Vec<Vec<Value>>,
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
    /// Arguments that the API reads and the caller omitted; comparisons with them are NULL.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_arguments: Vec<String>,
    /// Time range of the answer; absent if no range bounds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_range: Option<MetricsRange>,
    /// Time zone in which times are truncated; absent unless a metrics view answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
}

impl CallDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.call/1";

    /// Converts the document to a metrics view's answer, which is rendered in the same way.
    pub fn as_metrics(&self) -> MetricsDocument {
        MetricsDocument {
            columns: self.columns.clone(),
            rows: self.rows.clone(),
            truncated: self.truncated,
            cached: self.cached,
            use_display_names: self.use_display_names,
            sql: self.sql.clone(),
            totals: self.totals.clone(),
            time_range: self.time_range.clone(),
            time_zone: self.time_zone.clone().unwrap_or_else(|| "UTC".to_owned()),
            ..MetricsDocument::default()
        }
    }
}
