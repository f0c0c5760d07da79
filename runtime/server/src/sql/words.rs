//! Statements about the catalog, told from their words, and put into the form that the engine's parser takes.
//!
//! What is decided here lets nobody at anything: the guard judges the statement that comes out.

use std::collections::BTreeSet;

use watershed_drivers::olap::Catalog;
use watershed_pgwire::{Kind, Token, tokens};

/// Schemas of the catalog.
const SCHEMAS: [&str; 2] = ["pg_catalog", "information_schema"];

/// Words without brackets that are functions of the session.
pub(super) const OF_SESSION: [&str; 6] = [
    "current_catalog",
    "current_role",
    "current_schema",
    "current_user",
    "session_user",
    "user",
];

/// Types whose values are names of things, and are read and shown by functions.
pub(super) const OF_NAMES: [&str; 4] = ["regclass", "regtype", "regnamespace", "regrole"];

/// Returns true if a statement has a word that one about the catalog has. Others need no look at the catalog.
pub(super) fn may_be_about_catalog(sql: &str) -> bool {
    let has_from = has_from(sql);
    let mut all = tokens(sql);
    all.any(|token| {
        let name = token.name();
        if name.starts_with("pg_") || SCHEMAS.contains(&name.as_str()) {
            return true;
        }
        let begins = ["current_", "has_", "obj_", "col_", "to_reg", "session_"];
        let is = [
            "version",
            "set_config",
            "user",
            "quote_ident",
            "format_type",
            "shobj_description",
        ];
        let is_asked = |name: &str| begins.iter().any(|begin| name.starts_with(begin)) || is.contains(&name);
        !has_from && (is_asked(&name) || OF_NAMES.contains(&name.as_str()))
    })
}

/// Functions that read a time in a format, with the engine's types of their times.
const OF_TIMES: [(&str, &str); 2] = [("to_date", "DATE"), ("to_timestamp", "TIMESTAMP")];

/// Returns a statement whose times in a format that the engine reads anyway are casts of texts: tools write `TO_DATE('2013-02-01',
/// 'YYYY-MM-DD')`, and the engine has functions of these names that do something else. Places in the text stay.
pub(super) fn with_literal_times(sql: String) -> String {
    let lower = sql.to_ascii_lowercase();
    if !OF_TIMES.iter().any(|(name, _)| lower.contains(name)) {
        return sql;
    }
    let all: Vec<Token<'_>> = tokens(&sql).collect();
    let words = Words(&all);
    let (mut out, mut at) = (String::new(), 0);
    while let Some(token) = all.get(at) {
        let call = OF_TIMES.iter().find(|(name, _)| is_word(token, name));
        match call.and_then(|(_, of)| words.time(at, of)) {
            Some((cast, end)) => {
                let length = all[end].at + all[end].text.len() - token.at;
                out.push_str(&format!("{cast:length$}"));
                at = end + 1;
            }
            None => {
                out.push_str(token.text);
                at += 1;
            }
        }
    }
    out
}

/// Returns the names that a statement has, in lower case: those of tables, columns, functions and the language.
pub(super) fn names(sql: &str) -> BTreeSet<String> {
    let names = tokens(sql).map(|token| token.name().to_lowercase());
    names.filter(|name| !name.is_empty()).collect()
}

/// Returns true if a statement reads something.
pub(super) fn has_from(sql: &str) -> bool {
    tokens(sql).any(|token| is_word(&token, "from"))
}

/// Returns a statement about the catalog in words that the engine parses; none for a statement about anything else.
/// `outputs` has the outputs' names in lower case, which win over unqualified names of the catalog.
/// With `all_constant`, a statement that reads nothing is one about the catalog too.
pub(super) fn about_catalog(
    sql: &str,
    catalog: &dyn Catalog,
    outputs: &BTreeSet<String>,
    all_constant: bool,
) -> Option<String> {
    let all: Vec<Token<'_>> = tokens(sql).collect();
    let words = Words(&all);
    let has_from = all.iter().any(|token| is_word(token, "from"));
    let is_about = (0..all.len()).any(|at| {
        let name = all[at].name();
        let is_called = || words.sign(words.after(at), '(');
        let is_relation = || {
            let before = words.before(at);
            let follows = before.is_some_and(|before| {
                ["from", "join"].iter().any(|word| is_word(&all[before], word)) || is_sign(&all[before], ',')
            });
            follows && catalog.relations().contains(&name) && !outputs.contains(&name)
        };
        if name.is_empty() {
            return false;
        }
        let is_qualifier = SCHEMAS.contains(&name.as_str()) && words.sign(words.after(at), '.');
        let is_of_session = !has_from
            && (catalog.functions().contains(&name) && is_called()
                || OF_NAMES.contains(&name.as_str())
                || OF_SESSION.contains(&name.as_str()) && all[at].kind == Kind::Word);
        is_qualifier || is_of_session || is_relation()
    });
    (is_about || all_constant && !has_from).then(|| written(&words))
}

