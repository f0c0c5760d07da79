//! Documents of what a caller may ask: metrics views with their fields, and APIs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The metrics views that a caller may ask, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MetricsViewsDocument {
    /// Name and version of this form: `watershed.metrics-views/1`.
    pub schema: String,
    /// Metrics views that the caller may ask.
    pub metrics_views: Vec<MetricsViewEntry>,
    /// Number of resources that wait to run or run, after which there may be more views; absent if there is none.
    #[serde(default, skip_serializing_if = "super::own::is_zero")]
    pub unsettled: u64,
}

impl MetricsViewsDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.metrics-views/1";
}

/// A metrics view that a caller may ask.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MetricsViewEntry {
    /// Name of the metrics view.
    pub name: String,
    /// Name for people; empty if there is none.
    pub display_name: String,
    /// Subject of the metrics view, in its author's words; empty if there are none.
    pub description: String,
    /// Names of the measures that the caller may see.
    pub measures: Vec<String>,
}

/// A metrics view as a caller may ask it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricsViewDocument {
    /// Name and version of this form: `watershed.metrics-view/1`.
    pub schema: String,
    /// Name of the metrics view.
    pub name: String,
    /// Name for people; empty if there is none.
    pub display_name: String,
    /// Subject of the metrics view, in its author's words; empty if there are none.
    pub description: String,
    /// Advice of the view's author to assistants; empty if there is none.
    pub ai_instructions: String,
    /// Time dimension that ranges of time are about; null if the view has none, or the caller may not see it.
    pub time_dimension: Option<String>,
    /// Smallest grain by which times are grouped; null if every grain is allowed.
    pub smallest_time_grain: Option<String>,
    /// Earliest time in the data; null without rows or a time dimension.
    pub earliest: Option<String>,
    /// Latest time in the data; null without rows or a time dimension.
    pub latest: Option<String>,
    /// Dimensions that the caller may group and filter by.
    pub dimensions: Vec<FieldDocument>,
    /// Measures that the caller may ask for.
    pub measures: Vec<FieldDocument>,
    /// Questions that run as they stand, at most three.
    pub examples: Vec<ExampleDocument>,
}

impl MetricsViewDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.metrics-view/1";
}

/// A field of a metrics view.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FieldDocument {
    /// Name of the field, as questions use it.
    pub name: String,
    /// Name for people; empty if there is none.
    pub display_name: String,
    /// Meaning of the field, in its author's words; empty if there are none.
    pub description: String,
    /// Type of the field, as the engine names it; null if it is not known.
    #[serde(rename = "type")]
    pub data_type: Option<String>,
    /// Form in which people see the measure: a preset or a pattern of d3; empty if there is none.
    pub format: String,
    /// True if each element of a list counts on its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_list: bool,
}

/// A question to a metrics view that runs as it stands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExampleDocument {
    /// The question in words.
    pub question: String,
    /// The query, as the key `query` of a question to the view.
    pub query: Map<String, Value>,
}

/// The APIs that a caller may call, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApisDocument {
    /// Name and version of this form: `watershed.apis/1`.
    pub schema: String,
    /// APIs that the caller may call.
    pub apis: Vec<ApiEntry>,
}

impl ApisDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.apis/1";
}

/// An API that a caller may call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApiEntry {
    /// Name of the API.
    pub name: String,
    /// Name for people; empty if there is none.
    pub display_name: String,
    /// Subject of the API, in its author's words; empty if there are none.
    pub description: String,
    /// Names of the API's arguments.
    pub arguments: Vec<String>,
}
