//! Parsing of refs in YAML.

use crate::{
    diagnostics::{At, Code, Findings},
    draft::RawRef,
    resource::{FileKind, Requirement},
    text::words,
    yaml::{Data, Node, Style},
};

/// Parses refs: names, `kind/name` or mappings in a list, or several in the text of an annotation.
pub(crate) fn read(node: &Node, findings: &mut Findings) -> Vec<RawRef> {
    if let Some(items) = node.as_list() {
        let refs = items.iter().filter_map(|item| reference(item, findings));
        return refs.collect();
    }
    let text = node.scalar_text().unwrap_or_default();
    // An annotation and a call in a template have no lists.
    if node.style != Style::Annotation && !text.is_empty() {
        let message = "invalid ref: `refs` takes a list";
        let hint = format!("write `refs: [{text}]`");
        findings.add_with_hint(node.at, Code::InvalidRef, message, hint);
        return Vec::new();
    }
    let mut words = words(&text).peekable();
    if words.peek().is_none() {
        return reference(node, findings).into_iter().collect();
    }
    let refs = words.filter_map(|word| {
        let parts = split(&word, node.at, findings)?;
        checked(parts, None, node.at, findings)
    });
    refs.collect()
}

/// Splits `kind/name`; a bare name has no kind.
fn split(text: &str, at: At, findings: &mut Findings) -> Option<(Option<String>, String)> {
    match text.split('/').collect::<Vec<_>>().as_slice() {
        [name] => Some((None, (*name).to_owned())),
        [kind, name] => Some((Some((*kind).to_owned()), (*name).to_owned())),
        _ => {
            let message = format!("invalid ref: \"{text}\" is neither `name` nor `kind/name`");
            findings.add(at, Code::InvalidRef, message);
            None
        }
    }
}

fn reference(node: &Node, findings: &mut Findings) -> Option<RawRef> {
    let mut required = None;
    let (kind, name) = match &node.data {
        Data::Map(map) => {
            let text = |key: &str| map.get(key).and_then(|entry| entry.value.scalar_text());
            let Some(name) = text("name") else {
                findings.add(node.at, Code::InvalidRef, "invalid ref: a `name` is missing");
                return None;
            };
            if let Some(word) = text("required") {
                required = Requirement::read(&word);
                if required.is_none() {
                    let message =
                        format!("invalid ref: `required` is exists, completed or ready, not \"{word}\"");
                    findings.add(node.at, Code::InvalidRef, message);
                }
            }
            (text("kind").or_else(|| text("type")), name)
        }
        _ => {
            let Some(text) = node.scalar_text() else {
                let message = format!(
                    "invalid ref: expected a name or a mapping, not {}",
                    node.data.type_name()
                );
                findings.add(node.at, Code::InvalidRef, message);
                return None;
            };
            split(&text, node.at, findings)?
        }
    };
    checked((kind, name), required, node.at, findings)
}

fn checked(
    (kind, name): (Option<String>, String),
    required: Option<Requirement>,
    at: At,
    findings: &mut Findings,
) -> Option<RawRef> {
    let kind = match kind.as_deref().map(FileKind::read) {
        None => None,
        Some(Some(kind)) => Some(kind.kind()),
        Some(None) => {
            let message = format!("invalid ref: unknown kind \"{}\"", kind.unwrap_or_default());
            findings.add(at, Code::InvalidRef, message);
            return None;
        }
    };
    if name.trim().is_empty() {
        findings.add(at, Code::InvalidRef, "invalid ref: the name is empty");
        return None;
    }
    Some(RawRef {
        kind,
        name,
        own_look: false,
        expected: kind.is_some(),
        at: Some(at),
        listed: true,
        required,
    })
}
