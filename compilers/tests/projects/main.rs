//! Whole projects: what they compile to, and that it never depends on the order of events.

mod bombs;
mod case;
mod coverage;
mod engine;
mod fuzz;
mod golden;
mod hostile;
mod incremental;
mod meaning;
mod needs;
mod report;
mod samples;
mod scanned;
