//! Tests of the crate from outside: tables of expressions, and calendars against a library's dates.

mod answers;
mod buckets;
mod expressions;
mod formats;
mod hidden_rows;
mod policies;
mod queries;
mod statements;
mod time_ranges;
