//! The inputs of jobs and services from the project: values of templates, and builds of models.

use std::collections::BTreeMap;

use watershed_compilers::{Scope, render_text};
use watershed_core::{Error, Row};
use watershed_outputs::{failure, secrets::Secrets};
use watershed_workloads::Render;

use crate::model;

/// Returns the id of a model's last build, which triggers jobs that refer to the model; none for other kinds. Runs that
/// build nothing do not change it.
#[must_use]
pub fn made(row: &Row) -> Option<Vec<u8>> {
    let build = || model::build_of(row).map(|build| build.0.as_bytes().to_vec());
    (row.kind.as_str() == model::KIND).then(build).flatten()
}

/// The renderer of templates in commands and environments, whose values only the program sees.
pub struct ProgramTemplates {
    secrets: Secrets,
    environment: String,
}

impl ProgramTemplates {
    /// Creates the renderer for one environment.
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