/// Writes a statement without the parts of Postgres' language that the engine does not parse or takes for something else.
fn written(words: &Words<'_>) -> String {
    let all = words.0;
    let (mut out, mut at) = (String::new(), 0);
    while let Some(token) = all.get(at) {
        // OPERATOR(pg_catalog.~) is ~.
        if is_word(token, "operator")
            && let Some((operator, end)) = words.operator(at)
        {
            out.push_str(&format!(" {operator} "));
            at = end + 1;
            continue;
        }
        // The only order of texts that there is.
        if is_word(token, "collate")
            && let Some(end) = words.collation(at)
        {
            at = end + 1;
            continue;
        }
        // A relation here.
        if is_word(token, "pg_get_keywords")
            && let Some(close) = words.empty_brackets(at)
        {
            out.push_str("pg_get_keywords");
            at = close + 1;
            continue;
        }
        let schema = SCHEMAS.into_iter().find(|schema| token.name() == *schema);
        let dot = words.after(at).filter(|dot| is_sign(&all[*dot], '.'));
        match (schema, dot) {
            (Some("information_schema"), Some(dot)) if words.after(dot).is_some() => {
                let relation = words.after(dot).unwrap_or(dot);
                let is_function = words.sign(words.after(relation), '(');
                let schema = if is_function { "" } else { "information_schema_" };
                out.push_str(&format!("{schema}{}", all[relation].name()));
                at = relation + 1;
            }
            (Some(_), Some(dot)) => at = dot + 1,
            _ => {
                // Names without quotes are in lower case there, also those of columns.
                match token.kind {
                    Kind::Word => out.push_str(&token.text.to_ascii_lowercase()),
                    _ => out.push_str(token.text),
                }
                at += 1;
            }
        }
    }
    out
}

/// The pieces of a statement.
struct Words<'a>(&'a [Token<'a>]);

impl Words<'_> {
    /// Returns the place of the next piece that is not blank.
    fn after(&self, at: usize) -> Option<usize> {
        (at + 1..self.0.len()).find(|at| self.0[*at].kind != Kind::Blank)
    }

    /// Returns the place of the piece before that is not blank.
    fn before(&self, at: usize) -> Option<usize> {
        (0..at).rev().find(|at| self.0[*at].kind != Kind::Blank)
    }

    fn sign(&self, at: Option<usize>, sign: char) -> bool {
        at.is_some_and(|at| is_sign(&self.0[at], sign))
    }

    /// Returns the place of the closing one of two brackets behind the word at a place that hold nothing.
    fn empty_brackets(&self, at: usize) -> Option<usize> {
        let open = self.after(at).filter(|open| is_sign(&self.0[*open], '('))?;
        self.after(open).filter(|close| is_sign(&self.0[*close], ')'))
    }

    /// Returns the cast for a call at a place with a text and a format of it, and the place of the closing bracket.
    fn time(&self, at: usize, of: &str) -> Option<(String, usize)> {
        let open = self.after(at).filter(|open| is_sign(&self.0[*open], '('))?;
        let text = self.after(open)?;
        let comma = self.after(text).filter(|comma| is_sign(&self.0[*comma], ','))?;
        let format = self.after(comma)?;
        let close = self.after(format).filter(|close| is_sign(&self.0[*close], ')'))?;
        let is_text = |at: usize| self.0[at].kind == Kind::Quoted && self.0[at].text.starts_with('\'');
        let format = self.0[format].text.trim_matches('\'').to_ascii_uppercase();
        let is_read = [
            "YYYY-MM-DD",
            "YYYY-MM-DD HH24:MI:SS",
            "YYYY-MM-DD HH24:MI:SS.US",
            "YYYY-MM-DD HH24:MI:SS.MS",
        ]
        .contains(&format.as_str());
        (is_text(text) && is_read).then(|| (format!("CAST({} AS {of})", self.0[text].text), close))
    }

    /// Returns the operator in brackets behind the word at a place, and the place of the closing bracket.
    fn operator(&self, at: usize) -> Option<(String, usize)> {
        let open = self.after(at).filter(|open| is_sign(&self.0[*open], '('))?;
        let close = (open..self.0.len()).find(|at| is_sign(&self.0[*at], ')'))?;
        let signs = self.0[open + 1..close]
            .iter()
            .filter_map(|token| match token.kind {
                Kind::Sign(sign) if sign != '.' => Some(sign),
                _ => None,
            });
        let operator: String = signs.collect();
        (!operator.is_empty()).then_some((operator, close))
    }

    /// Returns the last place of the name of a collation behind the word at a place, if it is the one that holds anyway.
    fn collation(&self, at: usize) -> Option<usize> {
        let mut last = self.after(at)?;
        if let Some(dot) = self.after(last).filter(|dot| is_sign(&self.0[*dot], '.')) {
            last = self.after(dot)?;
        }
        ["default", "c", "posix", "ucs_basic"]
            .contains(&self.0[last].name().as_str())
            .then_some(last)
    }
}

fn is_word(token: &Token<'_>, word: &str) -> bool {
    token.kind == Kind::Word && token.text.eq_ignore_ascii_case(word)
}

fn is_sign(token: &Token<'_>, sign: char) -> bool {
    token.kind == Kind::Sign(sign)
}
