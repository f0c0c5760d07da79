//! The result of trying out an alert.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ResourceName, Time};

/// The verdict of an alert that is tried out, and the receivers of its messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AlertTestDocument {
    /// Name and version of this form: `watershed.alert-test/1`.
    pub schema: String,
    /// Kind and name of the alert.
    pub resource: ResourceName,
    /// Time for which the alert was evaluated.
    pub moment: Time,
    /// Verdict of the alert: `pass`, `fail` or `error`.
    pub verdict: String,
    /// Names of the columns in `rows`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// First rows that the alert found, each value as text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<Vec<String>>,
    /// True if the alert found more rows than are listed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Reason why the alert can't be evaluated; absent if it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Receivers of the messages that the verdict causes.
    pub receivers: Vec<TestedReceiver>,
    /// Exit code of the command.
    pub exit_code: u8,
}

impl AlertTestDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.alert-test/1";
}

/// A receiver of an alert that is tried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestedReceiver {
    /// Description of the receiver, without secrets.
    pub receiver: String,
    /// True if the message was delivered, false if delivery failed; absent if nothing was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered: Option<bool>,
    /// Answer of the receiver, or the reason why delivery failed; absent if nothing was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}
