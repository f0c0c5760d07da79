//! The document of `instances`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Time;

/// The instances of an environment of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstancesDocument {
    /// Name and version of this form: `watershed.instances/1`.
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// Name of the project.
    pub project: String,
    /// Folder of the project.
    pub root: String,
    /// The environment.
    pub environment: String,
    /// The instances: a state folder has one.
    pub instances: Vec<InstanceEntry>,
}

impl InstancesDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.instances/1";
}

/// An instance and its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstanceEntry {
    /// The name of the instance.
    pub name: String,
    /// The state of the instance.
    pub state: InstanceState,
    /// The time at which the instance was opened, or ended if it is at rest; none if it never ran, or did not end in order.
    pub since: Option<Time>,
    /// The address of its page for people; none if it does not answer over HTTP.
    pub address: Option<String>,
}

/// The state of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InstanceState {
    /// A process runs the instance.
    Live,
    /// No process runs the instance.
    AtRest,
}
