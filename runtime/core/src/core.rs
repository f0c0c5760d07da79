//! The machine's front: takes inputs, gives effects.

use crate::{Effect, Input, KindOptions, Limits, Now, Stored};

/// Why a stored catalog was not taken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OpenError {
    /// Two live rows have one kind and name.
    #[error("the catalog holds \"{key}\" twice: {first} and {second}")]
    DuplicateName {
        /// The name.
        key: crate::Key,
        /// One of the two.
        first: crate::Uid,
        /// The other.
        second: crate::Uid,
    },
    /// Two rows have one uid.
    #[error("the catalog holds {0} twice")]
    DuplicateUid(crate::Uid),
    /// A row is newer than the catalog.
    #[error("row {0} is newer than its catalog")]
    RowFromTheFuture(crate::Uid),
    /// A kind is registered twice.
    #[error("kind \"{0}\" is registered twice")]
    DuplicateKind(crate::Kind),
}

/// The state machine.
#[derive(Debug)]
pub struct Core {}

impl Core {
    /// Takes a stored catalog and asks for what a start asks for. The effects are the first to be carried out.
    ///
    /// # Errors
    /// If the catalog breaks an invariant that the core relies upon.
    pub fn open(
        _now: Now,
        _limits: Limits,
        _kinds: Vec<KindOptions>,
        _stored: Stored,
    ) -> Result<(Core, Vec<Effect>), OpenError> {
        Ok((Core {}, Vec::new()))
    }

    /// Takes one input; pushes what is to be done for it.
    pub fn handle(&mut self, _now: Now, _input: Input, _effects: &mut Vec<Effect>) {}

    /// Ends a drain: group commit, status updates, the timer. See the crate's documentation.
    pub fn flush(&mut self, _now: Now, _effects: &mut Vec<Effect>) {}

    /// Whether calls may be handed in; see [`Limits::backlog`].
    pub fn accepts_calls(&self) -> bool {
        true
    }

    /// Whether the core has emitted [`Effect::Stopped`].
    pub fn is_stopped(&self) -> bool {
        false
    }
}
