//! Export of diagrams as lines for a terminal.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::view::{Edge, Look, Node, View};
use crate::graph::GroupPath;
use crate::reference::Ref;

pub(super) fn draw(view: &View) -> String {
    let mut edges: BTreeMap<&Ref, Vec<&Edge>> = BTreeMap::new();
    for edge in &view.edges {
        edges.entry(&edge.from).or_default().push(edge);
    }
    let mut out = format!("{}\n", view.name);
    group(&mut out, view, &edges, &GroupPath::root(), 1);
    out
}

fn group(out: &mut String, view: &View, edges: &BTreeMap<&Ref, Vec<&Edge>>, path: &GroupPath, depth: usize) {
    let indent = "  ".repeat(depth);
    for found in view.nodes_in(path) {
        node(
            out,
            found,
            edges.get(&found.reference).map_or(&[], Vec::as_slice),
            &indent,
        );
    }
    for inner in view.inner_groups(path) {
        // Writing into a text does not fail, here and below.
        let _ = writeln!(out, "{indent}{}/", inner.leaf());
        group(out, view, edges, inner, depth + 1);
    }
}

fn node(out: &mut String, node: &Node, edges: &[&Edge], indent: &str) {
    let sign = match node.look {
        Look::ToCreate => '+',
        Look::ToModify => '~',
        Look::ToDelete => '-',
        Look::Failed => '!',
        Look::Missing => '?',
        Look::Busy => '*',
        Look::Unknown | Look::Created | Look::External => ' ',
    };
    let _ = writeln!(out, "{indent}{sign} {} ({})", node.reference, node.state);
    for edge in edges {
        let label = if edge.label.is_empty() {
            String::new()
        } else {
            format!(" ({})", edge.label)
        };
        let unmet = if edge.is_satisfied { "" } else { ", unsatisfied" };
        let word = if edge.is_order_only { "after" } else { "needs" };
        let _ = writeln!(out, "{indent}    {word} {}{label}{unmet}", edge.to);
    }
}
