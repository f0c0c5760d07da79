//! The unit tests of a model, which compare the rows of its query over given rows with expected ones.
//!
//! A unit test becomes SQL as the other tests do: the given rows are common table expressions, which stand before the
//! tables of their names, and the rows that differ from the expected ones should not be there.

use std::collections::{BTreeMap, BTreeSet};

use watershed_dialect::{Checks as _, Dialect as _, ENGINE, Quoting as _};
use watershed_proto::{ModelSpec, ModelTest};

use super::keys::{ROWS, UNIT_TEST};
use crate::{
    diagnostics::{At, Code, Findings},
    draft::Purpose,
    kinds::reader::{Declared, Reader},
    sql::{TokenKind, tokens},
    yaml::{Data, Entry, Fields, Map, Node, Style, item},
};

/// Rows of a unit test as a query.
struct Rows {
    sql: String,
    /// The columns of the rows, if known; none without rows and types.
    columns: Option<Vec<String>>,
}

impl Rows {
    /// Returns the columns as SQL lists them, if known.
    fn listed(&self) -> Option<String> {
        let quoted = self.columns.as_ref()?.iter().map(|column| ENGINE.name(column));
        Some(quoted.collect::<Vec<_>>().join(", "))
    }
}

impl Reader<'_, '_> {
    pub(super) fn unit_tests(&mut self, spec: &mut ModelSpec, declared: &mut Declared) {
        let at = self.fields.key_at("unit_tests");
        let nodes = self.fields.list("unit_tests").unwrap_or_default();
        let (Some(at), false) = (at, nodes.is_empty()) else {
            return;
        };
        let query = spec
            .sql
            .as_ref()
            .filter(|sql| sql.engine)
            .map(|sql| statement(&sql.text));
        let Some(query) = query else {
            let message = "unit tests are for models with a query that the engine runs";
            self.fields.findings().add(at, Code::InvalidValue, message);
            return;
        };
        let earlier = spec.tests.iter().map(|test| (test.name.to_lowercase(), None));
        let mut seen: BTreeMap<String, Option<At>> = earlier.collect();
        for node in nodes {
            let Some((mut map, at)) = item(node, "a unit test", self.fields.findings()) else {
                continue;
            };
            let warns = self.severity(&mut map);
            let mut fields = Fields::new(map, at, self.fields.findings());
            let name = fields.text("name");
            let given = fields.map("given");
            let expected = fields.take("expect").map(|entry| entry.value);
            fields.finish(&UNIT_TEST);
            let findings = self.fields.findings();
            let (Some(name), Some(expected)) = (name, expected) else {
                findings.add(
                    at,
                    Code::MissingKey,
                    "a unit test needs a `name` and `expect`, the rows that come out",
                );
                continue;
            };
            if let Some(first) = seen.get(&name.to_lowercase()) {
                let message = format!("two tests are named \"{name}\"");
                findings.add_second(at, *first, Code::ConflictingKeys, message, None);
            } else {
                seen.insert(name.to_lowercase(), Some(at));
            }
            let Some(sql) = sql_of(&query, given, expected, findings) else {
                continue;
            };
            let connector = spec.output_connector.clone();
            if let Some(data) =
                self.data_block(under_sql(sql, at), at, Purpose::UnitTest, &connector, declared)
            {
                spec.tests.push(ModelTest {
                    name,
                    data: Some(data),
                    warns,
                    path: String::new(),
                    store_failures: 0,
                    line: at.span.line,
                    column: at.span.column,
                });
            }
        }
    }
}

/// Returns a statement without its final semicolon.
fn statement(text: &str) -> String {
    let last = tokens(text)
        .into_iter()
        .rfind(|token| token.kind != TokenKind::Comment);
    let end = last
        .filter(|token| token.is_sign(";"))
        .map(|token| token.range.start);
    text.get(..end.unwrap_or(text.len())).unwrap_or(text).to_owned()
}

/// Returns the query for the rows that differ between the result and the expectation.
fn sql_of(query: &str, given: Option<(Map, At)>, expected: Node, findings: &mut Findings) -> Option<String> {
    let mut tables = Vec::new();
    let mut is_whole = true;
    for (input, entry) in given.map(|(map, _)| map).unwrap_or_default() {
        match rows(entry.value, findings) {
            Some(Rows { columns: None, sql }) if sql.is_empty() => tables.push(no_rows_of(&input)),
            Some(found) => tables.push(given_table(&input, &found)),
            None => is_whole = false,
        }
    }
    let expected = rows(expected, findings).filter(|_| is_whole)?;
    let columns = expected.listed();
    let columns = columns.as_deref().unwrap_or("*");
    // The query stands on lines of its own: it may end with a comment.
    tables.push(format!("{ACTUAL} AS (SELECT {columns} FROM (\n{query}\n))"));
    if expected.sql.is_empty() {
        let tables = tables.join(", ");
        return Some(format!(
            "WITH {tables} SELECT 'unexpected' AS difference, * FROM {ACTUAL}"
        ));
    }
    tables.push(format!("{EXPECTED} AS ({})", expected.sql));
    let difference = ENGINE.difference(EXPECTED, ACTUAL);
    Some(format!("WITH {} {difference}", tables.join(", ")))
}

