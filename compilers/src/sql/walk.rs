//! Tables, files and meaning of a statement, read from the engine's tree.
//!
//! The fingerprint covers the whole tree but for positions. Where it names a table that is no CTE, or qualifies a
//! column with such a table's unaliased name, a number stands instead, so that a rename upstream changes nothing.
//! In an expression without an alias the names stay: they are part of the column's name.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use watershed_dialect::{ENGINE, TableFunction, Words as _};

use super::{
    Tree,
    analysis::{Outcome, SqlAnalysis, TableHole, TableUse},
    digest::digest,
    files::is_local,
    scan,
};

/// The depth to which a tree is walked, which bounds the stack; deeper statements are scanned by tokens.
const MAX_DEPTH: usize = 400;

/// Analyses a tree; none if it is nested too deeply or invalid.
pub(super) fn analyse(tree: &Tree) -> Option<SqlAnalysis> {
    let document = read(tree.document())?;
    let statements = document.get("statements")?.as_array()?;
    let mut names = Names::default();
    names.value(&document, &mut Vec::new());
    let mut printer = Printer {
        hasher: blake3::Hasher::new(),
        names: &names,
        keep_names: 0,
    };
    printer.hasher.update(b"tree\n");
    printer.value(&document, &mut Vec::new());
    let fingerprint = digest(&printer.hasher).to_vec();
    Some(SqlAnalysis {
        outcome: Outcome::Parsed.into(),
        message: String::new(),
        error_at: None,
        statements: u32::try_from(statements.len()).unwrap_or(u32::MAX),
        fingerprint,
        tables: names.tables,
        files: names.files,
        names: names.names.into_iter().collect(),
        untold: names.untold,
    })
}

/// Reads a tree; none if it is nested too deeply or invalid.
pub(super) fn read(document: &str) -> Option<Value> {
    if depth(document) > MAX_DEPTH {
        return None;
    }
    let mut reader = serde_json::Deserializer::from_str(document);
    reader.disable_recursion_limit();
    serde::Deserialize::deserialize(&mut reader).ok()
}

