//! The result of trying an alert out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ResourceName, Time};

/// The verdict, and whom it would be told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AlertTestDocument {
    /// Name and version of this form: `watershed.alert-test/1`.
    pub schema: String,
    /// The alert.
    pub resource: ResourceName,
    /// The time that it was evaluated for.
    pub moment: Time,
    /// The verdict: `pass`, `fail` or `error`.
    pub verdict: String,
    /// The names of the rows' columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// The first rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<Vec<String>>,
    /// There are more rows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// The reason, if it can't be evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The people and programs that are told.
    pub receivers: Vec<TestedReceiver>,
    /// Exit code of the command.
    pub exit_code: u8,
}

impl AlertTestDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.alert-test/1";
}

/// A receiver in a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestedReceiver {
    /// The words for it.
    pub receiver: String,
    /// True if the message was handed over, false if it could not be; none if nothing was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered: Option<bool>,
    /// The receiver's answer, or the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}
