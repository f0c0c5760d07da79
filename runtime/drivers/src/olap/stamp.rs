//! The stamp of an engine's data.

/// The stamp of an engine's data: equal stamps mean equal data. Of a file that is its stamp in the file system, of a lake its
/// snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp(String);

impl Stamp {
    /// Returns the stamp that an engine wrote as a text.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// Returns the text, as it is stored.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
