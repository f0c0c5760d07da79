//! Tests under simulated time, against references that go through a year minute by minute.
//!
//! | module | shows |
//! |---|---|
//! | `reference` | the naive references, which share no code with the crate |
//! | `crons` | due times over the years of clock changes, month ends and leap days |
//! | `properties` | what holds for any expression, zone and moment |
//! | `lives` | a process that sleeps, and a clock that jumps |
//! | `windows` | phases of single and recurring windows |
//! | `cuts` | intervals of a calendar |

mod crons;
mod cuts;
mod lives;
mod properties;
mod reference;
mod windows;

use jiff::{SignedDuration, Timestamp};

/// Zones whose clock changes differ: by an hour at 02:00, by half an hour, at midnight, in the other direction of the
/// year, at one minute past midnight, and not at all.
const ZONES: &[&str] = &[
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Havana",
    "Europe/Oslo",
    "America/St_Johns",
    "UTC",
];

/// Parses an instant.
fn at(text: &str) -> Timestamp {
    text.parse().expect("a test names an instant")
}

/// Returns the instant that is this many seconds later.
fn later(instant: Timestamp, seconds: i64) -> Timestamp {
    instant + SignedDuration::from_secs(seconds)
}
