//! The stored state of a report.

use serde::{Deserialize, Serialize};
use watershed_controller::{Timestamp, json_message};
use watershed_delivery::{Key, Notification};

/// The largest number of entries of a history, which is for people and decides nothing.
pub const ENTRIES_MAX: usize = 10;

/// An attempt to make a report, in its history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The time of the attempt.
    pub at: Timestamp,
    /// The moment that the report is about.
    pub moment: Timestamp,
    /// The name of the file; empty if it could not be made.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// The number of rows in the file, if counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// The size of the file in bytes.
    #[serde(default)]
    pub bytes: u64,
    /// The reason why the file could not be made; empty if it was.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// The keys of the messages that carried the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sent: Vec<Key>,
}

/// The stored state of a report.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReportRecord {
    /// The time up to which the schedule was handled; none before the first look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<Timestamp>,
    /// The schedule for which the mark holds; empty in records of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub schedule: String,
    /// The fingerprint of the refs' versions when the report was last made.
    #[serde(default)]
    pub refs: String,
    /// The number of refreshes that were handled.
    pub refreshes: u64,
    /// The end of the last interval that a report was made for, if the report has intervals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Timestamp>,
    /// The lowest watermark of the refs when the report was last made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watermark: Option<Timestamp>,
    /// The number of the last message, by which messages are ordered.
    pub order: u64,
    /// Stored messages that have not been handed over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outbox: Vec<Notification>,
    /// The attempts to make the report, newest first.
    pub history: Vec<Entry>,
}

json_message!(ReportRecord, format = 1);

impl ReportRecord {
    /// Adds an entry to the history; the oldest is dropped if there are too many.
    pub(super) fn note(&mut self, entry: Entry) {
        self.history.insert(0, entry);
        self.history.truncate(ENTRIES_MAX);
    }
}