fn depth(document: &str) -> usize {
    let (mut deepest, mut depth, mut quoted, mut escaped) = (0_usize, 0_usize, false, false);
    for byte in document.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Returns the text under a key; empty if there is none.
pub(super) fn text<'a>(object: &'a Map<String, Value>, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the CTEs of a node, in order, as name and value with the query.
pub(super) fn ctes(object: &Map<String, Value>) -> impl Iterator<Item = (&str, &Value)> {
    let entries = object
        .get("cte_map")
        .and_then(|map| map.get("map"))
        .and_then(Value::as_array);
    entries
        .into_iter()
        .flatten()
        .filter_map(|entry| Some((entry.get("key")?.as_str()?, entry.get("value")?)))
}

/// Returns true if a CTE of a serialized statement is recursive.
fn is_recursive(value: &Value) -> bool {
    let node = value.get("query").and_then(|query| query.get("node"));
    node.and_then(|node| node.get("type")).and_then(Value::as_str) == Some("RECURSIVE_CTE_NODE")
}

/// Names of visible CTEs, in lower case, innermost last.
type Scope = Vec<String>;

/// Visits the CTEs of a node, each with the previous ones visible, then the rest of the node with all of them visible.
fn in_scope(
    object: &Map<String, Value>,
    scope: &mut Scope,
    mut cte: impl FnMut(&str, &Value, &mut Scope),
    mut rest: impl FnMut(&str, &Value, &mut Scope),
) {
    let outside = scope.len();
    for (name, value) in ctes(object) {
        let lower = name.to_lowercase();
        let recursive = is_recursive(value);
        if recursive {
            scope.push(lower.clone());
        }
        cte(name, value, scope);
        if !recursive {
            scope.push(lower);
        }
    }
    for (key, value) in object.iter().filter(|(key, _)| *key != "cte_map") {
        rest(key, value, scope);
    }
    scope.truncate(outside);
}

fn is_base_table(object: &Map<String, Value>) -> bool {
    text(object, "type") == "BASE_TABLE" && object.contains_key("table_name")
}

fn is_shadowed(object: &Map<String, Value>, scope: &Scope) -> bool {
    let unqualified = text(object, "schema_name").is_empty() && text(object, "catalog_name").is_empty();
    unqualified && scope.contains(&text(object, "table_name").to_lowercase())
}

fn is_foreign(object: &Map<String, Value>) -> bool {
    let schema = text(object, "schema_name");
    let catalog = text(object, "catalog_name");
    !(schema.eq_ignore_ascii_case("main") || schema.is_empty() && catalog.is_empty())
}

/// The first pass over a tree, which collects what the statement reads.
#[derive(Default)]
struct Names {
    tables: Vec<TableUse>,
    files: Vec<String>,
    /// Functions, types and sequences, in lower case.
    names: BTreeSet<String>,
    /// Functions that read files which the text does not determine.
    untold: Vec<String>,
    index: BTreeMap<(String, bool), usize>,
    unaliased: BTreeSet<String>,
    /// Aliases and names of CTEs, which a qualifier may mean instead of a table.
    others: BTreeSet<String>,
}

impl Names {
    fn value(&mut self, value: &Value, scope: &mut Scope) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.value(item, scope)),
            Value::Object(object) => self.object(object, scope),
            _ => {}
        }
    }

    fn object(&mut self, object: &Map<String, Value>, scope: &mut Scope) {
        if is_base_table(object) {
            self.base_table(object, scope);
        } else if text(object, "type") == "TABLE_FUNCTION" {
            self.table_function(object);
        }
        self.named(object);
        let alias = text(object, "alias");
        if object.contains_key("type") && !object.contains_key("class") && !alias.is_empty() {
            self.others.insert(alias.to_lowercase());
        }
        self.others
            .extend(ctes(object).map(|(name, _)| name.to_lowercase()));
        let names = std::cell::RefCell::new(self);
        in_scope(
            object,
            scope,
            |_, value, scope| names.borrow_mut().value(value, scope),
            |_, value, scope| names.borrow_mut().value(value, scope),
        );
    }

    fn base_table(&mut self, object: &Map<String, Value>, scope: &Scope) {
        let name = text(object, "table_name");
        if name.is_empty() || is_shadowed(object, scope) {
            return;
        }
        self.table(name, is_foreign(object));
        if text(object, "alias").is_empty() {
            self.unaliased.insert(name.to_lowercase());
        }
        if ENGINE.names_file(name) {
            self.file(name);
        }
    }

    fn table(&mut self, name: &str, foreign: bool) {
        let tables = &mut self.tables;
        self.index
            .entry((name.to_lowercase(), foreign))
            .or_insert_with(|| {
                tables.push(TableUse {
                    name: name.to_owned(),
                    foreign,
                });
                tables.len() - 1
            });
    }

    fn table_function(&mut self, object: &Map<String, Value>) {
        let Some(function) = object.get("function").and_then(Value::as_object) else {
            return;
        };
        let name = text(function, "function_name");
        let first = function
            .get("children")
            .and_then(Value::as_array)
            .and_then(|all| all.first());
        let Some(first) = first else { return };
        match (literals(first), ENGINE.table_function(name)) {
            (_, TableFunction::Other) => {}
            (Some(paths), TableFunction::Files(_)) => paths.iter().for_each(|path| self.path(name, path)),
            (Some(names), TableFunction::Table) => names.iter().for_each(|table| self.table(table, false)),
            (Some(texts), TableFunction::Query) => texts.iter().for_each(|text| self.query(text)),
            (None, _) => self.untold(name),
        }
    }

    /// Records a file that a function reads; a path in the home folder, which only the engine can resolve, counts as
    /// undetermined.
    fn path(&mut self, function: &str, path: &str) {
        if path.starts_with('~') {
            self.untold(function);
        } else {
            self.file(path);
        }
    }

    fn untold(&mut self, function: &str) {
        let function = function.to_lowercase();
        if !self.untold.contains(&function) {
            self.untold.push(function);
        }
    }

    /// Scans a statement inside a text, which the engine parses only at run time.
    fn query(&mut self, text: &str) {
        let read = scan::analyse(text);
        for table in read.tables {
            self.table(&table.name, table.foreign);
        }
        read.files.iter().for_each(|path| self.file(path));
        self.names.extend(read.names);
        read.untold.iter().for_each(|function| self.untold(function));
    }

    /// Records the function, type or sequence that an object of the tree names.
    fn named(&mut self, object: &Map<String, Value>) {
        let function = text(object, "function_name");
        if !function.is_empty() && object.get("is_operator").and_then(Value::as_bool) != Some(true) {
            self.names.insert(function.to_lowercase());
            if matches!(function.to_lowercase().as_str(), "nextval" | "currval") {
                let told = object.get("children").and_then(Value::as_array);
                let told = told.and_then(|all| all.first()).and_then(literals);
                let last = |text: String| text.rsplit('.').next().unwrap_or(&text).to_lowercase();
                self.names.extend(told.into_iter().flatten().map(last));
            }
        }
        let r#type = match text(object, "type") {
            "UNBOUND_TYPE_INFO" => text(object, "name"),
            _ => text(object, "user_type_name"),
        };
        if !r#type.is_empty() {
            self.names.insert(r#type.to_lowercase());
        }
    }

    fn file(&mut self, path: &str) {
        if is_local(path) && !self.files.iter().any(|known| known == path) {
            self.files.push(path.to_owned());
        }
    }

    /// Returns the ordinal of the table that a qualifier means; none unless it means an unaliased table and nothing
    /// else.
    fn qualified(&self, qualifier: &str) -> Option<TableHole> {
        let lower = qualifier.to_lowercase();
        if !self.unaliased.contains(&lower) || self.others.contains(&lower) {
            return None;
        }
        self.index.get(&(lower, false)).copied().map(TableHole)
    }
}

