//! The stamp of an engine's data.

/// The stamp of an engine's data; equal stamps mean equal data. For a file the stamp comes from the file system, for a
/// lake from its snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp(String);

impl Stamp {
    /// Creates a stamp from the engine's text.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// Returns the stamp as text, for storing.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
