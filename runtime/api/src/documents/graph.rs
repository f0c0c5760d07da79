//! The document of `graph`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Health, ResourceName};

/// Resources and what reads what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GraphDocument {
    /// Name and version of this form: `watershed.graph/1`.
    pub schema: String,
    /// The resources: parents before their children.
    pub nodes: Vec<Node>,
    /// The edges, by parent and child.
    pub edges: Vec<Edge>,
}

impl GraphDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.graph/1";
}

/// A resource of the graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
    /// Its health.
    pub health: Health,
}

/// A child reads a parent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Edge {
    /// The resource that is read.
    pub from: ResourceName,
    /// The resource that reads it.
    pub to: ResourceName,
}

impl Node {
    /// Kind and name alone.
    pub fn id(&self) -> ResourceName {
        ResourceName {
            kind: self.kind.clone(),
            name: self.name.clone(),
        }
    }
}
