//! Parts of the runtime for the program `watershed`, beside the public interface.
//!
//! They are no part of the library, and change with the program.

#[cfg(feature = "http")]
pub use crate::editor;
pub use crate::instance::compiled::{compile, finding, secrets_of as secrets_of_files};
pub use crate::instance::conform::conform;
pub use crate::instance::run_log::log_runs;
pub use crate::instance::{
    Stayed, Stop, Stopping, close_problem, compiler_options, open_problem, sandbox, state_name, state_problem,
};
pub use crate::kept::{Readers, replace};
pub use crate::report::kinds::PROJECT_PARSER;
pub use crate::report::problems::{ReportedProblems, problems};
pub use crate::service::{AtRest, Hold};
pub use crate::state_folder::ended_early::{forget as forget_early_end, read as early_end};
pub use crate::units;

/// Returns an error with its causes, outermost first, in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    crate::chain(error)
}

/// Checks that a selection can be parsed, before any work begins.
///
/// # Errors
/// When an option can't be read; the place is named.
pub fn check_selection(selection: &crate::Selection) -> Result<(), crate::Problem> {
    crate::selection::Evaluate::check(selection)
}
