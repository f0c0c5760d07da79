//! The graph of resources: as a tree for people, and for Graphviz.

use std::collections::{BTreeMap, BTreeSet};

use watershed_api::documents::{GraphDocument, Health, ResourceName};

use super::palette::DIM;
use super::paragraph::seen_width;
use super::status::health_style;
use super::units::some_of;

/// Most names in a list of what a resource reads besides the resource above it.
const MOST_NAMES: usize = 5;
/// Deepest indentation, in levels; deeper lines show their depth as a number, since chains may be very long.
const DEEPEST_INDENT: usize = 30;

/// Renders the tree of `graph`, in which each resource stands once: below the last step of the longest way to it.
///
/// Whatever else a resource reads is named in its line, if need be as a number, so that the line fits `width` columns.
pub(crate) fn graph(document: &GraphDocument, width: Option<u16>) -> String {
    let names: Vec<ResourceName> = document.nodes.iter().map(|node| node.id()).collect();
    let health = document.nodes.iter().map(|node| node.health);
    let health: BTreeMap<&ResourceName, Health> = names.iter().zip(health).collect();
    let mut reads: BTreeMap<&ResourceName, Vec<&ResourceName>> = BTreeMap::new();
    for edge in &document.edges {
        reads.entry(&edge.to).or_default().push(&edge.from);
    }
    let mut above = parents(document);
    above.retain(|_, parent| health.contains_key(parent));
    let mut below: BTreeMap<&ResourceName, Vec<&ResourceName>> = BTreeMap::new();
    for name in &names {
        if let Some(parent) = above.get(name) {
            below.entry(*parent).or_default().push(name);
        }
    }
    let mut out = String::new();
    for root in names.iter().filter(|name| !above.contains_key(name)) {
        // A stack of its own: a chain of models may be deeper than the thread's.
        let mut stack = vec![(root, 0_usize)];
        while let Some((name, depth)) = stack.pop() {
            let parent = above.get(name);
            let others = reads.get(name).into_iter().flatten();
            let others: Vec<String> = others
                .filter(|read| parent != Some(*read))
                .map(|read| said(read))
                .collect();
            let word = if parent.is_some() { "also reads" } else { "reads" };
            let begin = begin(name, depth, health.get(name).copied());
            out.push_str(&line(begin, word, &others, width));
            let children = below.get(name).into_iter().flatten();
            stack.extend(children.rev().map(|child| (*child, depth + 1)));
        }
    }
    out
}

/// Returns the resource above each, that with the longest way to it; none for roots, and for what a cycle leads to.
fn parents(document: &GraphDocument) -> BTreeMap<&ResourceName, &ResourceName> {
    let mut children: BTreeMap<&ResourceName, Vec<&ResourceName>> = BTreeMap::new();
    let mut unmet: BTreeMap<&ResourceName, usize> = BTreeMap::new();
    for edge in &document.edges {
        children.entry(&edge.from).or_default().push(&edge.to);
        *unmet.entry(&edge.to).or_default() += 1;
    }
    let starts: BTreeSet<&ResourceName> = children
        .keys()
        .copied()
        .filter(|name| !unmet.contains_key(name))
        .collect();
    let mut ready: Vec<(&ResourceName, usize)> = starts.into_iter().map(|name| (name, 0)).collect();
    let mut longest: BTreeMap<&ResourceName, (usize, &ResourceName)> = BTreeMap::new();
    let mut parents = BTreeMap::new();
    while let Some((name, depth)) = ready.pop() {
        for child in children.get(name).into_iter().flatten().copied() {
            let best = longest.entry(child).or_insert((depth, name));
            if depth > best.0 || depth == best.0 && name < best.1 {
                *best = (depth, name);
            }
            let Some(left) = unmet.get_mut(child) else {
                continue;
            };
            *left -= 1;
            if *left == 0 {
                parents.insert(child, best.1);
                ready.push((child, best.0 + 1));
            }
        }
    }
    parents
}

/// Returns a name with its kind, which models need not say.
fn said(name: &ResourceName) -> String {
    match name.kind.as_str() {
        "model" => name.name.clone(),
        _ => name.to_string(),
    }
}

