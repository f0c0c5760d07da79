//! The guard: the check of a caller's statement that it reads outputs, and nothing else.
//!
//! The check is an allow list over the engine's parse tree. Each object of the tree needs a [shape](shapes) that is listed,
//! with keys that are listed; tables, functions and types need to be listed too. What the guard does not know is refused,
//! so that a new part of the engine's language is no way around it.
//!
//! Invariants:
//! 1. A name counts as a CTE only where the engine resolves it as one. Names are compared as the engine compares them:
//!    letters of ASCII alone have two cases.
//! 2. A function counts as built in only if no macro of the project has its name, so qualifiers need no look.
//! 3. A table or CTE whose name the engine could take for a file is refused, even if an output has the name.

mod shapes;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};
use watershed_dialect::{ENGINE, Words as _};

use self::shapes::{Part, Parts};
use super::walk::{ctes, read, text};
use super::{SqlError, Tree};
use crate::text::names::nearest;

/// The names that a caller's statement may use.
#[derive(Debug, Clone, Copy)]
pub struct Allowed<'a> {
    /// Tables and views of the project's outputs, in lower case of ASCII.
    pub outputs: &'a BTreeSet<String>,
    /// Built-in functions that read and change nothing, in lower case.
    pub functions: &'a BTreeSet<String>,
    /// Functions and macros that are not built in, in lower case; they are refused also if a built-in one has the name.
    pub macros: &'a BTreeSet<String>,
    /// Built-in types, in lower case.
    pub types: &'a BTreeSet<String>,
    /// The database of the outputs, by which they may be qualified.
    pub database: &'a str,
}

/// A refusal of the guard: the first part of a statement that is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("callers may not use {what} in a statement")]
pub struct Refused {
    /// The part, in words.
    pub what: String,
    /// Offset of the part in the statement, in bytes; none if the place is unknown.
    pub at: Option<usize>,
    /// Suggested fix; none if none is known.
    pub hint: Option<Cow<'static, str>>,
}

impl Refused {
    fn new(what: impl Into<String>, at: Option<usize>) -> Self {
        Self {
            what: what.into(),
            at,
            hint: None,
        }
    }

    fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

const ONE_SELECT: &str = "ask with one SELECT, DESCRIBE, SUMMARIZE or SHOW of an output";
const OUTPUTS: &str = "`SHOW TABLES` lists the outputs, which may be read";
const SIMPLER: &str = "write the statement in a simpler way";

/// Table functions that read nothing.
const TABLE_FUNCTIONS: [&str; 3] = ["generate_series", "range", "unnest"];

/// The largest statement, in bytes of its tree, that is checked: far above any that is written by hand.
const LARGEST: usize = 16 << 20;

/// A list that a caller asks for, and that is made from the outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// The names of the outputs, for `SHOW TABLES`.
    Names,
    /// The outputs with their columns, for `SHOW ALL TABLES`.
    Columns,
}

/// Returns the list that a statement asks for, which is made from the outputs; none for other statements.
pub fn listing(tree: &Tree) -> Option<Listing> {
    let document = read(tree.document())?;
    let shown = document.pointer("/statements/0/node/from_table");
    let shown = shown.and_then(Value::as_object)?;
    let is_bare = text(shown, "type") == "SHOW_REF"
        && shown.get("query").is_none_or(Value::is_null)
        && text(shown, "schema_name").is_empty()
        && text(shown, "catalog_name").is_empty();
    match text(shown, "table_name") {
        "\"tables\"" if is_bare => Some(Listing::Names),
        "__show_tables_expanded" if is_bare => Some(Listing::Columns),
        _ => None,
    }
}

/// Checks that a statement reads outputs and nothing else, by the engine's answer about it.
///
/// # Errors
/// [`Refused`], with the first part that is not allowed; also when the statement can't be parsed.
pub fn guard(answer: &Result<Tree, SqlError>, allowed: Allowed<'_>) -> Result<(), Refused> {
    let tree = match answer {
        Ok(tree) => tree,
        Err(SqlError::Syntax { message, .. }) => {
            return Err(Refused::new(format!("a text that is no SQL ({message})"), None));
        }
        Err(SqlError::NotSerialisable { .. } | SqlError::Failed { .. }) => {
            return Err(Refused::new("anything but one SELECT", None).hint(ONE_SELECT));
        }
    };
    let document = Some(tree.document()).filter(|document| document.len() <= LARGEST);
    let deep = || Refused::new("such depth of nesting", None).hint(SIMPLER);
    let document = document.and_then(read).ok_or_else(deep)?;
    let statements = document.get("statements").and_then(Value::as_array);
    match statements.map(Vec::as_slice) {
        Some([Value::Object(statement)]) => {
            let mut walk = Walk {
                allowed,
                ctes: Vec::new(),
                at: None,
            };
            walk.parts(statement, shapes::STATEMENT)
        }
        _ => Err(Refused::new("anything but one SELECT", None).hint(ONE_SELECT)),
    }
}

