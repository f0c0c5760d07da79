//! Kinds that are recognised and do nothing yet: their names, and those of what comes with them.

use crate::{
    diagnostics::Code,
    draft::{Body, Draft},
    finding::{At, Findings, Role},
    resource::Kind,
    yaml::{Data, Map, Node},
};

/// Keys of a canvas item that are no renderer of an inline component.
const ITEM_KEYS: [&str; 4] = ["width", "component", "if", "height"];

/// The resources that a file of a kind declares, with one warning that they do nothing yet.
pub(crate) fn declare(
    kind: Kind,
    mut draft: Draft,
    map: &Map,
    version: u32,
    findings: &mut Findings,
) -> Vec<Draft> {
    let (code, message) = match kind {
        Kind::Skill | Kind::Translation | Kind::AiEval => (
            Code::DoesNothing,
            format!("{} \"{}\" is kept and does nothing here", kind, draft.name),
        ),
        _ => (
            Code::NotSupportedYet,
            format!("{} \"{}\" is not supported yet", kind, draft.name),
        ),
    };
    findings.add(draft.name_at, code, message);
    draft.body = Body::Unsupported;
    let mut drafts = vec![draft];
    let Some(first) = drafts.first().cloned() else {
        return drafts;
    };
    match kind {
        Kind::MetricsView => drafts.extend(explore(&first, map, version)),
        Kind::Canvas => drafts.extend(components(&first, map)),
        _ => {}
    }
    drafts
}

/// The resource that a file is by where it stands.
pub(crate) fn document(kind: Kind, name: &str, findings: &mut Findings) -> Draft {
    let name_at = At::start(Role::Yaml);
    let message = format!("{kind} \"{name}\" is kept and does nothing here");
    findings.add(name_at, Code::DoesNothing, message);
    let (tags, refs) = (Vec::new(), Vec::new());
    Draft {
        kind,
        name: name.to_owned(),
        name_at,
        tags,
        refs,
        body: Body::Unsupported,
        implicit: false,
    }
}

fn implied(of: &Draft, kind: Kind, name: String, at: At) -> Draft {
    Draft {
        kind,
        name,
        name_at: at,
        refs: Vec::new(),
        implicit: true,
        ..of.clone()
    }
}

/// A metrics view of version 0, or one with an `explore` block, comes with an explore.
fn explore(view: &Draft, map: &Map, version: u32) -> Option<Draft> {
    let block = map.get("explore").and_then(|entry| entry.value.as_map());
    let skip = block
        .and_then(|block| block.get("skip"))
        .is_some_and(|entry| matches!(entry.value.data, Data::Bool(true)));
    if skip || (version > 0 && block.is_none()) {
        return None;
    }
    let name = block
        .and_then(|block| block.get("name"))
        .and_then(|entry| entry.value.scalar_text());
    Some(implied(
        view,
        Kind::Explore,
        name.unwrap_or_else(|| view.name.clone()),
        view.name_at,
    ))
}

/// Inline components are named after the canvas and their place in it.
fn components(canvas: &Draft, map: &Map) -> Vec<Draft> {
    let mut found = Vec::new();
    for (index, row) in list(map, "rows").iter().enumerate() {
        let Some(row) = row.as_map() else { continue };
        items(canvas, row, &format!("component-{index}"), &mut found);
        for (tab, tab_node) in list(row, "tabs").iter().enumerate() {
            let Some(tab_map) = tab_node.as_map() else {
                continue;
            };
            for (inner, inner_row) in list(tab_map, "rows").iter().enumerate() {
                if let Some(inner_row) = inner_row.as_map() {
                    items(
                        canvas,
                        inner_row,
                        &format!("component-g{index}-t{tab}-{inner}"),
                        &mut found,
                    );
                }
            }
        }
    }
    found
}

fn items(canvas: &Draft, row: &Map, prefix: &str, found: &mut Vec<Draft>) {
    for (index, item) in list(row, "items").iter().enumerate() {
        let Some(map) = item.as_map() else { continue };
        if map.keys().any(|key| !ITEM_KEYS.contains(&key.as_str())) {
            let name = format!("{}--{prefix}-{index}", canvas.name);
            found.push(implied(canvas, Kind::Component, name, item.at));
        }
    }
}

fn list<'a>(map: &'a Map, key: &str) -> &'a [Node] {
    map.get(key)
        .and_then(|entry| entry.value.as_list())
        .unwrap_or_default()
}
