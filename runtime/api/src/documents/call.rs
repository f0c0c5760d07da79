//! The answer to a call of an API, and the rows of a report.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{MetricsColumn, MetricsDocument, MetricsRange, ResourceName};

/// Columns and rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallDocument {
    /// Name and version of this form: `watershed.call/1`.
    pub schema: String,
    /// The API or report.
    pub resource: ResourceName,
    /// The columns, in order.
    pub columns: Vec<MetricsColumn>,
    /// The rows, as the engine computed them; integers beyond 2^53, decimals and times are strings.
    pub rows: Vec<Vec<Value>>,
    /// There are more rows.
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
    /// The row of totals, if the question has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub totals: Option<Vec<Value>>,
    /// Arguments that the API reads and that were not given: what compares with them is NULL.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_arguments: Vec<String>,
    /// The range of time, if one bounds the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_range: Option<MetricsRange>,
    /// The zone in whose calendar times are cut, where a metrics view answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
}

impl CallDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.call/1";

    /// Returns it as an answer of a metrics view, which is drawn for people in the same way.
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
