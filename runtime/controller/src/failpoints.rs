//! Named points at which a test lets the process die.
//!
//! They exist only with the feature `crash-points`. A test sets one with the crate `fail` to the action `return`
//! (`FAILPOINTS="catalog-commit-after=return"`, or `3*off->return` for the fourth visit), and the process aborts there
//! without unwinding, as a `kill -9` would end it.

/// Every crash point of this crate, in the order in which a first start passes them.
pub const CRASH_POINTS: &[&str] = &[
    LEASE_BEFORE,
    LEASE_AFTER,
    COMMIT_BEFORE,
    COMMIT_WITHIN,
    COMMIT_AFTER,
];

/// Before the epoch of this controller is stored.
pub(crate) const LEASE_BEFORE: &str = "catalog-lease-before";
/// After the epoch of this controller is stored.
pub(crate) const LEASE_AFTER: &str = "catalog-lease-after";
/// Before anything of a commit is written.
pub(crate) const COMMIT_BEFORE: &str = "catalog-commit-before";
/// After the rows of a commit are written, before they are committed.
pub(crate) const COMMIT_WITHIN: &str = "catalog-commit-within";
/// After the commit, before anybody is told.
pub(crate) const COMMIT_AFTER: &str = "catalog-commit-after";

/// Ends the process here if a test asks for it.
#[cfg(feature = "crash-points")]
pub(crate) fn crash_point(name: &'static str) {
    fail::fail_point!(name, |_| std::process::abort());
}

/// Does nothing: the points are not compiled in.
#[cfg(not(feature = "crash-points"))]
pub(crate) fn crash_point(_name: &'static str) {}