/// Returns a table without rows. Within its own definition the name is that of the table of the project, which has the
/// columns.
pub(crate) fn no_rows_of(input: &str) -> String {
    let name = ENGINE.name(input);
    format!("{name} AS (SELECT * FROM {name} WHERE false)")
}

/// Returns a table of given rows, with a marker for columns that the rows don't name.
fn given_table(input: &str, rows: &Rows) -> String {
    let (quoted, sql) = (ENGINE.name(input), &rows.sql);
    let columns = rows.listed().unwrap_or_default();
    let place = format!("{quoted}{COLUMNS}{columns}");
    // Such a name would end the comment, or begin another within it.
    match place.contains(END_OF_PLACE) || place.contains("/*") {
        true => format!("{quoted} AS ({sql})"),
        false => format!("{quoted} AS (({sql}){PLACE}{place}{END_OF_PLACE})"),
    }
}

/// The marker comment after the given rows of a table, which names the table and the columns of the rows.
const PLACE: &str = "/*columns of ";
const COLUMNS: &str = " beside ";
const END_OF_PLACE: &str = "*/";

/// Returns the unit test with the unnamed columns added as NULL of the table's column types, which fails for given columns
/// that the table lacks; none if the test has no marker.
#[must_use]
pub fn with_all_columns(sql: &str) -> Option<String> {
    let (mut whole, mut copied) = (String::new(), 0);
    // Comments of the query, which stands behind the given rows, are its author's.
    let given = tokens(sql).into_iter().take_while(|token| token.text != ACTUAL);
    for token in given.filter(|token| token.kind == TokenKind::Comment) {
        let Some(table) = token.text.strip_prefix(PLACE) else {
            continue;
        };
        let table = table.strip_suffix(END_OF_PLACE)?;
        whole.push_str(sql.get(copied..token.range.start)?);
        // Columns are quoted, so the last of these words is ours, unless a name has it; then there is no such table.
        let (table, columns) = table.rsplit_once(COLUMNS)?;
        // Within its own definition the name is that of the table.
        whole.push_str(&ENGINE.with_columns_of(table, columns));
        copied = token.range.end;
    }
    whole.push_str(sql.get(copied..)?);
    (copied > 0).then_some(whole)
}

/// The name of the actual rows in the query, which no model can have.
const ACTUAL: &str = "\"watershed actual rows\"";
const EXPECTED: &str = "\"watershed expected rows\"";

/// Reads rows, from a list or from a mapping that names their source. Without rows and types, the SQL is empty.
fn rows(node: Node, findings: &mut Findings) -> Option<Rows> {
    let at = node.at;
    let map = match node.data {
        Data::List(list) => return listed(list, &BTreeMap::new(), findings),
        Data::Map(map) => map,
        other => {
            let message = format!("rows are a list of mappings, not {}", other.type_name());
            let hint = "or `{csv: FILE}`, or `{sql: SELECT ...}`";
            findings.add_with_hint(at, Code::WrongType, message, hint);
            return None;
        }
    };
    let mut fields = Fields::new(map, at, findings);
    let types = fields.text_map("types");
    let (list, csv, sql) = (fields.list("rows"), fields.text("csv"), fields.text("sql"));
    fields.finish(&ROWS);
    match (list, csv, sql) {
        (Some(list), None, None) => listed(list, &types, findings),
        (None, Some(file), None) => Some(Rows {
            sql: ENGINE.file(&file),
            columns: None,
        }),
        (None, None, Some(sql)) => Some(Rows {
            sql: format!("\n{}\n", statement(&sql)),
            columns: None,
        }),
        _ => {
            findings.add(
                at,
                Code::ConflictingKeys,
                "rows take one of `rows`, `csv` and `sql`",
            );
            None
        }
    }
}

/// Reads a list of rows. A column that a row does not name is NULL in it.
fn listed(list: Vec<Node>, types: &BTreeMap<String, String>, findings: &mut Findings) -> Option<Rows> {
    let mut maps = Vec::new();
    for node in list {
        maps.push(item(node, "a row", findings)?.0);
    }
    let columns: BTreeSet<&str> = maps
        .iter()
        .flat_map(BTreeMap::keys)
        .chain(types.keys())
        .map(String::as_str)
        .collect();
    let columns: Vec<&str> = columns.into_iter().collect();
    if columns.is_empty() {
        return Some(Rows {
            sql: String::new(),
            columns: None,
        });
    }
    let mut tuples = Vec::new();
    for map in &maps {
        let values: Option<Vec<String>> = columns
            .iter()
            .map(|column| match map.get(*column) {
                None => Some("NULL".to_owned()),
                Some(entry) => value(&entry.value, findings),
            })
            .collect();
        tuples.push(values?);
    }
    if tuples.is_empty() {
        tuples.push(vec!["NULL".to_owned(); columns.len()]);
    }
    let typed = |column: &&str| {
        let name = ENGINE.name(column);
        match types.get(*column) {
            Some(kind) => format!("CAST({name} AS {kind}) AS {name}"),
            None => name,
        }
    };
    let typed: Vec<String> = columns.iter().map(typed).collect();
    let only = if maps.is_empty() { " WHERE false" } else { "" };
    Some(Rows {
        sql: format!(
            "SELECT {} FROM {}{only}",
            typed.join(", "),
            ENGINE.rows(&tuples, "given", &columns)
        ),
        columns: Some(columns.into_iter().map(str::to_owned).collect()),
    })
}

