//! The tests of a model, each a query for rows that must not exist.
//!
//! A test states its SQL, or a condition (`assert`), or one of the named tests below, which stand for their SQL.

use std::collections::BTreeMap;

use watershed_dialect::{Checks as _, ENGINE, Quoting as _};
use watershed_proto::{ModelSpec, ModelTest};

use super::keys::{ACCEPTED, RELATED};
use crate::{
    diagnostics::{At, Code, Findings},
    draft::{Purpose, Relation},
    kinds::reader::{Declared, Reader},
    yaml::{Data, Entry, Fields, Map, Node, Style},
};

/// Keys that state a test; exactly one is required.
const FORMS: [&str; 6] = [
    "sql",
    "assert",
    "unique",
    "not_null",
    "accepted_values",
    "relationships",
];

/// The default number of failing rows to store.
const STORED: u32 = 1_000;
const MOST_STORED: u32 = 10_000;

/// A predefined test, translated to SQL.
struct Named {
    /// The default name of the test.
    name: String,
    /// The query for failing rows.
    sql: String,
}

impl Reader<'_, '_> {
    pub(super) fn tests(&mut self, spec: &mut ModelSpec, declared: &mut Declared) {
        let model = self.about.name;
        let mut seen = BTreeMap::new();
        for node in self.fields.list("tests").unwrap_or_default() {
            let at = node.at;
            let Data::Map(mut map) = node.data else {
                self.no_mapping(&node);
                continue;
            };
            let warns = self.severity(&mut map);
            let store_failures = self.store_failures(&mut map);
            let to = related_model(&map);
            let given = map.remove("name").and_then(|entry| entry.value.scalar_text());
            let default = self.stated(&mut map, model, at);
            let Some(name) = given.or(default) else {
                self.fields
                    .findings()
                    .add(at, Code::MissingKey, "a test needs a `name`");
                continue;
            };
            if let Some(first) = seen.get(&name.to_lowercase()) {
                let message = format!("two tests are named \"{name}\"");
                let findings = self.fields.findings();
                findings.add_second(at, Some(*first), Code::ConflictingKeys, message, None);
            } else {
                seen.insert(name.to_lowercase(), at);
            }
            let connector = spec.output_connector.clone();
            let block = self.blocks.len();
            if let Some(data) = self.data_block(map, at, Purpose::Test, &connector, declared) {
                declared.relations.extend(to.map(|to| Relation {
                    test: spec.tests.len(),
                    block,
                    to,
                }));
                spec.tests.push(ModelTest {
                    name,
                    data: Some(data),
                    warns,
                    store_failures,
                    line: at.span.line,
                    column: at.span.column,
                    path: String::new(),
                });
            }
        }
    }

    fn no_mapping(&mut self, node: &Node) {
        let message = format!("a test is a mapping, not {}", node.data.type_name());
        let bare = node.as_str().filter(|text| FORMS[2..4].contains(text));
        let findings = self.fields.findings();
        match bare {
            Some(name) => {
                let hint = format!("say the column: `- {name}: order_id`");
                findings.add_with_hint(node.at, Code::WrongType, message, hint);
            }
            None => findings.add(node.at, Code::WrongType, message),
        }
    }

    /// Takes `severity`; returns true if it is `warn`, so that a failure is only a warning.
    pub(super) fn severity(&mut self, map: &mut Map) -> bool {
        let Some(entry) = map.remove("severity") else {
            return false;
        };
        match entry.value.as_str().map(str::to_ascii_lowercase).as_deref() {
            Some("warn") => true,
            Some("error") => false,
            _ => {
                let said = entry.value.scalar_text().unwrap_or_default();
                let message = format!("unknown severity \"{said}\"");
                let findings = self.fields.findings();
                findings.add_with_hint(entry.value.at, Code::InvalidValue, message, "`warn` or `error`");
                false
            }
        }
    }

    /// Takes the number of failing rows to store; 0 for none.
    fn store_failures(&mut self, map: &mut Map) -> u32 {
        let Some(entry) = map.remove("store_failures") else {
            return 0;
        };
        let most = match entry.value.data {
            Data::Bool(true) => Some(STORED),
            Data::Bool(false) => Some(0),
            Data::Int(rows) => u32::try_from(rows).ok().filter(|rows| *rows <= MOST_STORED),
            _ => None,
        };
        most.unwrap_or_else(|| {
            let message = "`store_failures` takes `true`, `false` or a number of rows";
            let hint = format!("at most {MOST_STORED}; `true` keeps {STORED}");
            let findings = self.fields.findings();
            findings.add_with_hint(entry.value.at, Code::InvalidValue, message, hint);
            0
        })
    }

