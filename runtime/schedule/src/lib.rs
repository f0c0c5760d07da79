//! Schedules: due times, missed times, and the window or interval that contains a moment.
//!
//! Every function is pure. The crate has no clock, no timer, no thread and no IO: callers pass the time in, and arm
//! their own timer for the instant that they get back. Time zones come with the crate, so equal inputs give equal
//! answers on every machine.
//!
//! | type | answers |
//! |---|---|
//! | [`Schedule`] | when a refresh, a job or an alert is due: a cron expression, an `every` interval, or both |
//! | [`Timer`] | the same, remembering what has run: missed times run once, a clock that goes back repeats nothing |
//! | [`Concurrency`] | what a due time does while the run before it is still going |
//! | [`Window`], [`Recurrence`] | the phase of a window with lead and teardown, once or by cron |
//! | [`Intervals`] | the closed hours, days or months between two moments, for catching up |
//! | [`Cron`], [`Zone`] | the parts: an expression and a time zone |
//!
//! # Daylight saving
//!
//! A cron expression is read in its zone. Its hour field decides what happens when the clock is changed:
//!
//! 1. **Named hours** (`30 2 * * *`, `0 0,12 * * *`, `*/10 9-17 * * 1-5`): each time runs exactly once. A time that the
//!    clock skips runs at the first instant after the gap, together with all others of the gap; a time that the clock
//!    shows twice runs at the first.
//! 2. **Any hour** (`*`, `*/2`): the expression follows the clock. What is skipped does not run, what is shown twice
//!    runs twice. So `0 * * * *` is due once in every hour that passes.
//!
//! `every` and the margins of windows are elapsed time and know no clock changes.
//!
//! ```
//! use jiff::Timestamp;
//! use watershed_schedule::{Cron, Due, Schedule, Zone};
//!
//! let schedule = Schedule::cron(Cron::parse("30 2 * * *")?, Zone::find("Europe/Oslo")?);
//! // The clock goes from 02:00 to 03:00 that night: the run is at 03:00, which is 01:00 UTC.
//! let mark: Timestamp = "2026-03-28T12:00:00Z".parse()?;
//! assert_eq!(schedule.due(mark, mark), Due::Later("2026-03-29T01:00:00Z".parse()?));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod concurrency;
mod cron;
mod intervals;
mod recurrence;
mod schedule;
mod step;
#[cfg(test)]
mod tests;
mod timer;
mod window;
mod zone;

pub use concurrency::{Concurrency, Decision};
pub use cron::{Cron, CronError};
pub use intervals::{Closed, Interval, Intervals};
pub use jiff;
pub use recurrence::Recurrence;
pub use schedule::{Due, REWIND_TOLERANCE, Schedule, ScheduleError, Tick, is_trusted};
pub use step::{Grain, Step, StepError};
pub use timer::Timer;
pub use window::{Margins, Phase, Window, WindowError};
pub use zone::{UnknownZone, Zone};
