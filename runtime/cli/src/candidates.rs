//! Completion candidates for arguments that name resources.
//!
//! Arguments are declared without knowing how names are found, which takes a parsed command line.

use std::ffi::OsStr;
use std::sync::OnceLock;

use clap_complete::engine::CompletionCandidate;

/// A function that finds the names with a typed prefix.
pub(super) type FindNames = fn(&OsStr) -> Vec<CompletionCandidate>;

static FIND_NAMES: OnceLock<FindNames> = OnceLock::new();

/// Sets the function that finds names when a shell asks for candidates.
pub(super) fn find_names_by(find: FindNames) {
    FIND_NAMES.get_or_init(|| find);
}

/// Returns the names of resources with a typed prefix; none unless a shell asks for candidates.
pub(super) fn complete_names(typed: &OsStr) -> Vec<CompletionCandidate> {
    FIND_NAMES.get().map(|find| find(typed)).unwrap_or_default()
}