    /// Replaces the statement of a test by its SQL under `sql`. Returns the default name of a predefined test.
    fn stated(&mut self, map: &mut Map, model: &str, at: At) -> Option<String> {
        let forms: Vec<&str> = FORMS.into_iter().filter(|form| map.contains_key(*form)).collect();
        let form = match forms.as_slice() {
            [form] => *form,
            // What else fetches rows is read with the data block, and that there is nothing too.
            [] => return None,
            several => {
                let message = match several {
                    ["sql", "assert"] => "a test takes either `sql` or `assert`".to_owned(),
                    several => format!("a test states one thing, not `{}`", several.join("`, `")),
                };
                self.fields.findings().add(at, Code::ConflictingKeys, message);
                // One is read all the same, for what else is wrong.
                several[1..].iter().for_each(|form| drop(map.remove(*form)));
                several[0]
            }
        };
        if form == "sql" {
            return None;
        }
        let mut entry = map.remove(form)?;
        let table = ENGINE.name(model);
        let named = match form {
            "assert" => {
                let condition = entry.value.scalar_text().unwrap_or_default();
                let sql = format!("SELECT * FROM {table} WHERE NOT ({})", condition.trim());
                put_sql(map, entry, sql);
                return None;
            }
            "unique" => {
                columns_of(&entry.value, form, self.fields.findings()).map(|columns| unique(&table, &columns))
            }
            "not_null" => columns_of(&entry.value, form, self.fields.findings())
                .map(|columns| not_null(&table, &columns)),
            _ => {
                let Data::Map(keys) = std::mem::replace(&mut entry.value.data, Data::Null) else {
                    let known = if form == "relationships" {
                        &RELATED
                    } else {
                        &ACCEPTED
                    };
                    let message = format!("\"{form}\" takes a mapping");
                    let names: Vec<&str> = known.names().collect();
                    let hint = format!("with `{}`", names.join("`, `"));
                    self.fields
                        .findings()
                        .add_with_hint(entry.value.at, Code::WrongType, message, hint);
                    // Nothing is left to fetch rows with, and that is said already.
                    put_sql(map, entry, "SELECT 1 WHERE false".to_owned());
                    return Some(form.to_owned());
                };
                let fields = Fields::new(keys, entry.value.at, self.fields.findings());
                match form {
                    "relationships" => relationships(&table, fields),
                    _ => accepted_values(&table, fields),
                }
            }
        };
        // What is wrong was said; the test keeps its place in the list.
        let named = named.unwrap_or_else(|| Named {
            name: form.to_owned(),
            sql: "SELECT 1 WHERE false".to_owned(),
        });
        put_sql(map, entry, named.sql);
        Some(named.name)
    }
}

/// Returns the model that a `relationships` test refers to.
fn related_model(test: &Map) -> Option<String> {
    let Data::Map(keys) = &test.get("relationships")?.value.data else {
        return None;
    };
    keys.get("to")?.value.scalar_text()
}

/// Sets the SQL of a test. The places of its parts are not those in the file.
fn put_sql(map: &mut Map, mut entry: Entry, sql: String) {
    entry.value.data = Data::String(sql);
    entry.value.raw = None;
    entry.value.style = Style::Folded;
    map.insert("sql".to_owned(), entry);
}

/// Reads one column or a list of columns.
fn columns_of(node: &Node, form: &str, findings: &mut Findings) -> Option<Vec<String>> {
    let columns: Option<Vec<String>> = match node.as_list() {
        Some(list) => list.iter().map(Node::scalar_text).collect(),
        None => node.scalar_text().map(|column| vec![column]),
    };
    let columns = columns.filter(|columns| !columns.is_empty());
    if columns.is_none() {
        let message = format!("\"{form}\" takes a column, or a list of columns");
        findings.add(node.at, Code::WrongType, message);
    }
    columns
}