/// Returns the texts of a literal or a list of literals; none if anything is computed. Names count as texts, as the
/// engine reads them so where no table precedes.
fn literals(value: &Value) -> Option<Vec<String>> {
    let list = |key: &str| value.get(key).and_then(Value::as_array);
    match value.get("class").and_then(Value::as_str)? {
        "CONSTANT" => Some(vec![value.pointer("/value/value")?.as_str()?.to_owned()]),
        "COLUMN_REF" => {
            let parts = list("column_names")?.iter().map(Value::as_str);
            let parts = parts.collect::<Option<Vec<_>>>()?;
            let is_computed = parts.last().is_some_and(|last| ENGINE.is_computed(last));
            (!is_computed).then(|| vec![parts.join(".")])
        }
        "CAST" if is_cast_to_text(value.get("cast_type")?) => literals(value.get("child")?),
        "FUNCTION" if value.get("function_name").and_then(Value::as_str) == Some("list_value") => {
            let texts = list("children")?
                .iter()
                .map(literals)
                .collect::<Option<Vec<_>>>()?;
            Some(texts.into_iter().flatten().collect())
        }
        _ => None,
    }
}

/// Returns true for the type text, and for lists of it.
fn is_cast_to_text(r#type: &Value) -> bool {
    let name = |of: &Value| {
        of.get("id")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    match name(r#type).as_str() {
        "LIST" => r#type
            .pointer("/type_info/child_type")
            .is_some_and(is_cast_to_text),
        "UNBOUND" | "USER" => {
            let info = r#type.get("type_info");
            let named = ["name", "user_type_name"];
            let named = named.iter().filter_map(|key| info?.get(key)?.as_str());
            named.into_iter().any(|name| ENGINE.is_text_type(name))
        }
        id => ENGINE.is_text_type(id),
    }
}

/// The second pass over a tree, which hashes the statement's meaning.
struct Printer<'a> {
    hasher: blake3::Hasher,
    names: &'a Names,
    /// The nesting depth of unnamed columns, inside which table names count, as an unnamed column is named by its text;
    /// 0 outside.
    keep_names: usize,
}

