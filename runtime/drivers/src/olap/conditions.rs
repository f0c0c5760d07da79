//! Conditions without tables: what a policy says of a viewer.

use super::Failure;

/// The evaluator of conditions, which reads no data and reaches nothing.
pub trait Conditions: Send + Sync {
    /// Returns the value of each condition, in order; nothing for one that is NULL. Blocks for about a millisecond.
    ///
    /// # Errors
    /// The first condition that is none, reads what there isn't, or fails; and all of them when they take over two
    /// seconds.
    fn evaluate(&self, conditions: &[String]) -> Result<Vec<Option<bool>>, Failure>;

    /// Returns true if each text is exactly one expression, which stays one between brackets, whatever stands around them. No
    /// text is evaluated. Blocks for about a millisecond if it has not seen them lately.
    ///
    /// # Errors
    /// When the engine can't be asked.
    fn are_expressions(&self, texts: &[String]) -> Result<bool, Failure>;
}
