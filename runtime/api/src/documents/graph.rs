//! The document of `graph`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Health, ResourceName};

/// The graph of resources and their refs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GraphDocument {
    /// Name and version of this form: `watershed.graph/1`.
    pub schema: String,
    /// Resources of the graph, parents before their children.
    pub nodes: Vec<Node>,
    /// Edges from parents to children, by parent and child.
    pub edges: Vec<Edge>,
}

impl GraphDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.graph/1";
}

/// A node of the graph: a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// Kind of the resource, such as `model`.
    pub kind: String,
    /// Name of the resource.
    pub name: String,
    /// Health of the resource.
    pub health: Health,
}

/// An edge of the graph: the child reads the parent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Edge {
    /// Parent: the resource that is read.
    pub from: ResourceName,
    /// Child: the resource that reads the parent.
    pub to: ResourceName,
}

impl Node {
    /// Returns the kind and name of the resource.
    pub fn id(&self) -> ResourceName {
        ResourceName {
            kind: self.kind.clone(),
            name: self.name.clone(),
        }
    }
}
