//! Statements to run before and after a build.

use super::SqlError;

/// Statements that run on a build's connection outside its transaction. The connection is not reused.
///
/// What they set for everybody (settings, attached databases, temporary secrets) is undone after the build, and no two
/// builds with such statements are at work at the same time. Tables that they make stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Texts with statements that run before the transaction.
    pub before: Vec<String>,
    /// Texts with statements that run after the transaction, even if the build failed, but not if it was interrupted.
    pub after: Vec<String>,
}

impl Hooks {
    /// Returns true if there are no statements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }
}

/// The error of a statement before or after a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookError {
    /// Index of the failed text among those before, or those after, the build, from 0.
    pub text: usize,
    /// Error, with positions relative to that text.
    pub error: Box<SqlError>,
}
