//! The access of an engine to its data.

/// The access of an engine to its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Everything; what the data is kept in is made when it is not there.
    #[default]
    ReadWrite,
    /// Only look: the data and its log are not changed, and several processes may do so at once. A log that a
    /// killed process left is read too. Work that changes something fails.
    ReadOnly,
}
