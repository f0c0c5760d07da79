//! Statements around the statement of a build.

use super::SqlError;

/// Statements that are run on the connection of a build, outside of its transaction. Nobody else gets that connection
/// afterwards.
///
/// What they set for everybody (settings, attached databases, temporary secrets) is undone after the build, and no two
/// builds with such statements are at work at the same time. Tables that they make stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Texts of one or more statements each, run before the transaction begins.
    pub before: Vec<String>,
    /// Texts that are run after it, also if the build failed; not if it was interrupted.
    pub after: Vec<String>,
}

impl Hooks {
    /// Returns true if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }
}

/// The statement around a build that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookError {
    /// The number of its text among those of before, or of after, from 0.
    pub text: usize,
    /// Its places count in that text.
    pub error: Box<SqlError>,
}
