//! The stored state of an alert.

use serde::{Deserialize, Serialize};
use watershed_controller::{Timestamp, json_message};
use watershed_core::Error;
use watershed_delivery::{Key, Notification, Series, Table};

use super::policy::{Memory, Telling, Verdict};

/// The largest number of entries of a history (rule N4), which is for people and decides nothing.
pub const ENTRIES_MAX: usize = 25;

/// An evaluation in the history of an alert.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The time of the evaluation.
    pub at: Timestamp,
    /// The moment that was evaluated.
    pub moment: Timestamp,
    /// The verdict of the evaluation: pass, fail or error.
    pub verdict: Verdict,
    /// The first rows of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<Table>,
    /// The reason of an error, for the project's owner; empty if there was none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// Advice on the error, for the project's owner.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hint: String,
    /// The number of older intervals that were skipped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// The keys of the messages about the evaluation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<Key>,
}

/// The finding of an evaluation: verdict, rows, error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The verdict of the evaluation: pass, fail or error.
    pub verdict: Verdict,
    /// The first rows of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<Table>,
    /// The number over time that these rows are; none for other rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
    /// True if the failure has more rows than are kept.
    #[serde(default)]
    pub has_more: bool,
    /// The reason of an error, as receivers see it; empty if there was none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// The engine's error message, which may quote rows and is only for the project's owner.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cause: String,
    /// Advice on the error, for the project's owner.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hint: String,
}

impl Finding {
    /// Returns the finding of a verdict, without rows.
    #[must_use]
    pub fn of(verdict: Verdict) -> Self {
        Self {
            verdict,
            rows: None,
            series: None,
            has_more: false,
            error: String::new(),
            cause: String::new(),
            hint: String::new(),
        }
    }

    /// Returns the finding for a query that failed with an error.
    #[must_use]
    pub fn failed(error: &Error) -> Self {
        Self {
            error: error.message.to_string(),
            hint: error.hint.as_deref().unwrap_or_default().to_owned(),
            ..Self::of(Verdict::Error)
        }
    }

    /// Adds the engine's error, which only the project's owner may see.
    #[must_use]
    pub fn because_of(self, cause: &Error) -> Self {
        Self {
            cause: cause.message.to_string(),
            hint: cause.hint.as_deref().unwrap_or_default().to_owned(),
            ..self
        }
    }

    /// Returns the reason of an error, in the words for the project's owner.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self.cause.as_str() {
            "" => &self.error,
            cause => cause,
        }
    }
}

/// Evaluations told in one message: a single one, or continued failures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct News {
    /// The finding of the newest evaluation.
    pub finding: Finding,
    /// The moment of the newest evaluation.
    pub moment: Timestamp,
    /// The number of failed intervals.
    pub failed: u32,
    /// The decision whether people are told; none in records of earlier versions, which decided later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub telling: Option<Telling>,
    /// The entries to add to the history with the messages, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<Entry>,
}

impl News {
    /// Returns true if people are told of a failure.
    pub(super) fn fails(&self) -> bool {
        let is_told = matches!(self.telling, Some(Telling::Verdict { .. }));
        is_told && self.finding.verdict == Verdict::Fail
    }
}

/// The stored state of an alert.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AlertRecord {
    /// The time up to which the schedule was handled.
    pub mark: Timestamp,
    /// The schedule for which the mark holds; empty in records of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub schedule: String,
    /// The fingerprint of the last query.
    pub question: String,
    /// The fingerprint of the refs' versions at the last evaluation.
    pub refs: String,
    /// The number of refreshes that were handled.
    pub refreshes: u64,
    /// The remembered facts that decide whether people are told.
    pub memory: Memory,
    /// The number of the last message, by which messages are ordered.
    pub order: u64,
    /// The end of the last evaluated interval, if the alert has intervals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Timestamp>,
    /// Evaluated intervals that may still be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<News>,
    /// True if an evaluation of several intervals was interrupted and must be continued.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unfinished: bool,
    /// The lowest watermark of the refs at the last evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watermark: Option<Timestamp>,
    /// The end of the snooze, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snoozed_until: Option<Timestamp>,
    /// Stored messages that have not been handed over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outbox: Vec<Notification>,
    /// The evaluations, newest first.
    pub history: Vec<Entry>,
}

json_message!(AlertRecord, format = 1);

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl AlertRecord {
    /// Adds an evaluation to the history; the oldest is dropped if there are too many.
    pub(super) fn note(&mut self, entry: Entry) {
        self.history.insert(0, entry);
        self.history.truncate(ENTRIES_MAX);
    }
}
