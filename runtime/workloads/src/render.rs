//! Templates in commands and environments, executed by the embedder.

use std::collections::BTreeMap;

use watershed_core::Error;

/// A template engine for programs. The results go only to the program; users see the templates (rule W17).
pub trait Render: Send + Sync {
    /// Executes the templates in a text.
    ///
    /// `variables` are those that the text reads, as the catalog stores them.
    ///
    /// # Errors
    /// When a template can't be executed, or a value is not known yet.
    fn render(&self, text: &str, variables: &BTreeMap<String, String>) -> Result<String, Error>;
}

/// A template engine that leaves texts as they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct Verbatim;

impl Render for Verbatim {
    fn render(&self, text: &str, _variables: &BTreeMap<String, String>) -> Result<String, Error> {
        Ok(text.to_owned())
    }
}
