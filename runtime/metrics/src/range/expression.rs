//! Range expressions and their parts.

use jiff::Timestamp;
use jiff::civil::DateTime;
use watershed_schedule::{Grain, Zone};

use super::length::Length;

/// A parsed range expression, not yet resolved, such as `7D as of latest/D+1D`, `MTD`, `P7D` or `2013-02`.
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
    /// The `as of` points from left to right, of which the last is resolved first.
    pub(super) anchors: Vec<Point>,
    pub(super) by: Option<Grain>,
    pub(super) zone: Option<Zone>,
    pub(super) shift: Option<Shift>,
}

/// The form of a range expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Interval {
    /// A length of time before the reference.
    Before(Length),
    /// The time from the beginning of the reference's bucket to the reference.
    ToDate(Grain),
    /// The time from one point to another.
    Between(Point, Point),
    /// A length of time from a point on.
    After(Point, Length),
    /// Nested parts of a whole, innermost first.
    Parts(Vec<Part>),
    /// A whole year, month, day, hour or minute.
    Whole(Iso, Grain),
    /// A length of time that ends with the watermark's bucket of the length's smallest unit.
    Ending(Length),
    /// All times that the data have.
    All,
}

/// A unit with its number in a whole, such as the second hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) grain: Grain,
    /// The number of the unit, from 1.
    pub(super) number: i64,
}

/// A point in time as a base and moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) base: Base,
    pub(super) moves: Vec<Move>,
}

/// The base of a point, before its moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    Reference,
    Earliest,
    Latest,
    Watermark,
    Now,
    /// A written time, with its unit if it names a whole unit.
    Iso(Iso, Option<Grain>),
}

/// An ISO 8601 time: an instant if it has an offset, else a local time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Iso {
    Instant(Timestamp),
    Local(DateTime),
}

/// A move from one point in time to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Move {
    /// A move to the beginning of the bucket of a grain.
    Floor(Grain),
    /// A move to the first week of the bucket that the previous move led to.
    FirstWeek,
    /// A move by a length of time, forward or back.
    By(Length),
}

/// The distance by which a range is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shift {
    /// A multiple of the range's own length.
    Periods(i64),
    /// A length of time, forward or back.
    By(Length),
}
