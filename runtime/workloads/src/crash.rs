//! Crash points: named places around stored records and orders at which a test can kill the program.
//!
//! They exist only with the feature `crash-points`. A test sets one with the crate `fail` to the action `return`, and
//! the process aborts there without unwinding, as a `kill -9` would end it.

/// Every crash point of the reconcilers, in the order in which a start passes them.
pub const CRASH_POINTS: &[&str] = &[
    RECORD_BEFORE,
    RECORD_AFTER,
    START_BEFORE,
    START_AFTER,
    STOP_BEFORE,
    STOP_AFTER,
    FORGET_BEFORE,
    FORGET_AFTER,
];

/// Before a record is stored.
pub(crate) const RECORD_BEFORE: &str = "workload-record-before";
/// After a record is stored, before its action.
pub(crate) const RECORD_AFTER: &str = "workload-record-after";
/// Before a start is ordered.
pub(crate) const START_BEFORE: &str = "workload-start-before";
/// After a start is ordered, before its answer is recorded.
pub(crate) const START_AFTER: &str = "workload-start-after";
/// Before a stop is ordered.
pub(crate) const STOP_BEFORE: &str = "workload-stop-before";
/// After a stop is ordered, before its answer is recorded.
pub(crate) const STOP_AFTER: &str = "workload-stop-after";
/// Before a counted end is forgotten by the backend.
pub(crate) const FORGET_BEFORE: &str = "workload-forget-before";
/// After a counted end is forgotten by the backend.
pub(crate) const FORGET_AFTER: &str = "workload-forget-after";

/// Kills the process at this point if a test requests it.
#[cfg(feature = "crash-points")]
pub(crate) fn crash_point(name: &'static str) {
    fail::fail_point!(name, |_| std::process::abort());
}

/// Does nothing: crash points are not compiled in.
#[cfg(not(feature = "crash-points"))]
pub(crate) fn crash_point(_name: &'static str) {}
