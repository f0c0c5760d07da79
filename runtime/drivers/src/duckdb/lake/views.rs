//! The inputs of a view besides the lake: readers elsewhere could not open them.

use serde_json::Value as Json;
use watershed_dialect::{Dialect as _, DuckDb};

use super::{ALIAS, Lake, quoted, run, text};
use crate::duckdb::sys::{Connection, RawError};

/// Beginnings and ends of functions that read files or other systems.
const READERS: [&str; 4] = ["read_", "glob", "sniff_", "query_table"];
const SCANS: &str = "_scan";

/// Returns an input of a statement that lies outside the lake, in the words of the statement; none if all lie in it.
pub(in crate::duckdb) fn foreign_input(
    lake: &Lake,
    connection: &Connection,
    sql: &str,
) -> Result<Option<String>, RawError> {
    let tree = run(
        connection,
        &format!("SELECT json_serialize_sql({})::VARCHAR", quoted(sql)),
    )?;
    let tree = tree.into_iter().flatten().next();
    let Some(tree) = tree
        .and_then(text)
        .and_then(|tree| serde_json::from_str(&tree).ok())
    else {
        return Ok(None);
    };
    let tree: Json = tree;
    let others = lake.other_databases(connection)?;
    let others: Vec<String> = others.iter().map(|name| DuckDb.fold(name)).collect();
    let mut inputs = Vec::new();
    collect(&tree, &mut inputs);
    for input in inputs {
        if input.is_outside(&others) && !input.is_file_in_name_only(connection)? {
            return Ok(Some(input.name));
        }
    }
    Ok(None)
}

/// An input of a statement.
struct Input {
    /// The input, as the statement names it.
    name: String,
    /// Parts before the name of a table: catalog and schema.
    path: Vec<String>,
    /// True for a table function.
    is_function: bool,
}

impl Input {
    fn is_outside(&self, others: &[String]) -> bool {
        if self.is_function {
            let name = DuckDb.fold(&self.name);
            return READERS.iter().any(|start| name.starts_with(start)) || name.ends_with(SCANS);
        }
        let of_another = |part: &String| {
            let part = DuckDb.fold(part);
            part != ALIAS && others.contains(&part)
        };
        self.path.iter().any(of_another) || self.is_file()
    }

    /// Returns true if the engine takes the name for that of a file, unless a table has it.
    fn is_file(&self) -> bool {
        self.path.is_empty() && self.name.contains(['.', '/'])
    }

    /// Returns true if a table has a name that looks like that of a file.
    fn is_file_in_name_only(&self, connection: &Connection) -> Result<bool, RawError> {
        if !self.is_file() {
            return Ok(false);
        }
        let described = run(connection, &format!("DESCRIBE main.{}", super::name(&self.name)));
        Ok(described.is_ok())
    }
}

/// Collects the tables and table functions of a syntax tree.
fn collect(tree: &Json, inputs: &mut Vec<Input>) {
    match tree {
        Json::Array(items) => items.iter().for_each(|item| collect(item, inputs)),
        Json::Object(fields) => {
            let part = |field: &str| fields.get(field).and_then(Json::as_str).unwrap_or_default();
            match part("type") {
                "BASE_TABLE" => {
                    let path = ["catalog_name", "schema_name"].map(part).into_iter();
                    let path: Vec<String> = path.filter(|part| !part.is_empty()).map(str::to_owned).collect();
                    inputs.push(Input {
                        name: part("table_name").to_owned(),
                        path,
                        is_function: false,
                    });
                }
                "TABLE_FUNCTION" => {
                    let function = fields.get("function").and_then(|it| it.get("function_name"));
                    inputs.push(Input {
                        name: function.and_then(Json::as_str).unwrap_or_default().to_owned(),
                        path: Vec::new(),
                        is_function: true,
                    });
                }
                _ => {}
            }
            fields.values().for_each(|value| collect(value, inputs));
        }
        _ => {}
    }
}
