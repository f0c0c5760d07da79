//! The document of `instances`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Time;

/// The instances of a project's environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstancesDocument {
    /// Name and version of this form: `watershed.instances/1`.
    pub schema: String,
    /// Version of the program that wrote the document.
    pub version: String,
    /// Name of the project.
    pub project: String,
    /// Path of the project's folder.
    pub root: String,
    /// Name of the project's environment.
    pub environment: String,
    /// Instances of the environment. A state folder has one instance.
    pub instances: Vec<InstanceEntry>,
}

impl InstancesDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.instances/1";
}

/// An instance of a project, with its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstanceEntry {
    /// Name of the instance.
    pub name: String,
    /// State of the instance: live or at rest.
    pub state: InstanceState,
    /// Time at which a live instance was opened, or an instance at rest ended; null if it never ran, or did not end in
    /// order.
    pub since: Option<Time>,
    /// Address of the instance's web page; null if it does not answer over HTTP.
    pub address: Option<String>,
}

/// The rights of a project's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Reach the project's folder and its state. Nothing is started, called or sent.
    Sandbox,
    /// Whatever the user of the process may do.
    Full,
}

impl Trust {
    /// Returns the word of configurations and documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Full => "full",
        }
    }
}

/// The state of an instance: live or at rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InstanceState {
    /// A process runs the instance.
    Live,
    /// No process runs the instance.
    AtRest,
}