/// Renders the beginning of a line: name and health.
fn begin(name: &ResourceName, depth: usize, health: Option<Health>) -> String {
    let mut indent = "  ".repeat(depth.min(DEEPEST_INDENT));
    if depth > DEEPEST_INDENT {
        indent.push_str(&format!("{DIM}({depth}){DIM:#} "));
    }
    let kind = match name.kind.as_str() {
        "model" => String::new(),
        kind => format!("{DIM}{kind}/{DIM:#}"),
    };
    let stand = match health {
        None | Some(Health::Ok) => String::new(),
        Some(health) => {
            let style = health_style(health);
            format!("  {style}{}{style:#}", health.as_str())
        }
    };
    format!("{indent}{kind}{}{stand}", name.name)
}

/// Renders a line with as many names of what the resource reads besides as there is room for.
fn line(begin: String, word: &str, others: &[String], width: Option<u16>) -> String {
    if others.is_empty() {
        return format!("{begin}\n");
    }
    let room = width
        .map_or(usize::MAX, usize::from)
        .saturating_sub(seen_width(&begin) + 2);
    let told = |most: usize| match most {
        0 => format!(
            "{word} {} {}",
            others.len(),
            if word == "reads" { "others" } else { "more" }
        ),
        most => format!("{word} {}", some_of(others, most)),
    };
    let fitting = (1..=MOST_NAMES)
        .rev()
        .map(told)
        .find(|told| seen_width(told) <= room);
    let told = fitting.unwrap_or_else(|| told(0));
    format!("{begin}  {DIM}{told}{DIM:#}\n")
}

/// Renders the graph for Graphviz.
pub(crate) fn dot(document: &GraphDocument) -> String {
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let quoted = |name: &ResourceName| format!("\"{}\"", escaped(&name.to_string()));
    let mut out = "digraph watershed {\n  rankdir=LR;\n  node [shape=box];\n".to_owned();
    for node in &document.nodes {
        let label = escaped(&node.name);
        out.push_str(&format!("  {} [label=\"{label}\"];\n", quoted(&node.id())));
    }
    for edge in &document.edges {
        out.push_str(&format!("  {} -> {};\n", quoted(&edge.from), quoted(&edge.to)));
    }
    out.push_str("}\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use watershed_api::documents::{Edge, Node};

    /// Returns a graph of models from the edges between them, written `a b`: `b` reads `a`.
    fn models(names: &[&str], edges: &[(&str, &str)]) -> GraphDocument {
        let name = |name: &str| ResourceName::new("model", name);
        let node = |name: &&str| Node {
            kind: "model".into(),
            name: (*name).into(),
            health: Health::Ok,
        };
        GraphDocument {
            schema: GraphDocument::SCHEMA.into(),
            nodes: names.iter().map(node).collect(),
            edges: edges
                .iter()
                .map(|(from, to)| Edge {
                    from: name(from),
                    to: name(to),
                })
                .collect(),
        }
    }

    fn drawn(document: &GraphDocument, width: Option<u16>) -> String {
        anstream::adapter::strip_str(&graph(document, width)).to_string()
    }

    #[test]
    fn each_resource_stands_once_below_the_longest_way_to_it() {
        let names = ["alert", "days", "flights", "hours", "weather"];
        let edges = [
            ("days", "alert"),
            ("flights", "alert"),
            ("hours", "alert"),
            ("weather", "alert"),
            ("flights", "days"),
            ("hours", "days"),
            ("flights", "hours"),
            ("weather", "hours"),
        ];
        let document = models(&names, &edges);
        assert_eq!(
            drawn(&document, None),
            "flights\n  hours  also reads weather\n    days  also reads flights\n      \
             alert  also reads flights, hours and weather\nweather\n"
        );
        let narrow = drawn(&document, Some(36));
        assert!(narrow.contains("\n      alert  also reads 3 more\n"), "{narrow}");
        assert!(narrow.lines().all(|line| line.len() <= 36), "{narrow}");
    }

    #[test]
    fn members_of_a_cycle_and_what_reads_them_say_what_they_read() {
        let document = models(&["a", "b", "c"], &[("a", "b"), ("b", "a"), ("b", "c")]);
        assert_eq!(drawn(&document, None), "a  reads b\nb  reads a\nc  reads b\n");
    }

    #[test]
    fn the_text_of_a_long_chain_grows_with_its_length() {
        let length = |length: usize| {
            let names: Vec<String> = (0..length).map(|at| format!("m{at:05}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let edges: Vec<(&str, &str)> = names.windows(2).map(|pair| (pair[0], pair[1])).collect();
            graph(&models(&names, &edges), None).len()
        };
        let (short, long) = (length(2_000), length(4_000));
        assert!(long < short * 11 / 5, "{short} bytes and {long} bytes");
    }
}
