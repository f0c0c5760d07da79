//! Export of diagrams in the language of Mermaid.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::view::{Look, Node, View};
use crate::graph::GroupPath;
use crate::reference::Ref;

pub(super) fn draw(view: &View) -> String {
    // Mermaid takes few characters in names, so that items are numbered.
    let names: BTreeMap<&Ref, usize> = view.nodes.keys().zip(0..).collect();
    let mut out = "flowchart LR\n".to_owned();
    group(&mut out, view, &names, &GroupPath::root(), 1);
    let mut red = Vec::new();
    for (at, edge) in view.edges.iter().enumerate() {
        let arrow = if edge.is_order_only { "-.->" } else { "-->" };
        let label = if edge.label.is_empty() {
            String::new()
        } else {
            format!("|\"{}\"|", escape(&edge.label))
        };
        // Writing into a text does not fail, here and below.
        let _ = writeln!(
            out,
            "  n{} {arrow}{label} n{}",
            names[&edge.from], names[&edge.to]
        );
        red.extend((!edge.is_satisfied).then(|| at.to_string()));
    }
    if !red.is_empty() {
        let _ = writeln!(out, "  linkStyle {} stroke:red", red.join(","));
    }
    for look in view
        .nodes
        .values()
        .map(|node| node.look)
        .collect::<std::collections::BTreeSet<_>>()
    {
        let dashed = if look == Look::Missing {
            ",stroke-dasharray:4"
        } else {
            ""
        };
        let _ = writeln!(out, "  classDef {} fill:{}{dashed}", class(look), look.colour());
    }
    out
}

fn group(out: &mut String, view: &View, names: &BTreeMap<&Ref, usize>, path: &GroupPath, depth: usize) {
    let indent = "  ".repeat(depth);
    for found in view.nodes_in(path) {
        node(out, found, names[&found.reference], &indent);
    }
    for inner in view.inner_groups(path) {
        let id: String = inner
            .as_str()
            .chars()
            .map(|c| if c.is_alphanumeric() { c } else { '_' })
            .collect();
        let _ = writeln!(out, "{indent}subgraph g_{id} [\"{}\"]", escape(inner.leaf()));
        group(out, view, names, inner, depth + 1);
        let _ = writeln!(out, "{indent}end");
    }
}

fn node(out: &mut String, node: &Node, number: usize, indent: &str) {
    let (open, close) = match node.look {
        Look::External => ("([", "])"),
        Look::Failed => ("{{", "}}"),
        Look::Unknown => ("{", "}"),
        Look::Busy => ("[[", "]]"),
        _ => ("[", "]"),
    };
    let label = escape(&format!("{}<br/>{}", node.reference, node.state));
    let _ = writeln!(
        out,
        "{indent}n{number}{open}\"{label}\"{close}:::{}",
        class(node.look)
    );
}

fn class(look: Look) -> String {
    look.name().replace(' ', "_")
}

fn escape(text: &str) -> String {
    text.replace('"', "#quot;").replace('\n', " ")
}
