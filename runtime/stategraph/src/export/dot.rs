//! Export of diagrams in the language of Graphviz.

use std::fmt::Write;

use super::view::{Edge, Look, Node, View};
use crate::graph::GroupPath;

pub(super) fn draw(view: &View) -> String {
    let mut out = format!(
        "digraph {} {{\n  rankdir=LR;\n  node [style=filled];\n",
        quote(&view.name)
    );
    group(&mut out, view, &GroupPath::root(), 1);
    for edge in &view.edges {
        line(&mut out, edge);
    }
    out.push_str("}\n");
    out
}

fn group(out: &mut String, view: &View, path: &GroupPath, depth: usize) {
    let indent = "  ".repeat(depth);
    for found in view.nodes_in(path) {
        node(out, found, &indent);
    }
    for inner in view.inner_groups(path) {
        let description = view.groups.get(inner).filter(|text| !text.is_empty());
        let label = description.map_or_else(
            || inner.leaf().to_owned(),
            |text| format!("{}: {text}", inner.leaf()),
        );
        // Writing into a text does not fail, here and below.
        let _ = writeln!(out, "{indent}subgraph {} {{", quote(&format!("cluster_{inner}")));
        let _ = writeln!(out, "{indent}  label={};", quote(&label));
        group(out, view, inner, depth + 1);
        let _ = writeln!(out, "{indent}}}");
    }
}

fn node(out: &mut String, node: &Node, indent: &str) {
    let shape = match node.look {
        Look::External => "ellipse",
        Look::Failed => "octagon",
        Look::Busy => "component",
        Look::Unknown => "diamond",
        _ => "box",
    };
    let style = if node.look == Look::Missing {
        ", style=dashed"
    } else {
        ""
    };
    let label = quote(&format!("{}\n{}", node.reference, node.state));
    let (name, colour) = (quote(node.reference.as_str()), node.look.colour());
    let _ = writeln!(
        out,
        "{indent}{name} [label={label}, shape={shape}, fillcolor=\"{colour}\"{style}];"
    );
}

fn line(out: &mut String, edge: &Edge) {
    let mut attributes = Vec::new();
    attributes.extend((!edge.is_satisfied).then(|| "color=red".to_owned()));
    attributes.extend(edge.is_order_only.then(|| "style=dotted".to_owned()));
    attributes.extend((!edge.label.is_empty()).then(|| format!("label={}", quote(&edge.label))));
    let (from, to) = (quote(edge.from.as_str()), quote(edge.to.as_str()));
    let _ = writeln!(out, "  {from} -> {to} [{}];", attributes.join(", "));
}

fn quote(text: &str) -> String {
    format!(
        "\"{}\"",
        text.replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n")
    )
}
