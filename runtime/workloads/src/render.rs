//! Templates in commands and environments, filled in by whoever has the values.

use std::collections::BTreeMap;

use watershed_core::Error;

/// Fills in the templates of a program. Its values go to the program alone: what is shown is the template (rule W17).
pub trait Render: Send + Sync {
    /// Returns a text with its templates executed.
    ///
    /// `variables` are those that the text reads, as the catalog stores them.
    ///
    /// # Errors
    /// When a template can't be executed, or a value is not known yet.
    fn render(&self, text: &str, variables: &BTreeMap<String, String>) -> Result<String, Error>;
}

/// Leaves texts as they are, for embedders without templates.
#[derive(Debug, Clone, Copy, Default)]
pub struct Verbatim;

impl Render for Verbatim {
    fn render(&self, text: &str, _variables: &BTreeMap<String, String>) -> Result<String, Error> {
        Ok(text.to_owned())
    }
}
