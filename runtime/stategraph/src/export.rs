//! Export of graphs, and of transitions between two, as diagrams and data.
//!
//! All formats show the same view: groups as clusters, each item with its state or what will happen to
//! it, unsatisfied edges red, missing targets dashed.

mod dot;
mod json;
mod mermaid;
mod text;
mod view;

pub use json::{JsonEdge, JsonItem, JsonView};

use crate::graph::Graph;
use crate::types::Types;
use crate::value::Value;
use view::View;

/// A diagram of a graph, or of the transition from one to another.
///
/// ```
/// # mod warehouse { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/warehouse.rs.in")); }
/// use watershed_stategraph::{Graph, Diagram};
/// let (executor, intended) = (warehouse::executor(), warehouse::intended()?);
/// let picture = Diagram::transition(&Graph::new("warehouse"), &intended, executor.types());
/// assert_eq!(picture.text(), "\
/// warehouse
///   + table/orders (to create)
///   + view/daily (to create)
///       needs table/orders, unsatisfied
/// ");
/// assert!(picture.dot().starts_with("digraph \"warehouse\""));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Diagram(View);

impl Diagram {
    /// Creates a diagram of a graph.
    pub fn from_graph<V: Value>(graph: &Graph<V>, types: &Types<V>) -> Self {
        Self(View::from_graph(graph, None, types))
    }

    /// Creates a diagram of the changes that would make the current graph the intended one.
    pub fn transition<V: Value>(current: &Graph<V>, intended: &Graph<V>, types: &Types<V>) -> Self {
        Self(View::from_graph(current, Some(intended), types))
    }

    /// Returns the diagram in the language of Graphviz.
    pub fn dot(&self) -> String {
        dot::draw(&self.0)
    }

    /// Returns the diagram in the language of Mermaid.
    pub fn mermaid(&self) -> String {
        mermaid::draw(&self.0)
    }

    /// Returns the diagram as data.
    pub fn json(&self) -> JsonView {
        json::draw(&self.0)
    }

    /// Returns the diagram as lines for a terminal, with indented groups.
    pub fn text(&self) -> String {
        text::draw(&self.0)
    }
}
