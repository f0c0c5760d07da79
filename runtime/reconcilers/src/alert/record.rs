//! The stored state of an alert.

use serde::{Deserialize, Serialize};
use watershed_controller::{Timestamp, json_message};
use watershed_delivery::{Key, Notification, Table};

use super::policy::{Memory, Verdict};

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
    /// The reason, if it could not be evaluated.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// The keys of the messages that it was told by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<Key>,
}

/// The stored state of an alert.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AlertRecord {
    /// The time up to which its schedule was answered.
    pub mark: Timestamp,
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
    /// Messages that are stored and not yet handed over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outbox: Vec<Notification>,
    /// The evaluations, the newest first.
    pub history: Vec<Entry>,
}

json_message!(AlertRecord, format = 1);

impl AlertRecord {
    /// Adds an evaluation; the oldest goes if there are too many.
    pub(super) fn note(&mut self, entry: Entry) {
        self.history.insert(0, entry);
        self.history.truncate(ENTRIES_MAX);
    }
}
