//! The steps of a managed resource: their actions, and the commands and HTTP calls behind actions and looks.

use std::collections::BTreeSet;

use watershed_proto::{ManagedAction, ManagedCall, ManagedRequest, ManagedStep};

use super::keys::{ACTION, CALL, LOOK};
use crate::{
    diagnostics::{At, Code},
    text::names,
    yaml::{Data, Fields, Map, Node, item},
};

/// The largest number of actions of a step.
const ACTIONS_MAX: usize = 64;
const TIMEOUT_MS: u64 = 300_000;
const ATTEMPTS: u32 = 5;
const BASE_MS: u64 = 1_000;
const CAP_MS: u64 = 60_000;

/// Takes the block `observe`.
pub(super) fn look(fields: &mut Fields<'_>) -> Option<ManagedCall> {
    let (map, at) = fields.map("observe")?;
    let mut block = Fields::new(map, at, fields.findings());
    let call = call(&mut block, at, "a look");
    block.finish(&LOOK);
    Some(call)
}

/// Takes the steps, ordered by the names of their stages.
pub(super) fn take(fields: &mut Fields<'_>) -> Vec<ManagedStep> {
    let Some((map, _)) = fields.map("steps") else {
        return Vec::new();
    };
    let steps = map.into_iter().filter_map(|(to, entry)| {
        let (at, value) = (entry.key_at, entry.value);
        let actions = match value.data {
            Data::List(nodes) => pipeline(fields, nodes, at),
            _ => {
                let (map, at) = item(value, "a step", fields.findings())?;
                vec![action(fields, map, at, Some(&to))]
            }
        };
        Some(ManagedStep { to, actions })
    });
    steps.collect()
}

/// Reads the list of actions of one step.
fn pipeline(fields: &mut Fields<'_>, nodes: Vec<Node>, at: At) -> Vec<ManagedAction> {
    if nodes.is_empty() || nodes.len() > ACTIONS_MAX {
        let message = format!("a step has 1 to {ACTIONS_MAX} actions, not {}", nodes.len());
        fields.findings().add(at, Code::InvalidValue, message);
    }
    let mut actions: Vec<ManagedAction> = Vec::new();
    for node in nodes {
        let Some((map, at)) = item(node, "an action", fields.findings()) else {
            continue;
        };
        let made = action(fields, map, at, None);
        if actions.iter().any(|other| other.name == made.name) {
            let message = format!("there is another action \"{}\"", made.name);
            fields.findings().add(at, Code::InvalidValue, message);
        }
        actions.push(made);
    }
    check_needs(fields, &actions, at);
    actions
}

/// Checks that actions depend only on actions of the same step, and not in a cycle.
fn check_needs(fields: &mut Fields<'_>, actions: &[ManagedAction], at: At) {
    let known: Vec<&str> = actions.iter().map(|action| action.name.as_str()).collect();
    let mut is_known = true;
    for action in actions {
        for need in action.needs.iter().filter(|need| !known.contains(&need.as_str())) {
            is_known = false;
            let message = format!(
                "the action \"{}\" needs \"{need}\", which is no action of the step",
                action.name
            );
            let hint = match names::nearest(need, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("one of `{}`", known.join("`, `")),
            };
            fields
                .findings()
                .add_with_hint(at, Code::InvalidValue, message, hint);
        }
    }
    let mut done: BTreeSet<&str> = BTreeSet::new();
    while let Some(next) = actions.iter().find(|action| {
        !done.contains(action.name.as_str()) && action.needs.iter().all(|need| done.contains(need.as_str()))
    }) {
        done.insert(&next.name);
    }
    let left = actions.iter().find(|action| !done.contains(action.name.as_str()));
    if let Some(left) = left.filter(|_| is_known) {
        let message = format!("the action \"{}\" needs itself, through what it needs", left.name);
        fields.findings().add(at, Code::InvalidValue, message);
    }
}

/// Reads an action; the only action of a step takes the name of the stage.
fn action(fields: &mut Fields<'_>, map: Map, at: At, stage: Option<&str>) -> ManagedAction {
    let mut block = Fields::new(map, at, fields.findings());
    let name = block.text("name").or_else(|| stage.map(str::to_owned));
    if name.as_deref().is_none_or(|name| name.trim().is_empty()) {
        let message = "an action among several needs a `name`";
        block.findings().add(at, Code::MissingKey, message);
    }
    if let Some(at) = block.key_at("needs").filter(|_| stage.is_some()) {
        let message = "the only action of a step has no other that it could need";
        block.findings().add(at, Code::ConflictingKeys, message);
    }
    let attempts_at = block.value_at("attempts");
    let action = ManagedAction {
        name: name.unwrap_or_default(),
        call: Some(call(&mut block, at, "an action")),
        needs: block.texts("needs").unwrap_or_default(),
        skip_when: block.value_map("skip_when"),
        optional: block.bool("optional").unwrap_or_default(),
        timeout_ms: block.milliseconds("timeout").unwrap_or(TIMEOUT_MS),
        attempts: block.count("attempts").unwrap_or(ATTEMPTS),
        base_ms: block.milliseconds("base").unwrap_or(BASE_MS),
        cap_ms: block.milliseconds("cap").unwrap_or(CAP_MS),
    };
    if let Some(at) = attempts_at.filter(|_| action.attempts == 0) {
        let message = "an action has at least one attempt";
        block.findings().add(at, Code::InvalidValue, message);
    }
    block.finish(&ACTION);
    action
}

/// Takes a command or an HTTP call.
fn call(block: &mut Fields<'_>, at: At, what: &str) -> ManagedCall {
    let (has_command, has_http) = (block.has("command"), block.has("http"));
    if has_command == has_http {
        let message = format!("{what} is a `command` or an `http` call");
        let code = match has_command {
            true => Code::ConflictingKeys,
            false => Code::MissingKey,
        };
        block.findings().add(at, code, message);
    }
    let environment_at = block.key_at("environment");
    let command_at = block.value_at("command").unwrap_or(at);
    let call = ManagedCall {
        command: block.texts("command").unwrap_or_default(),
        environment: block.text_map("environment"),
        http: request(block),
    };
    if has_command
        && call
            .command
            .first()
            .is_none_or(|program| program.trim().is_empty())
    {
        let message = "a command begins with a program";
        block.findings().add(command_at, Code::InvalidValue, message);
    }
    if let Some(at) = environment_at.filter(|_| has_http && !has_command) {
        let message = "an HTTP call has no `environment`";
        let hint = "what it is to send with it belongs under `headers`";
        block
            .findings()
            .add_with_hint(at, Code::ConflictingKeys, message, hint);
    }
    call
}

fn request(block: &mut Fields<'_>) -> Option<ManagedRequest> {
    let (map, at) = block.map("http")?;
    let mut http = Fields::new(map, at, block.findings());
    let url_at = http.value_at("url").unwrap_or(at);
    let request = ManagedRequest {
        url: http.text("url").unwrap_or_default(),
        method: http.text("method").unwrap_or_else(|| "POST".to_owned()),
        headers: http.text_map("headers"),
    };
    let is_known = ["http://", "https://", "{{"];
    if !is_known
        .iter()
        .any(|beginning| request.url.starts_with(beginning))
    {
        let message = "an HTTP call needs a `url` that begins with `http://` or `https://`";
        http.findings().add(url_at, Code::InvalidValue, message);
    }
    http.finish(&CALL);
    Some(request)
}
