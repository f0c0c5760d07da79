//! Data blocks: named ways to fetch rows, as partitions, state, tests, APIs, alerts and reports use them.

use std::collections::BTreeMap;

use watershed_proto::{DataResolver, MapValue, Value};

use super::metrics_query;
use crate::{
    diagnostics::{Code, Findings},
    draft::{Context, Purpose, RawRef, SqlBlock, SqlText, TextPlace, Uses, block::block, ref_to},
    resource::Kind,
    template::is_template,
    yaml::{Data, Fields, Node, keys::blocks, word},
};

blocks! {
    /// Keys of a data block, which fetches rows in one way.
    pub(crate) static DATA = "data" Refused {
        "sql": Sql, "A query.";
        "connector": Text, "The connector that the query runs on.";
        "metrics_sql": Sql, "A query over metrics views.";
        "metrics": Block(&METRICS), "A query over a metrics view, as a mapping.";
        "api": Name("api"), "An API.";
        "args": Map(&Any), "Arguments of the API.";
        "glob": Either(&[Text, Block(&GLOB)]), "Files that match a pattern.";
        "resource_status": Block(&RESOURCE_STATUS), "Resources by their status.";
        "ai": Any, "A question to an assistant.";
    }

    /// Keys of a query over a metrics view.
    pub(crate) static METRICS = "metrics_query" Kept {
        "metrics_view": Name("metrics_view"), "The metrics view.";
        "dimensions": List(&Any), "What rows are grouped by.";
        "measures": List(&Any), "What is computed.";
        "time_range": Any, "The range of time.";
        "comparison_time_range": Any, "The range of time that it is compared with.";
        "where": Any, "The rows that count.";
        "having": Any, "The groups that count.";
        "sort": List(&Any), "The order of the groups.";
        "limit": Count, "How many groups there are at most.";
        "offset": Count, "How many groups are left out.";
        "time_zone": Text, "The time zone.";
        "pivot_on": List(&Text), "Dimensions whose values become columns.";
        "spine": Any, "Groups that are there without rows.";
        "totals": Bool, "Whether a row of totals comes last.";
        "rows": Bool, "Whether single rows are asked for.";
        "use_display_names": Bool, "Whether columns have the names for people.";
    }

    /// Keys of the block `glob`.
    pub(crate) static GLOB = "glob" Kept {
        "path": Text, "The pattern.";
        "connector": Text, "The connector of the files.";
        "partition": Word(&PARTITIONS), "What one partition is.";
        "rollup_files": Bool, "Whether a row holds all files of its partition.";
        "transform_sql": Sql, "A query over the files, which are `{{ .table }}`.";
    }

    /// Keys of the block `resource_status`.
    pub(crate) static RESOURCE_STATUS = "resource_status" Kept {
        "where_error": Bool, "Only resources with an error.";
    }
}

/// The ways to fetch rows, by key.
pub(crate) const RESOLVERS: [&str; 7] = [
    "sql",
    "metrics_sql",
    "metrics",
    "api",
    "glob",
    "resource_status",
    "ai",
];

/// The sorts of partitions that files can be grouped into.
const PARTITIONS: [&str; 3] = ["file", "directory", "hive"];

/// A parsed data block: its resolver, and the SQL to parse later.
#[derive(Debug)]
pub(crate) struct DataBlock {
    pub(crate) resolver: DataResolver,
    /// The block's SQL, to be parsed for the tables that it reads.
    pub(crate) sql: Option<Sql>,
    /// The resources that the block names.
    pub(crate) refs: Vec<RawRef>,
}

/// The SQL of a data block.
#[derive(Debug)]
pub(crate) struct Sql {
    text: String,
    place: TextPlace,
    connector: String,
    /// The kind of resources that table names in the SQL refer to.
    tables: Kind,
}

impl Sql {
    /// Returns the SQL block that the engine's parser is to read.
    pub(crate) fn block(
        &self,
        purpose: Purpose,
        templating: bool,
        context: &Context<'_>,
        uses: &mut Uses,
        findings: &mut Findings,
    ) -> Option<SqlBlock> {
        let engine = self.tables == Kind::MetricsView || context.speaks_engine_sql(&self.connector);
        let how = (engine, templating);
        let made = block(purpose, &self.text, self.place, how, context, uses, findings)?;
        Some(SqlBlock {
            tables: self.tables,
            ..made
        })
    }
}

