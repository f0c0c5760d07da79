//! The log of one call: every operation, in order of start.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::item::{Operation, Timestamp};
use crate::reason::Reason;
use crate::reference::Ref;

/// Entries kept of one call: enough to read, and a bound on what a call over a huge graph costs.
pub const MOST_ENTRIES: usize = 10_000;

/// One operation.
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
    /// The item.
    #[serde(rename = "ref")]
    pub reference: Ref,
    /// The operation.
    pub operation: Operation,
    /// The reason for it.
    pub reason: Reason,
    /// The time of its start.
    pub start: Timestamp,
    /// The time of its end; none while it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Timestamp>,
    /// The time of the cancel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<Timestamp>,
    /// The error, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The error of the attempt before it, if that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
}

/// The operations of one call in order of start, and what else was remarkable. Bounded: what comes after
/// [`MOST_ENTRIES`] is only counted.
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
    /// The operations.
    pub entries: Vec<Entry>,
    /// The number of further ones.
    #[serde(default)]
    pub left_out: u64,
    /// Decisions that the library had to take, such as the order of deletes on a cycle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The place of an operation in the log of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Line {
    /// Nowhere: an earlier call started it, and this one has not mentioned it.
    #[default]
    None,
    /// It came after the last entry that is kept.
    LeftOut,
    /// At this position.
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

    /// Puts the entries in order of start, given the number of each one's operation: those of earlier calls are
    /// mentioned when they end.
    pub(crate) fn sort<Id: Ord + Copy>(&mut self, ids: Vec<Id>) {
        if ids.is_sorted() {
            return;
        }
        let mut entries: Vec<_> = ids.into_iter().zip(std::mem::take(&mut self.entries)).collect();
        entries.sort_by_key(|(id, _)| *id);
        self.entries = entries.into_iter().map(|(_, entry)| entry).collect();
    }

    /// Adds a note, once for each call however often it comes to the same decision.
    pub(crate) fn note(&mut self, text: String) {
        if self.notes.len() < MOST_ENTRIES && !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }
}

/// Several lines, one for each operation and one for each note.
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
