//! The parts of a range expression.

use jiff::Timestamp;
use jiff::civil::DateTime;
use watershed_schedule::{Grain, Zone};

use super::length::Length;

/// A range of time as people write it, read and not yet resolved: `7D as of latest/D+1D`, `MTD`, `P7D`, `2013-02`.
///
/// | form | range |
/// |---|---|
/// | `7D`, `3W18D23h` | so long before the reference |
/// | `MTD` | from the beginning of the reference's month to the reference |
/// | `POINT to POINT`, `A / B`, `A, B` | from one point to another; the second of `A / P1D` may be a length |
/// | `D2`, `D2 of W1` | the second day of the week, month or whatever `as of` was floored to |
/// | `2013`, `2013-02-03T04` | the year, month, day, hour or minute |
/// | `P7D` | the 7 days that end with the watermark's |
/// | `inf` | all data |
/// | `rill-TD`, `rill-WTD`, ..., `rill-PDC`, ... | to date, up to the watermark; previous ones, complete |
///
/// After it: `as of POINT` (any number, from the right), `by G`, `tz ZONE`, `offset -1P` or `offset -1M`. A point is
/// `ref`, `now`, `earliest`, `latest`, `watermark` or a time in ISO 8601, followed by moves: `+1D`, `-2M`, and `/D`,
/// which floors. `/Y/W` leads to the first week of the year, the first with four of its days. Units are
/// `s m h D W M Q Y`; only minutes and months differ by case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    pub(super) interval: Interval,
    /// From left to right; the last is resolved first.
    pub(super) anchors: Vec<Point>,
    pub(super) by: Option<Grain>,
    pub(super) zone: Option<Zone>,
    pub(super) shift: Option<Shift>,
}

/// The form of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Interval {
    /// So long before the reference.
    Before(Length),
    /// From the beginning of the reference's bucket to the reference.
    ToDate(Grain),
    /// From one point to another.
    Between(Point, Point),
    /// So long from a point.
    After(Point, Length),
    /// Parts of parts, the innermost first.
    Parts(Vec<Part>),
    /// A year, month, day, hour or minute.
    Whole(Iso, Grain),
    /// So long, ending with the watermark's bucket of its smallest unit.
    Ending(Length),
    /// All data.
    All,
}

/// The n-th unit of a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) grain: Grain,
    /// From 1.
    pub(super) number: i64,
}

/// A point in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) base: Base,
    pub(super) moves: Vec<Move>,
}

/// The beginning of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    Reference,
    Earliest,
    Latest,
    Watermark,
    Now,
    /// A time, with the unit that it names if it names no more.
    Iso(Iso, Option<Grain>),
}

/// A time in ISO 8601: with an offset an instant, else what the zone's clock shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Iso {
    Instant(Timestamp),
    Local(DateTime),
}

/// A step from one point to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Move {
    /// To the beginning of the bucket.
    Floor(Grain),
    /// To the first week of what the move before it floored to.
    FirstWeek,
    /// By a length, forward or back.
    By(Length),
}

/// A distance between a range and the one that is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shift {
    /// So many times the range's own length.
    Periods(i64),
    /// By a length, forward or back.
    By(Length),
}