/// Takes the fields of a data block, which must have exactly one resolver. `sql` is SQL from a file of its own.
pub(crate) fn take(
    fields: &mut Fields<'_>,
    default_connector: &str,
    sql: Option<SqlText>,
) -> Option<DataBlock> {
    let is_there = |key: &&str| fields.has(key) || *key == "sql" && sql.is_some();
    let found: Vec<_> = RESOLVERS.into_iter().filter(is_there).collect();
    let [name] = found.as_slice() else {
        refuse(fields, &found);
        return None;
    };
    let connector = fields.text("connector");
    let node = match &sql {
        Some(_) => Node::new(fields.at(), Data::Null),
        None => fields.take(name)?.value,
    };
    let mut read = DataBlock {
        resolver: DataResolver {
            resolver: (*name).to_owned(),
            properties: None,
        },
        sql: None,
        refs: Vec::new(),
    };
    let mut properties = BTreeMap::new();
    match *name {
        "sql" => {
            let connector = connector.unwrap_or_else(|| default_connector.to_owned());
            let (text, place) = match sql {
                Some(sql) => (sql.text, sql.place),
                None => text_of("sql", &node, fields),
            };
            properties.insert("connector".to_owned(), Value::from(connector.as_str()));
            properties.insert("sql".to_owned(), Value::from(text.as_str()));
            read.sql = Some(Sql {
                text,
                place,
                connector,
                tables: Kind::Model,
            });
        }
        "metrics_sql" => {
            let (text, place) = text_of("metrics_sql", &node, fields);
            properties.insert("sql".to_owned(), Value::from(text.as_str()));
            let connector = String::new();
            read.sql = Some(Sql {
                text,
                place,
                connector,
                tables: Kind::MetricsView,
            });
        }
        "metrics" => {
            read.refs.extend(metrics_view(&node, fields));
            if !read.refs.is_empty() {
                metrics_query::check(&node, fields.findings());
            }
            properties.extend(node.to_value().as_map().cloned().unwrap_or_default());
        }
        "api" => {
            let api = node.scalar_text().unwrap_or_default();
            read.refs.push(ref_to(Kind::Api, &api, Some(node.at)));
            properties.insert("api".to_owned(), node.to_value());
            if let Some((arguments, at)) = fields.map("args") {
                properties.insert("args".to_owned(), Node::new(at, Data::Map(arguments)).to_value());
            }
        }
        "glob" if node.as_str().is_some() => {
            properties.insert("path".to_owned(), node.to_value());
            properties.extend(connector.map(|connector| ("connector".to_owned(), Value::from(connector))));
        }
        "glob" => {
            check_glob(&node, fields);
            properties.extend(node.to_value().as_map().cloned().unwrap_or_default());
        }
        _ => properties.extend(node.to_value().as_map().cloned().unwrap_or_default()),
    }
    read.resolver.properties = Some(MapValue { fields: properties });
    Some(read)
}

/// Returns a text and its place; reports a value that is no text.
fn text_of(key: &str, node: &Node, fields: &mut Fields<'_>) -> (String, TextPlace) {
    let text = node.scalar_text();
    if text.is_none() {
        let message = format!("\"{key}\" takes text, not {}", node.data.type_name());
        fields.findings().add(node.at, Code::WrongType, message);
    }
    (
        text.unwrap_or_default().trim().to_owned(),
        TextPlace::from_node(node),
    )
}

/// Reports a data block with no resolver or with several, and drops their keys.
fn refuse(fields: &mut Fields<'_>, found: &[&str]) {
    let at = fields.at();
    let (code, message, hint) = match found {
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
}

/// Returns the ref of a query over a metrics view.
fn metrics_view(node: &Node, fields: &mut Fields<'_>) -> Option<RawRef> {
    let Data::Map(map) = &node.data else {
        let message = format!("\"metrics\" takes a mapping, not {}", node.data.type_name());
        fields.findings().add(node.at, Code::WrongType, message);
        return None;
    };
    let named = map.get("metrics_view").map(|entry| &entry.value);
    let Some((named, name)) = named.and_then(|node| Some((node, node.scalar_text()?))) else {
        let message = "a metrics query needs a `metrics_view`";
        fields.findings().add(node.at, Code::MissingKey, message);
        return None;
    };
    // A name that a template makes is known in a run alone.
    (!is_template(&name)).then(|| ref_to(Kind::MetricsView, &name, Some(named.at)))
}

fn check_glob(node: &Node, fields: &mut Fields<'_>) {
    let Data::Map(map) = &node.data else {
        let message = format!(
            "\"glob\" takes a pattern or a mapping, not {}",
            node.data.type_name()
        );
        fields.findings().add(node.at, Code::WrongType, message);
        return;
    };
    let mut glob = Fields::new(map.clone(), node.at, fields.findings());
    if glob.text("path").is_none() {
        glob.findings()
            .add(node.at, Code::MissingKey, "a glob needs a `path`");
    }
    word(&mut glob, "partition", &PARTITIONS);
    glob.bool("rollup_files");
    for key in ["connector", "transform_sql"] {
        glob.text(key);
    }
    glob.finish(&GLOB);
}
