//! Evaluation of conditions without tables, such as a policy's conditions about a viewer.

use super::Failure;

/// An evaluator of conditions, which reads no data and has no access to files or network.
pub trait Conditions: Send + Sync {
    /// Returns the value of each condition in order; none for NULL. Blocks for about a millisecond.
    ///
    /// # Errors
    /// The first condition that is none, reads what there isn't, or fails; and all of them when they take over two
    /// seconds.
    fn evaluate(&self, conditions: &[String]) -> Result<Vec<Option<bool>>, Failure>;

    /// Returns true if each text is exactly one expression, which stays one inside brackets. Evaluates no text. Blocks
    /// for about a millisecond unless the texts are cached.
    ///
    /// # Errors
    /// When the engine can't be asked.
    fn are_expressions(&self, texts: &[String]) -> Result<bool, Failure>;
}
