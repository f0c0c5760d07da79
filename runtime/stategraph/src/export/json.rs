//! Export of diagrams as data for other programs.

use serde::{Deserialize, Serialize};

use super::view::View;
use crate::graph::{Group, GroupPath};
use crate::reference::Ref;

/// A diagram as data; lists are in order of ref and path.
///
/// ```
/// # mod warehouse { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/warehouse.rs.in")); }
/// use watershed_stategraph::{JsonView, Diagram};
/// let view = Diagram::from_graph(&warehouse::intended()?, warehouse::executor().types()).json();
/// assert_eq!((view.name.as_str(), view.items.len(), view.edges.len()), ("warehouse", 2, 1));
/// // What a web page gets, another program can read back.
/// let text = serde_json::to_string(&view)?;
/// assert_eq!(serde_json::from_str::<JsonView>(&text)?, view);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JsonView {
    /// Name that the graph was created with.
    pub name: String,
    /// Groups of items, in order of path.
    pub groups: Vec<Group>,
    /// Items of the graph, including missing targets.
    pub items: Vec<JsonItem>,
    /// Dependencies between the items.
    pub edges: Vec<JsonEdge>,
}

/// An item, or a missing target, as a diagram shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JsonItem {
    /// Type and name of the item.
    #[serde(rename = "ref")]
    pub reference: Ref,
    /// Path of the item's group.
    pub group: GroupPath,
    /// State in the current graph, as a word.
    pub state: String,
    /// Present state or coming change, as a word: `created`, `to create`, `missing`...
    pub look: String,
}

/// One target of a dependency, in a diagram.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JsonEdge {
    /// Item that has the dependency.
    pub from: Ref,
    /// Target of the dependency.
    pub to: Ref,
    /// Condition or description of the dependency.
    pub label: String,
    /// True if the target satisfies the dependency.
    pub satisfied: bool,
    /// True if the dependency only orders operations.
    pub order_only: bool,
}

pub(super) fn draw(view: &View) -> JsonView {
    let groups = view.groups.iter();
    let nodes = view.nodes.values();
    let edges = view.edges.iter();
    JsonView {
        name: view.name.clone(),
        groups: groups
            .map(|(path, text)| Group {
                path: path.clone(),
                description: text.clone(),
            })
            .collect(),
        items: nodes
            .map(|node| JsonItem {
                reference: node.reference.clone(),
                group: node.group.clone(),
                state: node.state.clone(),
                look: node.look.name().to_owned(),
            })
            .collect(),
        edges: edges
            .map(|edge| JsonEdge {
                from: edge.from.clone(),
                to: edge.to.clone(),
                label: edge.label.clone(),
                satisfied: edge.is_satisfied,
                order_only: edge.is_order_only,
            })
            .collect(),
    }
}
