//! Proposals in SQL: tables, template variables and functions, annotations.

use super::{
    keys,
    outline::Cursor,
    suggestion::{Suggested, Suggestions},
};
use crate::{
    project::Project,
    resource::Kind,
    sql::{Token, TokenKind, expects_table, table_places, tokens},
    yaml::Takes,
};

/// Template functions to propose, with their meanings; the documentation has the rest.
const FUNCTIONS: [(&str, &str); 6] = [
    ("ref", "The table of another resource, by its name."),
    (
        "dependency",
        "A resource that is read without being named in the SQL.",
    ),
    ("configure", "A setting, as an annotation makes it."),
    ("if", "A part that stands only under a condition, up to `end`."),
    ("else", "The other part of an `if`."),
    ("end", "The end of an `if`."),
];
/// Template values to propose, by their first word, with their meanings.
const VALUES: [(&str, &str); 7] = [
    ("env", "Variables of the project."),
    ("vars", "Variables of the project."),
    ("user", "Who asks, in conditions and APIs."),
    ("state", "The state of an incremental model."),
    ("partition", "The partition that is built."),
    (
        "incremental",
        "Whether the build adds to the rows that are there.",
    ),
    ("args", "Arguments of an API."),
];

/// Adds proposals for a place of a SQL file.
pub(super) fn suggest(project: &Project, text: &str, cursor: &Cursor<'_>, found: &mut Suggestions) {
    if annotation(cursor, found) {
        return;
    }
    statement(project, &cursor.text_before(), text, found);
}

/// Adds keys or values of an annotation; returns true if the place is in one.
fn annotation(cursor: &Cursor<'_>, found: &mut Suggestions) -> bool {
    let comment = cursor.before().trim_start().strip_prefix("--");
    let Some(typed) = comment.and_then(|comment| comment.trim_start().strip_prefix('@')) else {
        return false;
    };
    let Some((key, _)) = typed.split_once(':') else {
        for key in keys::follow(Some(Kind::Model), &[]).keys() {
            let is_single = !matches!(key.takes, Takes::Block(_) | Takes::List(_) | Takes::Sql);
            if key.instead.is_none() && is_single {
                let insert = format!("{}: ", key.name);
                found.insert(key.name, Suggested::Key, Some(key.meaning), Some(insert));
            }
        }
        return true;
    };
    let path: Vec<&str> = key.trim().split('.').collect();
    for takes in keys::follow(Some(Kind::Model), &path).values() {
        match takes {
            Takes::Bool => {
                found.add("true", Suggested::Value, None);
                found.add("false", Suggested::Value, None);
            }
            Takes::Word(words) => {
                let words = words.iter();
                words.for_each(|word| found.add(word, Suggested::Value, None));
            }
            _ => {}
        }
    }
    true
}

/// Adds proposals inside a template action; returns true if the place is in one.
pub(super) fn in_action(project: &Project, before: &str, found: &mut Suggestions) -> bool {
    let Some(open) = before.rfind("{{") else {
        return false;
    };
    let action = before.get(open + 2..).unwrap_or_default();
    if action.contains("}}") {
        return false;
    }
    let is_quoted = action.matches(['"', '`']).count() % 2 == 1;
    if is_quoted {
        let call = action.trim_start_matches(['-', ' ']);
        if call.starts_with("ref ") || call.starts_with("dependency ") || call.starts_with("lookup ") {
            found.resources(project, Kind::Model);
        }
        return true;
    }
    let word = action.rsplit([' ', '(', '|']).next().unwrap_or_default();
    match word.strip_prefix('.').map(|rest| rest.split_once('.')) {
        Some(Some(("env" | "vars", _))) => {
            for name in project.variables().keys() {
                found.add(name, Suggested::Variable, None);
            }
        }
        Some(Some(_)) => {}
        Some(None) => {
            for (name, meaning) in VALUES {
                found.add(name, Suggested::Variable, Some(meaning));
            }
        }
        None => {
            for (name, meaning) in FUNCTIONS {
                found.add(name, Suggested::Function, Some(meaning));
            }
        }
    }
    true
}

/// Adds proposals for the end of `before`, the beginning of the statement `whole`.
pub(super) fn statement(project: &Project, before: &str, whole: &str, found: &mut Suggestions) {
    if in_action(project, before, found) || is_literal(before) {
        return;
    }
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let context = before.trim_end_matches(is_word);
    if let Some(holder) = context.strip_suffix('.') {
        let name = holder
            .rsplit(|c: char| !is_word(c) && c != '"')
            .next()
            .unwrap_or_default();
        found.columns_of = meant_by(whole, name.trim_matches('"')).into_iter().collect();
        return;
    }
    if expects_table(context) {
        found.resources(project, Kind::Model);
        return;
    }
    let mut tables: Vec<String> = table_places(whole).into_iter().map(|(_, name)| name).collect();
    tables.sort();
    tables.dedup();
    found.columns_of = tables;
}

/// Returns true if a text ends inside a comment or a quoted string.
fn is_literal(before: &str) -> bool {
    let all = tokens(before);
    let Some(last) = all.last().filter(|last| last.range.end == before.len()) else {
        return false;
    };
    let closed = last.text.len() > 1 && last.text.ends_with('\'');
    match last.kind {
        TokenKind::Comment => !last.text.ends_with("*/"),
        TokenKind::Text => !closed,
        _ => false,
    }
}

/// Returns the table that a qualifier means, by its name or its alias.
fn meant_by(whole: &str, name: &str) -> Option<String> {
    let all: Vec<Token<'_>> = tokens(whole);
    let mut tables = table_places(whole).into_iter();
    let found = tables.find(|(range, table)| {
        let mut behind = all
            .iter()
            .filter(|token| token.range.start >= range.end && token.kind != TokenKind::Comment);
        let first = behind.next();
        let alias = match first {
            Some(word) if word.is_word("as") => behind.next(),
            other => other,
        };
        table.eq_ignore_ascii_case(name)
            || alias.is_some_and(|alias| alias.meaning().eq_ignore_ascii_case(name))
    });
    found.map(|(_, table)| table)
}
