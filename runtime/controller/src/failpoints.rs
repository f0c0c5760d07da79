//! Named points at which a test can kill the process.
//!
//! They exist only with the feature `crash-points`. A test sets one with the crate `fail` to the action `return`
//! (`FAILPOINTS="catalog-commit-after=return"`, or `3*off->return` for the fourth visit), and the process aborts there
//! without unwinding, as a `kill -9` would end it.

/// All crash points of this crate, in the order in which a first start passes them.
pub const CRASH_POINTS: &[&str] = &[
    LEASE_BEFORE,
    LEASE_AFTER,
    COMMIT_BEFORE,
    COMMIT_WITHIN,
    COMMIT_AFTER,
];

/// Crash point before the epoch of this controller is stored.
pub(crate) const LEASE_BEFORE: &str = "catalog-lease-before";
/// Crash point after the epoch of this controller is stored.
pub(crate) const LEASE_AFTER: &str = "catalog-lease-after";
/// Crash point before any part of a commit is written.
pub(crate) const COMMIT_BEFORE: &str = "catalog-commit-before";
/// Crash point after the rows of a commit are written, and before they are committed.
pub(crate) const COMMIT_WITHIN: &str = "catalog-commit-within";
/// Crash point after a commit, before anybody is told.
pub(crate) const COMMIT_AFTER: &str = "catalog-commit-after";

/// Ends the process here if a test has chosen this point.
#[cfg(feature = "crash-points")]
pub(crate) fn crash_point(name: &'static str) {
    fail::fail_point!(name, |_| std::process::abort());
}

/// Does nothing, because crash points are not compiled in.
#[cfg(not(feature = "crash-points"))]
pub(crate) fn crash_point(_name: &'static str) {}
