//! Time ranges: parsing of range expressions, and their resolution to half-open spans of instants.

mod cursor;
mod error;
mod expression;
mod iso;
mod length;
mod parse;
mod position;
mod resolve;
mod time_range;

pub use error::RangeError;
pub use expression::Expression;
pub use resolve::{Moments, Resolved};
pub use time_range::{Offset, TimeRange};
