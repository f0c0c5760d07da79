//! Graphs, and the way from one to another, as pictures and data.
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

/// A picture of a graph, or of the way from one to another.
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
    /// A graph as it is.
    pub fn from_graph<V: Value>(graph: &Graph<V>, types: &Types<V>) -> Self {
        Self(View::from_graph(graph, None, types))
    }

    /// A picture of the changes that would make the current graph the intended one.
    pub fn transition<V: Value>(current: &Graph<V>, intended: &Graph<V>, types: &Types<V>) -> Self {
        Self(View::from_graph(current, Some(intended), types))
    }

    /// Returns the text for Graphviz.
    pub fn dot(&self) -> String {
        dot::draw(&self.0)
    }

    /// Returns the text for Mermaid.
    pub fn mermaid(&self) -> String {
        mermaid::draw(&self.0)
    }

    /// Returns the view as data.
    pub fn json(&self) -> JsonView {
        json::draw(&self.0)
    }

    /// Returns lines for a terminal, groups indented.
    pub fn text(&self) -> String {
        text::draw(&self.0)
    }
}
