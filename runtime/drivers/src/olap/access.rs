//! Access modes of an engine to its data.

/// The access mode of an engine to its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Reads and writes; missing data is created.
    #[default]
    ReadWrite,
    /// Reads only: neither the data nor its log is changed, and several processes may do so at once. Reads the log of a
    /// killed process too. Changes fail.
    ReadOnly,
}