/// The walk over a tree.
struct Walk<'a> {
    allowed: Allowed<'a>,
    /// Names of the visible CTEs, in lower case of ASCII, innermost last.
    ctes: Vec<String>,
    /// Offset of the innermost part that has one.
    at: Option<usize>,
}

impl Walk<'_> {
    fn refuse<T>(&self, what: impl Into<String>) -> Result<T, Refused> {
        Err(Refused::new(what, self.at))
    }

    fn unknown<T>(&self, what: &str) -> Result<T, Refused> {
        Err(Refused::new(format!("`{what}`, which the service can't judge,"), self.at).hint(SIMPLER))
    }

    /// Checks values of a part: an object, or lists of objects.
    fn value(&mut self, value: &Value, part: Part) -> Result<(), Refused> {
        match (value, part) {
            (Value::Null, _) | (_, Part::Constant) => Ok(()),
            (Value::Array(values), part) => values.iter().try_for_each(|value| self.value(value, part)),
            (Value::Object(object), Part::Node) => self.node(object),
            (Value::Object(object), Part::Type) => self.r#type(object),
            (Value::Object(object), Part::Of(parts)) => self.parts(object, parts),
            (Value::Object(_), Part::Plain) => self.unknown("a nested part"),
            (_, Part::Plain) => Ok(()),
            (Value::String(plain), Part::Empty) if plain.is_empty() => Ok(()),
            (_, Part::Empty) => self.refuse("earlier versions, types of a PIVOT or SHOW of a place"),
            (_, _) => self.unknown("a value in place of a part"),
        }
    }

    /// Checks the keys of an object: all are listed, and each value fits its part.
    fn parts(&mut self, object: &Map<String, Value>, parts: Parts) -> Result<(), Refused> {
        let is_own = |key: &str| parts.iter().any(|(name, _)| *name == key);
        let is_known = |key: &str| is_own(key) || shapes::COMMON.iter().any(|(name, _)| *name == key);
        if let Some(key) = object.keys().find(|key| *key != "cte_map" && !is_known(key)) {
            return self.unknown(key);
        }
        // In the order of the shape, which is that of the text: the first part is told.
        let common = shapes::COMMON.iter().filter(|(name, _)| !is_own(name));
        for (name, part) in parts.iter().chain(common).filter(|(name, _)| *name != "cte_map") {
            if let Some(value) = object.get(*name) {
                self.value(value, *part)?;
            }
        }
        match object.contains_key("cte_map") {
            true if !parts.iter().any(|(name, _)| *name == "cte_map") => self.unknown("cte_map"),
            _ => Ok(()),
        }
    }

    /// Checks an object that names its own shape.
    fn node(&mut self, object: &Map<String, Value>) -> Result<(), Refused> {
        let (before, outside) = (self.at, self.ctes.len());
        let location = object.get("query_location").and_then(Value::as_u64);
        self.at = location
            .filter(|at| *at < u64::from(u32::MAX))
            .and_then(|at| usize::try_from(at).ok())
            .or(before);
        let checked = self.node_here(object);
        self.ctes.truncate(outside);
        if checked.is_ok() {
            self.at = before;
        }
        checked
    }

    fn node_here(&mut self, object: &Map<String, Value>) -> Result<(), Refused> {
        let class = text(object, "class");
        let kind = if class.is_empty() {
            text(object, "type")
        } else {
            class
        };
        let Some(parts) = shapes::shape(kind) else {
            return self.unknown(kind);
        };
        match kind {
            "BASE_TABLE" => self.table(object)?,
            "TABLE_FUNCTION" => return self.table_function(object, parts),
            "FUNCTION" | "WINDOW" => self.function(object)?,
            "COLUMN_REF" => self.column(object)?,
            "SHOW_REF" => self.shown(object)?,
            "RECURSIVE_CTE_NODE" => return self.recursive(object, parts),
            _ => {}
        }
        self.with(object)?;
        self.parts(object, parts)
    }

    /// Checks the CTEs of a node, each with the previous ones visible, and makes all of them visible.
    fn with(&mut self, object: &Map<String, Value>) -> Result<(), Refused> {
        let Some(map) = object.get("cte_map") else {
            return Ok(());
        };
        let entries = map.get("map").and_then(Value::as_array).map_or(0, Vec::len);
        let is_known = map.as_object().is_some_and(|map| map.len() == 1);
        if !is_known || ctes(object).count() != entries {
            return self.unknown("WITH");
        }
        for (name, value) in ctes(object) {
            let Some(value) = value.as_object() else {
                return self.unknown("WITH");
            };
            self.not_a_file(name)?;
            self.parts(value, shapes::CTE)?;
            self.ctes.push(name.to_ascii_lowercase());
        }
        Ok(())
    }

    /// Checks a recursive CTE, whose name means itself in its second half alone.
    fn recursive(&mut self, object: &Map<String, Value>, parts: Parts) -> Result<(), Refused> {
        self.with(object)?;
        let name = text(object, "cte_name").to_ascii_lowercase();
        for (key, value) in object.iter().filter(|(key, _)| *key != "right") {
            let one: Map<String, Value> = std::iter::once((key.clone(), value.clone())).collect();
            self.parts(&one, parts)?;
        }
        self.ctes.push(name);
        object
            .get("right")
            .map_or(Ok(()), |right| self.value(right, Part::Node))
    }

    fn table(&mut self, object: &Map<String, Value>) -> Result<(), Refused> {
        let (catalog, schema) = (text(object, "catalog_name"), text(object, "schema_name"));
        let name = text(object, "table_name");
        self.not_a_file(name)?;
        let lower = name.to_ascii_lowercase();
        let is_plain = catalog.is_empty() && schema.is_empty();
        if is_plain && self.ctes.contains(&lower) {
            return Ok(());
        }
        let is_of_project = (catalog.is_empty() || catalog.eq_ignore_ascii_case(self.allowed.database))
            && (is_plain || schema.eq_ignore_ascii_case("main"));
        if is_of_project && self.allowed.outputs.contains(&lower) {
            return Ok(());
        }
        let parts = [catalog, schema, name];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let what = format!("the table `{}`, which is no output,", parts.join("."));
        let refused = Refused::new(what, self.at);
        let near = nearest(&lower, self.allowed.outputs.iter().map(String::as_str));
        Err(match near.filter(|_| is_of_project) {
            Some(near) => refused.hint(format!("did you mean `{near}`? {OUTPUTS}")),
            None => refused.hint(OUTPUTS),
        })
    }

    /// Refuses a name that the engine could take for a file.
    fn not_a_file(&self, name: &str) -> Result<(), Refused> {
        let is_path = name.contains(['/', '\\', ':']) || ENGINE.names_file(name);
        match is_path {
            true => self.refuse(format!("the file `{name}`")),
            false => Ok(()),
        }
    }

    fn table_function(&mut self, object: &Map<String, Value>, parts: Parts) -> Result<(), Refused> {
        let function = object.get("function").and_then(Value::as_object);
        let Some(function) = function.filter(|function| text(function, "class") == "FUNCTION") else {
            return self.unknown("a table function");
        };
        let name = text(function, "function_name").to_ascii_lowercase();
        if !TABLE_FUNCTIONS.contains(&name.as_str()) || self.allowed.macros.contains(&name) {
            return self.refuse(format!("the table function `{name}`"));
        }
        // Its name was checked as that of a table function.
        self.parts(function, shapes::FUNCTION)?;
        let rest = object.iter().filter(|(key, _)| *key != "function");
        let rest: Map<String, Value> = rest.map(|(key, value)| (key.clone(), value.clone())).collect();
        self.parts(&rest, parts)
    }

    fn function(&self, object: &Map<String, Value>) -> Result<(), Refused> {
        let name = text(object, "function_name").to_ascii_lowercase();
        if self.allowed.macros.contains(&name) {
            return self.refuse(format!("the project's macro `{name}`"));
        }
        match self.allowed.functions.contains(&name) {
            true => Ok(()),
            false => self.refuse(format!("the function `{name}`")),
        }
    }

    /// Refuses a name without brackets for which the engine would call a macro of the project.
    fn column(&self, object: &Map<String, Value>) -> Result<(), Refused> {
        let names = object.get("column_names").and_then(Value::as_array);
        let Some([Value::String(name)]) = names.map(Vec::as_slice) else {
            return Ok(());
        };
        match ENGINE.is_computed(name) && self.allowed.macros.contains(&name.to_ascii_lowercase()) {
            true => self.refuse(format!("the project's macro `{name}`")),
            false => Ok(()),
        }
    }

    fn shown(&self, object: &Map<String, Value>) -> Result<(), Refused> {
        let has_query = object.get("query").is_some_and(Value::is_object);
        let is_known = matches!(text(object, "show_type"), "DESCRIBE" | "SUMMARY");
        match has_query && is_known && text(object, "table_name").is_empty() {
            true => Ok(()),
            false => Err(Refused::new("SHOW of anything but an output", self.at).hint(ONE_SELECT)),
        }
    }

    /// Checks a type: the engine's own, or one made of them.
    fn r#type(&mut self, object: &Map<String, Value>) -> Result<(), Refused> {
        let info = object.get("type_info").and_then(Value::as_object);
        let name = match info.map(|info| text(info, "type")) {
            Some("UNBOUND_TYPE_INFO") => info.map_or("", |info| text(info, "name")),
            _ => text(object, "id"),
        };
        let is_qualified = info.is_some_and(|info| {
            ["catalog", "schema"].iter().any(|key| {
                let part = text(info, key);
                !part.is_empty() && !part.eq_ignore_ascii_case("system")
            })
        });
        let is_own = self.allowed.types.contains(&name.to_ascii_lowercase());
        if is_qualified || !is_own {
            return self.refuse(format!("the type `{name}`, which is not built in,"));
        }
        self.parts(object, shapes::TYPE)
    }
}