/// Returns a value as an SQL literal. Texts in the form of a date or time become one, as in data files.
fn value(node: &Node, findings: &mut Findings) -> Option<String> {
    Some(match &node.data {
        Data::Null => "NULL".to_owned(),
        Data::Bool(value) => value.to_string(),
        Data::Int(value) => value.to_string(),
        Data::Float(value) if value.is_finite() => match &node.raw {
            Some(raw) => raw.to_string(),
            None => value.to_string(),
        },
        Data::String(text) if is_shaped(text, DATE) => format!("DATE {}", ENGINE.text(text)),
        Data::String(text) if is_time(text) => format!("TIMESTAMP {}", ENGINE.text(text)),
        Data::String(text) => ENGINE.text(text),
        other => {
            let message = format!(
                "a row holds texts, numbers and booleans, not {}",
                other.type_name()
            );
            let hint = "write such rows as SQL: `{sql: SELECT [1, 2] AS list}`";
            findings.add_with_hint(node.at, Code::WrongType, message, hint);
            return None;
        }
    })
}

/// The shape of a date, where `0` stands for a digit.
const DATE: &str = "0000-00-00";
/// The shape of hours and minutes, where `0` stands for a digit.
const MINUTE: &str = "00:00";

fn is_time(text: &str) -> bool {
    let date = text.get(..DATE.len()).is_some_and(|date| is_shaped(date, DATE));
    let parted = matches!(text.as_bytes().get(DATE.len()), Some(b' ' | b'T'));
    let rest = text.get(DATE.len() + 1..).unwrap_or_default();
    let seconds = rest.get(MINUTE.len()..).unwrap_or_default();
    let is_end = |text: &str| {
        text.starts_with(':') && text.bytes().skip(1).all(|it| it.is_ascii_digit() || it == b'.')
    };
    let begins = rest
        .get(..MINUTE.len())
        .is_some_and(|minute| is_shaped(minute, MINUTE));
    date && parted && begins && (seconds.is_empty() || is_end(seconds))
}

fn is_shaped(text: &str, shape: &str) -> bool {
    let fits = |(is, wanted): (u8, u8)| match wanted {
        b'0' => is.is_ascii_digit(),
        other => is == other,
    };
    text.len() == shape.len() && text.bytes().zip(shape.bytes()).all(fits)
}

/// Returns a mapping with generated SQL under `sql`, all at one place.
fn under_sql(sql: String, at: At) -> Map {
    let value = Node {
        style: Style::Folded,
        ..Node::new(at, Data::String(sql))
    };
    Map::from([("sql".to_owned(), Entry { key_at: at, value })])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_columns_are_those_behind_given_rows_alone() {
        let texts = "'/*columns of \"t\"*/' AS a";
        let query = "SELECT 1 /*columns of \"t\"*/";
        let written = |place: &str| {
            format!(
                "WITH \"t\" AS ((SELECT {texts}){place}), {ACTUAL} AS (SELECT * FROM (\n{query}\n)) SELECT 2"
            )
        };
        let whole = with_all_columns(&written("/*columns of \"t\" beside */"));
        let columns = " UNION ALL BY NAME (SELECT * FROM \"t\" LIMIT 0)";
        assert_eq!(whole, Some(written(columns)));
        let whole = with_all_columns(&written("/*columns of \"t\" beside \"a\", \"b\"*/"));
        let named = format!("{columns} UNION ALL BY NAME (SELECT \"a\", \"b\" FROM \"t\" LIMIT 0)");
        assert_eq!(whole, Some(written(&named)));
        assert_eq!(with_all_columns(&written("")), None);
    }

    #[test]
    fn a_name_that_would_end_a_comment_has_no_place() {
        let rows = |column: &str| Rows {
            sql: "SELECT 1".to_owned(),
            columns: Some(vec![column.to_owned()]),
        };
        for (name, column) in [("a*/b", "c"), ("a/*b", "c"), ("a", "c*/")] {
            assert!(
                !given_table(name, &rows(column)).contains(PLACE),
                "{name} {column}"
            );
        }
        assert!(given_table("a", &rows("c")).contains(PLACE));
    }
}
