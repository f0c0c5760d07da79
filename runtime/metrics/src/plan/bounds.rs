//! The moments that queries are planned at.

use std::collections::BTreeMap;

use jiff::Timestamp;

/// The moments that a query is planned at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// The time at which the question is put.
    pub now: Timestamp,
    /// A time that stands for now, the latest time and the watermark, as an alert's interval has one.
    pub executed_at: Option<Timestamp>,
    /// The ends of time dimensions over the rows that the viewer may see, by name in lower case. Days are given by their
    /// midnight in universal time.
    pub times: BTreeMap<String, Extent>,
}

/// The ends of a time dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extent {
    /// The earliest time.
    pub earliest: Option<Timestamp>,
    /// The latest time.
    pub latest: Option<Timestamp>,
    /// The time up to which the data is complete.
    pub watermark: Option<Timestamp>,
}

impl Bounds {
    /// Returns bounds without data.
    pub fn at(now: Timestamp) -> Self {
        Self {
            now,
            executed_at: None,
            times: BTreeMap::new(),
        }
    }
}
