//! Data blocks: named ways to fetch rows, as partitions, state and tests use them.

use std::collections::BTreeMap;

use watershed_proto::{DataResolver, MapValue, Value};

use crate::{
    diagnostics::Code,
    yaml::{Data, Fields, Node},
};

/// The ways there are, by key.
pub(crate) const RESOLVERS: [&str; 7] = [
    "sql",
    "metrics_sql",
    "metrics",
    "api",
    "glob",
    "resource_status",
    "ai",
];

/// A data block that was read: what the spec holds, and the SQL's node for its refs and places.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) resolver: DataResolver,
    pub(crate) sql: Option<Node>,
}

/// Takes the fields of a data block; exactly one resolver is to be there.
pub(crate) fn take(fields: &mut Fields<'_>, default_connector: &str) -> Option<Block> {
    let found: Vec<_> = RESOLVERS.into_iter().filter(|key| fields.has(key)).collect();
    let at = fields.at();
    let [name] = found.as_slice() else {
        let (code, message, hint) = match found.as_slice() {
            [] => (
                Code::MissingKey,
                "the data block does not say how to fetch rows".to_owned(),
                "add `sql: ...`",
            ),
            several => (
                Code::ConflictingKeys,
                format!(
                    "the data block fetches rows in several ways: `{}`",
                    several.join("`, `")
                ),
                "keep one of them",
            ),
        };
        fields.findings().add_with_hint(at, code, message, hint);
        RESOLVERS
            .iter()
            .chain(&["connector", "args"])
            .for_each(|key| drop(fields.take(key)));
        return None;
    };
    let connector = fields.text("connector");
    let node = fields.take(name)?.value;
    let mut properties = BTreeMap::new();
    match *name {
        "sql" => {
            let connector = connector.unwrap_or_else(|| default_connector.to_owned());
            properties.insert("connector".to_owned(), Value::from(connector));
            let sql = node.scalar_text().unwrap_or_default();
            properties.insert("sql".to_owned(), Value::from(sql.trim()));
        }
        "api" => {
            properties.insert("api".to_owned(), node.to_value());
            if let Some((arguments, at)) = fields.map("args") {
                properties.insert("args".to_owned(), Node::new(at, Data::Map(arguments)).to_value());
            }
        }
        "glob" if node.as_str().is_some() => {
            properties.insert("path".to_owned(), node.to_value());
            properties.extend(connector.map(|connector| ("connector".to_owned(), Value::from(connector))));
        }
        "metrics_sql" => {
            properties.insert("sql".to_owned(), node.to_value());
        }
        _ => properties.extend(node.to_value().as_map().cloned().unwrap_or_default()),
    }
    let resolver = DataResolver {
        resolver: (*name).to_owned(),
        properties: Some(MapValue { fields: properties }),
    };
    let sql = (*name == "sql").then_some(node);
    Some(Block { resolver, sql })
}
