//! The tools with their schemas, made from the table of paths once.

use std::sync::{Arc, LazyLock};

use rmcp::model::{Tool as Told, ToolAnnotations};
use serde_json::{Map, Value, json};
use watershed_api::http::routes::{Own, tools};
use watershed_api::http::tool_schema::{Argument, arguments, input, output};
use watershed_api::http::tools::{Effect, Tool};
use watershed_api::http::{Does, Route};

use super::super::caller::Caller;
use super::super::scope::Scope;

/// A tool, ready to be listed and called.
pub(super) struct Offered {
    /// The mark in the table.
    pub(super) tool: &'static Tool,
    /// The path that the tool is.
    pub(super) route: &'static Route,
    /// Arguments of the tool.
    pub(super) arguments: Vec<Argument>,
    /// The tool as clients are told of it.
    pub(super) told: Told,
}

static ALL: LazyLock<Vec<Offered>> =
    LazyLock::new(|| tools().map(|(tool, route)| offered(tool, route)).collect());

fn offered(tool: &'static Tool, route: &'static Route) -> Offered {
    let hints = ToolAnnotations::new()
        .read_only(tool.effect == Effect::Reads)
        .destructive(tool.effect == Effect::Replaces)
        .idempotent(tool.effect != Effect::Replaces)
        .open_world(false);
    let told = Told::new(tool.name, tool.description, Arc::new(input(route)))
        .with_raw_output_schema(Arc::new(output_of(route)))
        .with_annotations(hints);
    Offered {
        tool,
        route,
        arguments: arguments(route),
        told,
    }
}

fn output_of(route: &Route) -> Map<String, Value> {
    match is_file(route) {
        true => file_schema(),
        false => output(route),
    }
}

/// Returns the tools that the caller may call on some instance.
pub(super) fn of_caller(caller: &Caller) -> impl Iterator<Item = &'static Offered> {
    let scope = Scope::of(caller);
    ALL.iter().filter(move |offered| {
        let role = offered.route.role;
        caller.grants().iter().any(|(_, grant)| grant.allows(role)) && scope.check(offered.route).is_ok()
    })
}

/// Returns a tool that the caller may call; none for one that is not offered to the caller.
pub(super) fn find(caller: &Caller, name: &str) -> Option<&'static Offered> {
    of_caller(caller).find(|offered| offered.tool.name == name)
}

/// Returns true if the tool returns the text of a file.
pub(super) fn is_file(route: &Route) -> bool {
    matches!(route.does, Does::Own(Own::File))
}

/// Returns the output schema of a file's text.
pub(super) fn file_schema() -> Map<String, Value> {
    let schema = json!({ "type": "object", "properties": {
        "path": { "type": "string" }, "etag": { "type": "string" }, "text": { "type": "string" },
        "from_line": { "type": "integer" }, "lines": { "type": "integer" }, "truncated": { "type": "boolean" },
    } });
    schema.as_object().cloned().unwrap_or_default()
}