impl Printer<'_> {
    fn piece(&mut self, tag: u8, bytes: &[u8]) {
        self.hasher
            .update(&[tag])
            .update(&(bytes.len() as u64).to_le_bytes())
            .update(bytes);
    }

    fn hole(&mut self, TableHole(index): TableHole) {
        self.piece(b'#', &(index as u64).to_le_bytes());
    }

    fn value(&mut self, value: &Value, scope: &mut Scope) {
        match value {
            Value::Null => self.piece(b'n', b""),
            Value::Bool(value) => self.piece(b'b', &[u8::from(*value)]),
            Value::Number(value) => self.piece(b'd', value.to_string().as_bytes()),
            Value::String(value) => self.piece(b's', value.as_bytes()),
            Value::Array(items) => {
                self.piece(b'[', &(items.len() as u64).to_le_bytes());
                items.iter().for_each(|item| self.value(item, scope));
            }
            Value::Object(object) => self.object(object, scope),
        }
    }

    fn object(&mut self, object: &Map<String, Value>, scope: &mut Scope) {
        self.piece(b'{', b"");
        let hole = self.table_hole(object, scope);
        let printer = std::cell::RefCell::new(&mut *self);
        in_scope(
            object,
            scope,
            |name, value, scope| {
                let mut printer = printer.borrow_mut();
                printer.piece(b'w', name.as_bytes());
                printer.value(value, scope);
            },
            |key, value, scope| printer.borrow_mut().entry(key, value, hole, scope),
        );
        self.piece(b'}', b"");
    }

    fn entry(&mut self, key: &str, value: &Value, hole: Option<TableHole>, scope: &mut Scope) {
        if key == "query_location" {
            return;
        }
        self.piece(b'k', key.as_bytes());
        match key {
            "table_name" if hole.is_some() => hole.into_iter().for_each(|hole| self.hole(hole)),
            "select_list" => self.select_list(value, scope),
            "column_names" => self.column_names(value, scope),
            "relation_name" | "table" => self.qualifier(value, scope),
            _ => self.value(value, scope),
        }
    }

    fn table_hole(&self, object: &Map<String, Value>, scope: &Scope) -> Option<TableHole> {
        if self.keep_names > 0 || !is_base_table(object) || is_shadowed(object, scope) {
            return None;
        }
        let key = (text(object, "table_name").to_lowercase(), is_foreign(object));
        self.names.index.get(&key).copied().map(TableHole)
    }

    /// Hashes a list of selected columns; without an alias, the text of an expression is its name.
    fn select_list(&mut self, value: &Value, scope: &mut Scope) {
        let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
        self.piece(b'[', &(items.len() as u64).to_le_bytes());
        for item in items {
            let class = item.get("class").and_then(Value::as_str).unwrap_or_default();
            let alias = item.get("alias").and_then(Value::as_str).unwrap_or_default();
            let named = !alias.is_empty() || matches!(class, "COLUMN_REF" | "STAR");
            self.keep_names += usize::from(!named);
            self.value(item, scope);
            self.keep_names -= usize::from(!named);
        }
    }

    fn column_names(&mut self, value: &Value, scope: &mut Scope) {
        match value.as_array().map(Vec::as_slice) {
            Some([first, rest @ ..]) if !rest.is_empty() => {
                self.qualifier(first, scope);
                rest.iter().for_each(|part| self.value(part, scope));
            }
            _ => self.value(value, scope),
        }
    }

    fn qualifier(&mut self, value: &Value, scope: &mut Scope) {
        let hole = value
            .as_str()
            .and_then(|name| self.names.qualified(name))
            .filter(|_| self.keep_names == 0);
        match hole {
            Some(hole) => self.hole(hole),
            None => self.value(value, scope),
        }
    }
}

#[cfg(test)]
mod tests;
