//! Crash points: named places at which a test can kill the shim.
//!
//! They exist only with the feature `crash-points`. A test sets one with the crate `fail` to the action `return`
//! (`FAILPOINTS="shim-spawn-after=return"`), and the process aborts there without unwinding, as a `kill -9` would end it.

/// Every crash point of the shim, in the order in which a process passes them.
pub const CRASH_POINTS: &[&str] = &[
    START_BEFORE,
    SPAWN_BEFORE,
    SPAWN_AFTER,
    STARTED_AFTER,
    STOP_BEFORE,
    SIGNAL_BEFORE,
    SIGNAL_AFTER,
    EXIT_BEFORE,
    EXIT_WITHIN,
    EXIT_AFTER,
    FORGET_BEFORE,
    FORGET_AFTER,
];

/// Before the intent to start is stored.
pub(crate) const START_BEFORE: &str = "shim-start-before";
/// After the intent is stored, before the process exists.
pub(crate) const SPAWN_BEFORE: &str = "shim-spawn-before";
/// After the process exists, before its pid is stored.
pub(crate) const SPAWN_AFTER: &str = "shim-spawn-after";
/// After its pid is stored, before clients are told.
pub(crate) const STARTED_AFTER: &str = "shim-started-after";
/// Before the intent to stop is stored.
pub(crate) const STOP_BEFORE: &str = "shim-stop-before";
/// After the intent to stop is stored, before the signal.
pub(crate) const SIGNAL_BEFORE: &str = "shim-signal-before";
/// After the signal, before clients are told.
pub(crate) const SIGNAL_AFTER: &str = "shim-signal-after";
/// Before an exit is stored.
pub(crate) const EXIT_BEFORE: &str = "shim-exit-before";
/// After an exit is stored, before the process is reaped.
pub(crate) const EXIT_WITHIN: &str = "shim-exit-within";
/// After the process is reaped, before clients are told.
pub(crate) const EXIT_AFTER: &str = "shim-exit-after";
/// Before anything of a start that is to be forgotten is removed.
pub(crate) const FORGET_BEFORE: &str = "shim-forget-before";
/// After its files are removed, before the removal of its record is stored.
pub(crate) const FORGET_AFTER: &str = "shim-forget-after";

/// Kills the process at this point if a test requests it.
#[cfg(feature = "crash-points")]
pub(crate) fn crash_point(name: &'static str) {
    fail::fail_point!(name, |_| std::process::abort());
}

/// Does nothing: crash points are not compiled in.
#[cfg(not(feature = "crash-points"))]
pub(crate) fn crash_point(_name: &'static str) {}
