//! Queries of metrics views, and the time ranges that they are about.
//!
//! Every function is pure: no engine, no IO, no thread and no clock. Zones come with the program, so equal inputs give
//! equal answers on every machine.
//!
//! | start at | for |
//! |---|---|
//! | [`Query`], [`check()`] | a query in JSON, and whether its [`View`] has what it names |
//! | [`Expression`], [`TimeRange`] | ranges of time as people write them, resolved to instants |
//! | [`Policy`] | the fields and rows that a viewer may see |
//! | [`plan()`], [`Plan`](plan::Plan) | the statement that answers a query for a viewer |
//! | [`probe`] | statements that try a view's fields |
//! | [`Format`], [`TimeFormat`](format::TimeFormat) | numbers as a measure's format writes them, times by the clock of a zone |
//! | [`Calendar`] | hours, days, weeks and years of a zone |
//!
//!
//! ```
//! use watershed_metrics::{Calendar, Expression, Grain, Moments, Zone};
//!
//! let calendar = Calendar::new(Zone::find("America/New_York")?);
//! let moments = Moments {
//!     now: "2024-03-12T15:00:00Z".parse()?,
//!     earliest: Some("2020-01-01T00:00:00Z".parse()?),
//!     latest: Some("2024-03-11T15:00:00Z".parse()?),
//!     watermark: Some("2024-03-11T15:00:00Z".parse()?),
//! };
//! let days: Expression = "2D as of watermark/D".parse()?;
//! let range = days.resolve(&moments, &calendar, Grain::Second)?.range()?;
//! assert_eq!(range.start, "2024-03-09T05:00:00Z".parse()?);
//! assert_eq!(range.end, "2024-03-11T04:00:00Z".parse()?); // the clock was set forward: 47 hours
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod calendar;
pub mod format;
pub mod plan;
pub mod policy;
pub mod probe;
pub mod query;
mod range;
mod sql;
pub mod view;

pub use calendar::{Calendar, Range};
pub use format::Format;
pub use plan::plan;
pub use policy::Policy;
pub use query::{Query, QueryError, check};
pub use range::{Expression, Moments, Offset, RangeError, Resolved, TimeRange};
pub use view::{DataType, Dimension, Measure, MeasureKind, Selector, View};
pub use watershed_schedule::{Grain, UnknownZone, Zone, jiff};
