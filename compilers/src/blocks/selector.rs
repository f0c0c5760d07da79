//! Selectors of fields of a metrics view.

use watershed_proto::FieldSelector;

use crate::{
    diagnostics::{Code, Findings, spot},
    yaml::{Data, Entry, Fields, Node, keys::blocks, unknown_key},
};

blocks! {
    /// Keys of a selector that is a mapping.
    pub(crate) static SELECTOR = "field_selector" Refused {
        "regex": Text, "A pattern that names match.";
        "expr": Text, "An expression that chooses columns, as the engine writes it.";
        "exclude": Any, "All but these.";
    }
}

/// Takes a selector: `'*'`, a name, a list of names, or a mapping with `regex`, `expr` or `exclude`.
pub(crate) fn take(fields: &mut Fields<'_>, key: &str) -> Option<FieldSelector> {
    let node = fields.take(key)?.value;
    read(&node, key, fields.findings())
}

fn read(node: &Node, key: &str, findings: &mut Findings) -> Option<FieldSelector> {
    match &node.data {
        Data::Map(map) => {
            let mut found = map.iter().filter(|(key, _)| SELECTOR.key(key).is_some());
            for (unknown, entry) in map.iter().filter(|(key, _)| SELECTOR.key(key).is_none()) {
                unknown_key(findings, unknown, entry.key_at, &SELECTOR);
            }
            let (Some((way, entry)), None) = (found.next(), found.next()) else {
                let message = format!("\"{key}\" takes one of `regex`, `expr` and `exclude`");
                findings.add(node.at, Code::ConflictingKeys, message);
                return None;
            };
            by(way, entry, key, findings)
        }
        Data::List(items) => {
            let mut selector = FieldSelector::default();
            for item in items {
                let Some(name) = item.scalar_text() else {
                    wrong(item, key, findings);
                    continue;
                };
                selector.fields.push(name);
                selector.spots.extend(spot(item.at));
            }
            Some(selector)
        }
        _ => {
            let Some(text) = node.scalar_text() else {
                wrong(node, key, findings);
                return None;
            };
            let all = text.trim() == "*";
            Some(FieldSelector {
                all,
                fields: if all { Vec::new() } else { vec![text] },
                spots: spot(node.at).into_iter().collect(),
                ..FieldSelector::default()
            })
        }
    }
}

fn by(way: &str, entry: &Entry, key: &str, findings: &mut Findings) -> Option<FieldSelector> {
    if way == "exclude" {
        let inner = read(&entry.value, key, findings)?;
        return Some(FieldSelector {
            invert: !inner.invert,
            ..inner
        });
    }
    let Some(text) = entry.value.scalar_text() else {
        wrong(&entry.value, way, findings);
        return None;
    };
    let mut selector = FieldSelector {
        spots: spot(entry.value.at).into_iter().collect(),
        ..FieldSelector::default()
    };
    match way {
        "regex" => {
            if regex::Regex::new(&text).is_err() {
                let message = format!("\"{text}\" is no pattern");
                findings.add(entry.value.at, Code::InvalidValue, message);
            }
            selector.regex = text;
        }
        _ => selector.duckdb_expression = text,
    }
    Some(selector)
}

fn wrong(node: &Node, key: &str, findings: &mut Findings) {
    let message = format!("\"{key}\" takes names of fields, not {}", node.data.type_name());
    findings.add(node.at, Code::WrongType, message);
}
