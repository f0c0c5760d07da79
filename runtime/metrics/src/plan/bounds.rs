//! The moments that a plan depends on.

use std::collections::BTreeMap;

use jiff::Timestamp;

/// The moments that a plan depends on: the present, and the extents of data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// The time of the query.
    pub now: Timestamp,
    /// The time that replaces now, the latest time and the watermark, such as the end of an alert's interval.
    pub executed_at: Option<Timestamp>,
    /// The extents of time dimensions over the rows that the viewer may see, by name in lower case. Dates stand for
    /// their midnight in UTC.
    pub times: BTreeMap<String, Extent>,
}

/// The extent of a time dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extent {
    /// The earliest time; none without data.
    pub earliest: Option<Timestamp>,
    /// The latest time; none without data.
    pub latest: Option<Timestamp>,
    /// The time up to which the data is complete.
    pub watermark: Option<Timestamp>,
}

impl Bounds {
    /// Returns the bounds of a query without data.
    pub fn at(now: Timestamp) -> Self {
        Self {
            now,
            executed_at: None,
            times: BTreeMap::new(),
        }
    }
}
