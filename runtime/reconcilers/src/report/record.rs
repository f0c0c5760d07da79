//! The stored state of a report.

use serde::{Deserialize, Serialize};
use watershed_controller::{Timestamp, json_message};
use watershed_delivery::{Key, Notification};

/// The most entries of a history. They are for people and decide nothing.
pub const ENTRIES_MAX: usize = 10;

/// One time that a report was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The time at which it was made.
    pub at: Timestamp,
    /// The moment that it is about.
    pub moment: Timestamp,
    /// The name of its file; empty if it could not be made.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// The rows in it, if they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// Its size.
    #[serde(default)]
    pub bytes: u64,
    /// The reason, if it could not be made.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// The keys of the messages that it went with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sent: Vec<Key>,
}

/// The stored state of a report.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReportRecord {
    /// The time up to which its schedule was answered; none before it was first seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<Timestamp>,
    /// The schedule for which that holds; empty in what an earlier version stored.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub schedule: String,
    /// A fingerprint of the versions of what it reads, as of the last time.
    #[serde(default)]
    pub refs: String,
    /// The refreshes that were answered.
    pub refreshes: u64,
    /// The end of the last interval that it was made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Timestamp>,
    /// The lowest watermark of what it reads, as of the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watermark: Option<Timestamp>,
    /// The number of the last message, which orders them.
    pub order: u64,
    /// Messages that are stored and not yet handed over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outbox: Vec<Notification>,
    /// The times that it was made, the newest first.
    pub history: Vec<Entry>,
}

json_message!(ReportRecord, format = 1);

impl ReportRecord {
    /// Adds an entry; the oldest goes if there are too many.
    pub(super) fn note(&mut self, entry: Entry) {
        self.history.insert(0, entry);
        self.history.truncate(ENTRIES_MAX);
    }
}
