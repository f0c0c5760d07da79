//! Templates in the commands and environments of jobs and services.

use std::collections::BTreeMap;

use watershed_compilers::{Scope, render_text};
use watershed_core::Error;
use watershed_workloads::Render;

use crate::model::failure;
use crate::secrets::Secrets;

/// Fills in templates with the values of the project's variables, which only the program gets to see.
pub struct ProgramTemplates {
    secrets: Secrets,
    environment: String,
}

impl ProgramTemplates {
    /// Templates of one environment.
    #[must_use]
    pub fn new(secrets: Secrets, environment: impl Into<String>) -> Self {
        Self {
            secrets,
            environment: environment.into(),
        }
    }
}

impl Render for ProgramTemplates {
    fn render(&self, text: &str, variables: &BTreeMap<String, String>) -> Result<String, Error> {
        if !text.contains("{{") {
            return Ok(text.to_owned());
        }
        let scope = Scope {
            environment: self.environment.clone(),
            variables: self.secrets.open(variables)?,
            ..Scope::default()
        };
        let rendered = render_text(text, &scope).map_err(|error| failure::from_render(&error));
        rendered.map_err(|error| self.secrets.redact_error(error))
    }
}
