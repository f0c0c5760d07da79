//! Definitions in the statements of a migration, found by tokens, as CREATE statements have no tree.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    digest::digest,
    scan,
    token::{Token, TokenKind, tokens},
};

/// The objects that a text of SQL statements creates and changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statements {
    /// The created objects, by name in lower case; definitions of the same name are combined.
    pub definitions: BTreeMap<String, Definition>,
    /// Names in statements that may change rows, in lower case.
    pub mentions: BTreeSet<String>,
}

/// The statement that creates an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Definition {
    /// A 16-byte digest of the statement without comments and blanks.
    pub digest: [u8; 16],
    /// Other names in the statement, in lower case.
    pub names: BTreeSet<String>,
    /// Paths and patterns of local files that the statement reads.
    pub files: Vec<String>,
}

/// Words between CREATE and the name of the created object.
const BEFORE_NAME: [&str; 20] = [
    "or",
    "replace",
    "temp",
    "temporary",
    "persistent",
    "local",
    "global",
    "unlogged",
    "macro",
    "function",
    "view",
    "type",
    "sequence",
    "table",
    "schema",
    "recursive",
    "materialized",
    "if",
    "not",
    "exists",
];

/// First words of statements that change no rows of existing tables.
const CHANGES_NOTHING: [&str; 24] = [
    "analyze",
    "attach",
    "begin",
    "checkpoint",
    "comment",
    "commit",
    "create",
    "describe",
    "detach",
    "explain",
    "export",
    "from",
    "install",
    "load",
    "pragma",
    "reset",
    "select",
    "set",
    "show",
    "start",
    "summarize",
    "use",
    "vacuum",
    "values",
];

impl Statements {
    /// Reads the statements of a text whose templates were executed already.
    #[must_use]
    pub fn read(sql: &str) -> Self {
        let tokens: Vec<_> = tokens(sql)
            .into_iter()
            .filter(|token| token.kind != TokenKind::Comment)
            .collect();
        let mut read = Self::default();
        for statement in tokens.split(|token| token.is_sign(";")) {
            read.statement(sql, statement);
        }
        read
    }

    fn statement(&mut self, sql: &str, tokens: &[Token<'_>]) {
        let Some((first, rest)) = tokens.split_first() else {
            return;
        };
        if let Some(name) = created(first, rest) {
            let definition = define(sql, tokens, &name);
            self.definitions.entry(name).or_default().add(definition);
        }
        if !CHANGES_NOTHING.iter().any(|word| first.is_word(word)) {
            self.mentions.extend(scan::identifiers(tokens));
        }
    }
}

impl Definition {
    /// Combines another definition of the same name into this one, as a type and a table can share a name, and a later
    /// statement can replace an object.
    fn add(&mut self, other: Self) {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.digest).update(&other.digest);
        self.digest = digest(&hasher);
        self.names.extend(other.names);
        self.files.extend(other.files);
        self.files.dedup();
    }
}

/// Returns the name of the object that a statement creates, if it creates one.
fn created(first: &Token<'_>, rest: &[Token<'_>]) -> Option<String> {
    if !first.is_word("create") {
        return None;
    }
    let is_before = |token: &&Token<'_>| BEFORE_NAME.iter().any(|word| token.is_word(word));
    let mut at = rest.iter().take_while(is_before).count();
    while rest.get(at + 1).is_some_and(|dot| dot.is_sign(".")) {
        at += 2;
    }
    let name = rest.get(at)?;
    matches!(name.kind, TokenKind::Word | TokenKind::Quoted).then(|| name.meaning().to_lowercase())
}

fn define(sql: &str, tokens: &[Token<'_>], name: &str) -> Definition {
    let text = match (tokens.first(), tokens.last()) {
        (Some(first), Some(last)) => sql.get(first.range.start..last.range.end),
        _ => None,
    };
    let read = scan::analyse(text.unwrap_or_default());
    let tables = read.tables.iter().map(|table| table.name.to_lowercase());
    let names = read.names.into_iter().chain(tables);
    Definition {
        digest: digest_of(tokens),
        names: names.filter(|other| other != name).collect(),
        files: read.files,
    }
}

/// Returns a 16-byte digest of SQL statements, ignoring comments and blanks.
#[must_use]
pub fn statements_digest(sql: &str) -> [u8; 16] {
    digest_of(&tokens(sql))
}

fn digest_of(tokens: &[Token<'_>]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    for token in tokens.iter().filter(|token| token.kind != TokenKind::Comment) {
        hasher
            .update(&(token.text.len() as u64).to_le_bytes())
            .update(token.text.as_bytes());
    }
    digest(&hasher)
}

/// Returns the names in a statement, in lower case, including keywords.
#[must_use]
pub fn names_in(sql: &str) -> BTreeSet<String> {
    scan::identifiers(&tokens(sql))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(read: &Statements) -> Vec<&str> {
        read.definitions.keys().map(String::as_str).collect()
    }

    #[test]
    fn what_is_created_is_found_by_its_name() {
        let read = Statements::read(
            "CREATE OR REPLACE MACRO dollars(c) AS round(c / 100.0, 2);\n\
             create temp view \"My View\" as from t; CREATE TABLE IF NOT EXISTS main.rates (k INT);\n\
             CREATE TYPE mood AS ENUM ('sad;', 'ok'); SELECT 1",
        );
        assert_eq!(names(&read), ["dollars", "mood", "my view", "rates"]);
        assert_eq!(read.mentions, BTreeSet::new());
    }

    #[test]
    fn a_comment_or_a_blank_is_no_change_of_a_definition() {
        let read = |sql| Statements::read(sql).definitions["f"].digest;
        let one = read("CREATE MACRO f(x) AS x + 1");
        assert_eq!(one, read("-- sums\nCREATE  MACRO f(x)\nAS x + 1; SELECT 2"));
        assert_ne!(one, read("CREATE MACRO f(x) AS x + 2"));
        assert_ne!(one, read("CREATE MACRO f(x := 3) AS x + 1"));
    }

    #[test]
    fn a_definition_names_what_it_may_read() {
        let read = Statements::read(
            "CREATE MACRO euros(c) AS dollars(c) * (SELECT max(rate) FROM rates);\
             CREATE MACRO extra() AS TABLE SELECT * FROM read_csv('data/extra.csv');\
             CREATE MACRO more() AS TABLE FROM query('FROM ''data/more.csv''')",
        );
        assert!(read.definitions["euros"].names.contains("dollars"));
        assert!(read.definitions["euros"].names.contains("rates"));
        assert!(!read.definitions["euros"].names.contains("euros"));
        assert_eq!(read.definitions["extra"].files, ["data/extra.csv"]);
        assert_eq!(read.definitions["more"].files, ["data/more.csv"]);
    }

    #[test]
    fn statements_that_change_rows_mention_their_tables() {
        let read = Statements::read("UPDATE rates SET f = 2; INSERT INTO \"Other\" FROM rates");
        assert!(read.mentions.contains("rates") && read.mentions.contains("other"));
    }
}
