//! The inputs of a view besides the lake: readers elsewhere could not open them.

use std::collections::BTreeSet;

use serde_json::Value as Json;
use watershed_dialect::{Dialect as _, DuckDb};

use super::definitions::{Definition, definitions};
use super::{ALIAS, Lake, quoted, run, text};
use crate::duckdb::sys::{Connection, RawError};

/// Beginnings and ends of functions that read files or other systems.
const READERS: [&str; 4] = ["read_", "glob", "sniff_", "query"];
const SCANS: &str = "_scan";

/// Returns an input of a statement that lies outside the lake, in the words of the statement; none if all lie in it.
pub(in crate::duckdb) fn foreign_input(
    lake: &Lake,
    connection: &Connection,
    sql: &str,
) -> Result<Option<String>, RawError> {
    let mut inputs = inputs_of(connection, sql)?;
    let definitions = match inputs.iter().any(|input| input.is_called) {
        true => definitions(lake, connection)?,
        false => Vec::new(),
    };
    let others = lake.other_databases(connection)?;
    let others: Vec<String> = others.iter().map(|name| DuckDb.fold(name)).collect();
    let mut known = BTreeSet::new();
    while let Some(input) = inputs.pop() {
        let body = match input.is_called {
            true => input.body(&definitions),
            false => None,
        };
        if let Some(body) = body {
            // A macro that is used in several places is looked at once.
            if known.insert(DuckDb.fold(&input.name)) {
                let within = inputs_of(connection, &body)?.into_iter();
                let through = input.through.unwrap_or(input.name);
                inputs.extend(within.map(|one| Input {
                    through: Some(through.clone()),
                    ..one
                }));
            }
        } else if input.is_outside(&others) && !input.is_file_in_name_only(connection)? {
            return Ok(Some(input.through.unwrap_or(input.name)));
        }
    }
    Ok(None)
}

/// Returns the tables and functions of a statement; none of one that can't be read.
fn inputs_of(connection: &Connection, sql: &str) -> Result<Vec<Input>, RawError> {
    let sql = format!("SELECT json_serialize_sql({})::VARCHAR", quoted(sql));
    let tree = run(connection, &sql)?.into_iter().flatten().next();
    let tree: Option<Json> = tree
        .and_then(text)
        .and_then(|tree| serde_json::from_str(&tree).ok());
    let mut inputs = Vec::new();
    tree.iter().for_each(|tree| collect(tree, &mut inputs));
    Ok(inputs)
}

/// An input of a statement.
struct Input {
    /// The input, as the statement names it.
    name: String,
    /// Parts before the name of a table: catalog and schema.
    path: Vec<String>,
    /// True for a table function.
    is_function: bool,
    /// True for anything that may be a macro.
    is_called: bool,
    /// The macro of the statement through which it is read; none for what the statement reads itself.
    through: Option<String>,
}

impl Input {
    /// Returns a statement with the body of the macro of this name; none if there is none.
    fn body(&self, definitions: &[Definition]) -> Option<String> {
        let is_it = |one: &&Definition| DuckDb.fold(&one.name) == DuckDb.fold(&self.name);
        let found = definitions.iter().find(is_it)?;
        Some(match found.is_expression {
            true => format!("SELECT {}", found.sql),
            false => found.sql.clone(),
        })
    }

    fn is_outside(&self, others: &[String]) -> bool {
        if self.is_called && !self.is_function {
            return false;
        }
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
                        is_called: false,
                        through: None,
                    });
                }
                "TABLE_FUNCTION" => {
                    let function = fields.get("function").and_then(|it| it.get("function_name"));
                    inputs.push(Input {
                        name: function.and_then(Json::as_str).unwrap_or_default().to_owned(),
                        path: Vec::new(),
                        is_function: true,
                        is_called: true,
                        through: None,
                    });
                }
                "FUNCTION" if fields.get("is_operator") != Some(&Json::Bool(true)) => inputs.push(Input {
                    name: part("function_name").to_owned(),
                    path: Vec::new(),
                    is_function: false,
                    is_called: true,
                    through: None,
                }),
                _ => {}
            }
            fields.values().for_each(|value| collect(value, inputs));
        }
        _ => {}
    }
}
