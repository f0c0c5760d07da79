//! The parts of a project that jobs and services need: the values of templates in their commands and environments, and
//! the builds of models.

use std::collections::BTreeMap;

use watershed_compilers::{Scope, render_text};
use watershed_core::{Error, Row};
use watershed_outputs::{failure, secrets::Secrets};
use watershed_workloads::Render;

use crate::model;

/// Returns what identifies the last build of a model, which jobs that refer to it run for; none of other kinds. A look that
/// builds nothing may note something beside the build: the time of a file, or of a question to a store.
#[must_use]
pub fn made(row: &Row) -> Option<Vec<u8>> {
    let build = || model::build_of(row).map(|build| build.0.as_bytes().to_vec());
    (row.kind.as_str() == model::KIND).then(build).flatten()
}

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
