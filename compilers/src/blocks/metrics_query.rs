//! Metrics queries as YAML mappings, checked at compile time by the parser that runs them.

use watershed_metrics::query::{Code as Refusal, Query, QueryError};

use crate::{
    diagnostics::{At, Code, Findings},
    template::is_template,
    yaml::{Data, Node},
};

/// Reports the first reason why a query would be refused. A query with a template is skipped, as it differs at each
/// request.
pub(super) fn check(node: &Node, findings: &mut Findings) {
    if has_template(node) {
        return;
    }
    let json = serde_json::Value::from(&node.to_value());
    let Err(error) = Query::from_json(&json) else {
        return;
    };
    let code = match error.code {
        Refusal::UnknownKey => Code::UnknownKey,
        Refusal::WrongType => Code::WrongType,
        Refusal::MissingKey => Code::MissingKey,
        Refusal::ConflictingKeys => Code::ConflictingKeys,
        _ => Code::InvalidValue,
    };
    let at = place(node, &error);
    match &error.hint {
        Some(hint) => findings.add_with_hint(at, code, &error.message, hint),
        None => findings.add(at, code, &error.message),
    }
}

fn has_template(node: &Node) -> bool {
    match &node.data {
        Data::List(items) => items.iter().any(has_template),
        Data::Map(map) => map.values().any(|entry| has_template(&entry.value)),
        Data::String(text) => is_template(text),
        Data::Null | Data::Bool(_) | Data::Int(_) | Data::Float(_) => false,
    }
}

/// Finds the place of an error by its path, such as `where.cond.exprs[0].name`, as far as the file has it.
fn place(node: &Node, error: &QueryError) -> At {
    let mut found = node;
    let steps = error.at.split(['.', '[']).map(|step| step.trim_end_matches(']'));
    for step in steps {
        let next = match &found.data {
            Data::Map(map) => map.get(step).map(|entry| &entry.value),
            Data::List(items) => step.parse().ok().and_then(|index: usize| items.get(index)),
            _ => None,
        };
        match next {
            Some(next) => found = next,
            None => break,
        }
    }
    match (&found.data, error.code) {
        (Data::Map(map), Refusal::UnknownKey) => {
            let named = |key: &&String| error.message.ends_with(&format!("\"{key}\""));
            let key = map.keys().find(named).and_then(|key| map.get(key));
            key.map_or(found.at, |entry| entry.key_at)
        }
        _ => found.at,
    }
}
