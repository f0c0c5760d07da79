//! The deprecated block `query` of alerts and reports: a query of the runtime's API by name.

use watershed_proto::MapValue;

use crate::{
    diagnostics::{Code, Role},
    draft::{RawRef, ref_to},
    resource::Kind,
    text::Text,
    yaml::{self, Data, Fields, Node, keys::blocks},
};

blocks! {
    /// Keys of the block `query`.
    pub(crate) static QUERY = "query" Refused {
        "name": Text, "The query's name.";
        "args": Map(&Any), "Its arguments.";
        "args_json": Text, "Its arguments, as JSON.";
        "for": Map(&Any), "The user in whose name the rows are read.";
    }
}

/// A query of the runtime's API by name.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) name: String,
    pub(crate) args: Option<MapValue>,
    /// The block `for` inside the query, if there is one.
    pub(crate) run_as: Option<Node>,
    pub(crate) refs: Vec<RawRef>,
}

/// Takes the block `query`; returns none if it is missing or has no name.
pub(crate) fn take(fields: &mut Fields<'_>) -> Option<Query> {
    let (map, at) = fields.map("query")?;
    let mut block = Fields::new(map, at, fields.findings());
    let Some(name) = block.text("name").filter(|name| !name.is_empty()) else {
        block
            .findings()
            .add(at, Code::MissingKey, "a query needs a `name`");
        return None;
    };
    if let (true, Some(at)) = (block.has("args"), block.key_at("args_json")) {
        let message = "a query has `args` or `args_json`, not both";
        block.findings().add(at, Code::ConflictingKeys, message);
    }
    let view_at = block
        .value_at("args")
        .or(block.value_at("args_json"))
        .unwrap_or(at);
    let args = block.value_map("args").or_else(|| json(&mut block));
    let run_as = block.map("for").map(|(map, at)| Node::new(at, Data::Map(map)));
    block.finish(&QUERY);
    let view = args.as_ref().and_then(|args| {
        [
            "metrics_view",
            "metrics_view_name",
            "metricsView",
            "metricsViewName",
        ]
        .into_iter()
        .find_map(|key| args.str(key))
    });
    let refs = view.map(|name| ref_to(Kind::MetricsView, name, Some(view_at)));
    Some(Query {
        name,
        run_as,
        refs: refs.into_iter().collect(),
        args,
    })
}

/// Takes `args_json` as a mapping.
fn json(block: &mut Fields<'_>) -> Option<MapValue> {
    let node = block.text_node("args_json")?;
    let text = node.scalar_text()?;
    // JSON is YAML too.
    match yaml::load(&Text::new(&text), Role::Yaml).map(|loaded| loaded.root.to_value()) {
        Ok(value) if value.as_map().is_some() => Some(MapValue {
            fields: value.as_map().cloned().unwrap_or_default(),
        }),
        _ => {
            let message = "\"args_json\" takes a mapping as JSON";
            block.findings().add(node.at, Code::InvalidValue, message);
            None
        }
    }
}

/// Reports a resource with neither `data` nor `query`, or with both.
pub(crate) fn check_one(what: &str, fields: &mut Fields<'_>, has_data: bool, has_query: bool) {
    let at = fields.at();
    match (has_data, has_query) {
        (true, true) => {
            let message = "rows come from `data` or from `query`, not from both";
            fields.findings().add(at, Code::ConflictingKeys, message);
        }
        // What is wrong with a block that is there has been reported.
        (false, false) if !fields.findings().has_errors() => {
            let hint = "such as `data: {sql: SELECT ...}`";
            fields
                .findings()
                .add_with_hint(at, Code::MissingKey, format!("{what} needs `data`"), hint);
        }
        _ => {}
    }
}
