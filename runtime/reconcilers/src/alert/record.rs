//! The stored state of an alert.

use serde::{Deserialize, Serialize};
use watershed_controller::{Timestamp, json_message};
use watershed_core::Error;
use watershed_delivery::{Key, Notification, Table};

use super::policy::{Memory, Telling, Verdict};

/// The most entries of a history (rule N4). They are for people and decide nothing.
pub const ENTRIES_MAX: usize = 25;

/// One evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The time of the evaluation.
    pub at: Timestamp,
    /// The moment that it was for.
    pub moment: Timestamp,
    /// The verdict.
    pub verdict: Verdict,
    /// The first rows, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<Table>,
    /// The reason, if it could not be evaluated, for the project's owner.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// A hint that goes with it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hint: String,
    /// Older intervals that were left out, and not evaluated.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// The keys of the messages that it was told by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<Key>,
}

/// The finding of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The verdict.
    pub verdict: Verdict,
    /// The first rows of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<Table>,
    /// True if there are more.
    #[serde(default)]
    pub has_more: bool,
    /// The reason of an error, as receivers are told it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// The engine's words for it, which may quote rows: for the project's owner.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cause: String,
    /// A hint for the owner.
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
            has_more: false,
            error: String::new(),
            cause: String::new(),
            hint: String::new(),
        }
    }

    /// Returns that a question could not be answered.
    #[must_use]
    pub fn failed(error: &Error) -> Self {
        Self {
            error: error.message.to_string(),
            hint: error.hint.as_deref().unwrap_or_default().to_owned(),
            ..Self::of(Verdict::Error)
        }
    }

    /// Adds the words that only the owner may see.
    #[must_use]
    pub fn because_of(self, cause: &Error) -> Self {
        Self {
            cause: cause.message.to_string(),
            hint: cause.hint.as_deref().unwrap_or_default().to_owned(),
            ..self
        }
    }

    /// Returns the reason of an error for the project's owner.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self.cause.as_str() {
            "" => &self.error,
            cause => cause,
        }
    }
}

/// Evaluations that people are told of together: one, or failures that go on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct News {
    /// The newest finding.
    pub finding: Finding,
    /// The moment of that one.
    pub moment: Timestamp,
    /// The intervals that failed.
    pub failed: u32,
    /// The decision whether people are told; none in what an earlier version stored, which decided later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub telling: Option<Telling>,
    /// The entries that go into the history with the messages, the oldest first.
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
    /// The time up to which its schedule was answered.
    pub mark: Timestamp,
    /// The schedule for which that holds; empty in what an earlier version stored.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub schedule: String,
    /// A fingerprint of the question that was asked last.
    pub question: String,
    /// A fingerprint of the versions of what it reads, as of the last evaluation.
    pub refs: String,
    /// The refreshes that were answered.
    pub refreshes: u64,
    /// The facts that decide whether people are told.
    pub memory: Memory,
    /// The number of the last message, which orders them.
    pub order: u64,
    /// The end of the last interval that was evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Timestamp>,
    /// Evaluated intervals that nobody was told of yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<News>,
    /// Some intervals of the last look are evaluated and stored, and others are not: it is gone on with.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unfinished: bool,
    /// The lowest watermark of what it reads, as of the last evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watermark: Option<Timestamp>,
    /// The time until which nobody is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snoozed_until: Option<Timestamp>,
    /// Messages that are stored and not yet handed over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outbox: Vec<Notification>,
    /// The evaluations, the newest first.
    pub history: Vec<Entry>,
}

json_message!(AlertRecord, format = 1);

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl AlertRecord {
    /// Adds an evaluation; the oldest goes if there are too many.
    pub(super) fn note(&mut self, entry: Entry) {
        self.history.insert(0, entry);
        self.history.truncate(ENTRIES_MAX);
    }
}
