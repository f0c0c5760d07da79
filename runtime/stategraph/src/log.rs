//! The log of one call: every operation, in order of start.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::item::{Operation, Timestamp};
use crate::reason::Reason;
use crate::reference::Ref;

/// Maximum number of entries in the log of a call: enough to read, and a bound on its memory.
pub const MOST_ENTRIES: usize = 10_000;

/// An operation in the log.
///
/// ```
/// # mod warehouse { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/warehouse.rs.in")); }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use watershed_stategraph::{Extent, Graph, Operation, Reason, Timestamp};
/// let (executor, intended) = (warehouse::executor().clock(|| Timestamp(0)), warehouse::intended()?);
/// let mut current = Graph::new("warehouse");
/// let report = executor.converge(&mut current, Some(&intended), &Extent::Everything).await?;
/// let entry = &report.log.entries[0];
/// assert_eq!((entry.operation, &entry.reason), (Operation::Create, &Reason::Intended));
/// assert_eq!(entry.end, Some(Timestamp(0)));
/// assert_eq!(entry.to_string(), "create table/orders: is intended, 0 ms");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Item of the operation.
    #[serde(rename = "ref")]
    pub reference: Ref,
    /// Operation: create, modify, delete or adopt.
    pub operation: Operation,
    /// Reason why the operation was performed.
    pub reason: Reason,
    /// Time at which the operation started.
    pub start: Timestamp,
    /// Time at which the operation ended; none while it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Timestamp>,
    /// Time of the cancel; none without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<Timestamp>,
    /// Error of the operation; none if it did not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Error of the previous attempt; none if it did not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
}

/// Operations of one call in order of start, and other remarkable events. Operations after the first [`MOST_ENTRIES`]
/// are only counted.
///
/// ```
/// # mod warehouse { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/warehouse.rs.in")); }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use serde_json::json;
/// use watershed_stategraph::{Extent, Graph, Item, Ref, Timestamp};
/// let (executor, mut intended) = (warehouse::executor().clock(|| Timestamp(0)), warehouse::intended()?);
/// intended.put(Item::new(Ref::parse("view/daily")?, json!("select nonsense")))?;
/// let mut current = Graph::new("warehouse");
/// let report = executor.converge(&mut current, Some(&intended), &Extent::Everything).await?;
/// let log = report.log.to_string();
/// assert!(log.contains("create table/orders: is intended, 0 ms\n"), "{log}");
/// assert!(log.contains("create view/daily: is intended, failed: there is no column `nonsense`\n"), "{log}");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log {
    /// Logged operations, in order of start.
    pub entries: Vec<Entry>,
    /// Number of operations that were only counted.
    #[serde(default)]
    pub left_out: u64,
    /// Decisions that the planner had to make, such as the order of deletes on a cycle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Place of an operation in the log of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Line {
    /// No place: an earlier call started the operation, and this call has not logged it yet.
    #[default]
    None,
    /// Counted only, because the log was full.
    LeftOut,
    /// The entry at this index.
    At(usize),
}

impl Log {
    pub(crate) fn open(&mut self, entry: impl FnOnce() -> Entry) -> Line {
        if self.entries.len() >= MOST_ENTRIES {
            self.left_out += 1;
            return Line::LeftOut;
        }
        self.entries.push(entry());
        Line::At(self.entries.len() - 1)
    }

    pub(crate) fn line(&mut self, line: Line) -> Option<&mut Entry> {
        match line {
            Line::At(at) => self.entries.get_mut(at),
            Line::None | Line::LeftOut => None,
        }
    }

    /// Sorts the entries in order of start by the ids of their operations: those of earlier calls are logged only when
    /// they end.
    pub(crate) fn sort<Id: Ord + Copy>(&mut self, ids: Vec<Id>) {
        if ids.is_sorted() {
            return;
        }
        let mut entries: Vec<_> = ids.into_iter().zip(std::mem::take(&mut self.entries)).collect();
        entries.sort_by_key(|(id, _)| *id);
        self.entries = entries.into_iter().map(|(_, entry)| entry).collect();
    }

    /// Adds a note, once per call however often the decision is made.
    pub(crate) fn note(&mut self, text: String) {
        if self.notes.len() < MOST_ENTRIES && !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }
}

/// Formats one line for each operation and each note.
impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for entry in &self.entries {
            writeln!(f, "{entry}")?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        if self.left_out > 0 {
            writeln!(f, "and {} more", self.left_out)?;
        }
        Ok(())
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.operation, self.reference, self.reason)?;
        if let Some(cancelled) = self.cancelled {
            write!(
                f,
                ", cancelled after {} ms",
                cancelled.0.saturating_sub(self.start.0)
            )?;
        }
        match (&self.error, self.end) {
            (Some(error), _) => write!(f, ", failed: {error}")?,
            (None, Some(end)) => write!(f, ", {} ms", end.0.saturating_sub(self.start.0))?,
            (None, None) => f.write_str(", goes on")?,
        }
        self.previous
            .as_ref()
            .map_or(Ok(()), |previous| write!(f, " (before: {previous})"))
    }
}
