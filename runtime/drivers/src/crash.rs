//! Crash points: named places at which a test can kill the process.
//!
//! Compiled in with the feature `crash-points` only, and armed from outside, by the environment variable
//! `FAILPOINTS` of the crate `fail`: `FAILPOINTS=drivers::build::before_commit=return` dies there,
//! `...=3*off->return` at the fourth visit.

/// Every crash point of this crate's engine: before and after each commit of its own.
pub const CRASH_POINTS: &[&str] = &[
    "drivers::build::before_commit",
    "drivers::build::after_commit",
    "drivers::stage::before_commit",
    "drivers::stage::after_commit",
    "drivers::rename::before_commit",
    "drivers::rename::after_commit",
    "drivers::failures::before_commit",
    "drivers::failures::after_commit",
    "drivers::drop::before_commit",
    "drivers::drop::after_commit",
    "drivers::trash::before_commit",
    "drivers::trash::after_commit",
    "drivers::retrieve::before_commit",
    "drivers::retrieve::after_commit",
    "drivers::retag::before_commit",
    "drivers::retag::after_commit",
    "drivers::migrate::before_commit",
    "drivers::migrate::after_commit",
    "drivers::checkpoint::before",
    "drivers::checkpoint::after",
    "drivers::give_up::before",
    "drivers::give_up::after",
    "drivers::export::before",
    "drivers::export::after",
    "drivers::place::before",
    "drivers::place::after",
    "drivers::close::before",
    "drivers::close::after",
];

/// Crash points around writes to object stores and other databases.
pub const REMOTE_CRASH_POINTS: &[&str] = &[
    "drivers::table::before_commit",
    "drivers::table::after_commit",
    "drivers::put::before",
    "drivers::put::pieces",
    "drivers::put::after",
];

/// Crash points of backups and of the restoring of a state folder's files.
pub const BACKUP_CRASH_POINTS: &[&str] = &[
    "backup::before_rename",
    "backup::after_rename",
    "restore::before_commit",
    "restore::after_commit",
    "restore::between_files",
    "restore::before_end",
];

/// Crash points of changes to a project's files over HTTP.
pub const FILE_CRASH_POINTS: &[&str] = &[
    "files::before_rename",
    "files::after_rename",
    "files::before_delete",
];

/// The crash points around a transaction's commit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Around {
    pub(crate) before: &'static str,
    pub(crate) after: &'static str,
}

/// Names the crash points before and after a commit, both listed in [`CRASH_POINTS`].
macro_rules! around {
    ($name:literal) => {
        $crate::crash::Around {
            before: concat!("drivers::", $name, "::before_commit"),
            after: concat!("drivers::", $name, "::after_commit"),
        }
    };
}
pub(crate) use around;

/// Kills the process if this crash point is armed.
pub fn point(name: &'static str) {
    debug_assert!(
        [
            CRASH_POINTS,
            REMOTE_CRASH_POINTS,
            BACKUP_CRASH_POINTS,
            FILE_CRASH_POINTS
        ]
        .iter()
        .any(|points| points.contains(&name)),
        "crash point `{name}` is not listed"
    );
    #[cfg(feature = "crash-points")]
    fail::fail_point!(name, |_| std::process::abort());
}