/// Returns the test that no two rows have the same values in the columns. Rows with a missing value are not compared,
/// as in SQL.
fn unique(table: &str, columns: &[String]) -> Named {
    let quoted: Vec<String> = columns.iter().map(|column| ENGINE.name(column)).collect();
    let given: Vec<String> = quoted
        .iter()
        .map(|column| format!("{column} IS NOT NULL"))
        .collect();
    let list = quoted.join(", ");
    Named {
        name: format!("unique({})", columns.join(", ")),
        sql: format!(
            "SELECT {list}, count(*) AS \"rows\" FROM {table} WHERE {} GROUP BY {list} HAVING count(*) > 1",
            given.join(" AND ")
        ),
    }
}

/// Returns the test that every row has a value in each of the columns.
fn not_null(table: &str, columns: &[String]) -> Named {
    let missing: Vec<String> = columns
        .iter()
        .map(|column| format!("{} IS NULL", ENGINE.name(column)))
        .collect();
    Named {
        name: format!("not_null({})", columns.join(", ")),
        sql: format!("SELECT * FROM {table} WHERE {}", missing.join(" OR ")),
    }
}

/// Returns the test that a column holds only the given values; rows without a value pass.
///
/// They are texts until the engine reads each as a value of the column's type. One that the type does not have is accepted of no row:
/// neither one that can't be read so, nor a number or a date that would be another then.
fn accepted_values(table: &str, mut fields: Fields<'_>) -> Option<Named> {
    let column = required(&mut fields, "column");
    let values = fields.list("values").unwrap_or_default();
    let literals: Vec<String> = values.iter().filter_map(literal).collect();
    if literals.is_empty() || literals.len() < values.len() {
        let at = fields.at();
        let message = "\"accepted_values\" needs `values`, a list of texts, numbers or booleans";
        fields.findings().add(at, Code::MissingKey, message);
        fields.finish(&ACCEPTED);
        return None;
    }
    fields.finish(&ACCEPTED);
    let column = column?;
    let quoted = ENGINE.name(&column);
    Some(Named {
        name: format!("accepted_values({column})"),
        sql: ENGINE.unaccepted(table, &quoted, &literals),
    })
}

/// Returns the test that every value of a column occurs in another table; rows without a value pass.
///
/// Those of the other table are read as values of the column's type, as in `accepted_values`. One that the type does not have is that of
/// no row: read back it would be another.
fn relationships(table: &str, mut fields: Fields<'_>) -> Option<Named> {
    let column = required(&mut fields, "column");
    let to = match fields.text_node("to") {
        Some(node) => Some(node),
        None => {
            let at = fields.at();
            let hint = "the model whose rows are referred to: `to: customers`";
            let findings = fields.findings();
            findings.add_with_hint(at, Code::MissingKey, "\"relationships\" needs `to`", hint);
            None
        }
    };
    let field = fields.text("field").or_else(|| column.clone());
    let to = to.and_then(|node| {
        let name = node.scalar_text().unwrap_or_default();
        if name.contains('(') {
            let message = format!("\"to\" takes the name of a model, not `{name}`");
            let hint = "write the plain name: `to: customers`";
            fields
                .findings()
                .add_with_hint(node.at, Code::InvalidValue, message, hint);
            return None;
        }
        Some(name)
    });
    fields.finish(&RELATED);
    let (column, to, field) = (column?, to?, field?);
    let (quoted, other, key) = (ENGINE.name(&column), ENGINE.name(&to), ENGINE.name(&field));
    Some(Named {
        name: format!("relationships({column}, {to}.{field})"),
        sql: ENGINE.unrelated(table, &quoted, &other, &key),
    })
}

fn required(fields: &mut Fields<'_>, key: &str) -> Option<String> {
    let found = fields.text(key);
    if found.is_none() {
        let at = fields.at();
        let message = format!("the test needs `{key}`");
        fields.findings().add(at, Code::MissingKey, message);
    }
    found
}

/// Returns a scalar as an SQL text literal, spelled as in the file; none for lists, mappings and null.
fn literal(node: &Node) -> Option<String> {
    match &node.data {
        Data::Float(value) if !value.is_finite() => None,
        Data::Null | Data::List(_) | Data::Map(_) => None,
        Data::Bool(_) | Data::Int(_) | Data::Float(_) | Data::String(_) => {
            node.scalar_text().map(|text| ENGINE.text(&text))
        }
    }
}
