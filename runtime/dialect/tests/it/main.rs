//! Tests of quoting with hostile names and texts, written by a dialect and read back by a naive tokenizer of its
//! syntax.
//!
//! The readers know nothing of the writers: they follow what the engines' makers say about tokens.

mod click_house;
mod duck_db;

use watershed_dialect::{Dialect, attacks};

/// A token, as far as quoting is concerned.
#[derive(Debug, PartialEq)]
enum Token {
    /// A text constant without its quotes.
    Text(String),
    /// A quoted name without its quotes.
    Name(String),
    /// A word, number or punctuation character.
    Other(String),
}

/// Checks that a quoted text and name are one token each, by comparing the tokens around them with those around
/// harmless ones.
fn stays_quoted(
    dialect: &dyn Dialect,
    read: impl Fn(&str) -> Vec<Token>,
    texts: impl Fn(&str) -> Vec<Token>,
) {
    attacks::each(|text, name| {
        let (one, other) = (dialect.text(text), dialect.name(name));
        let whole = dialect.path(&[name, "t"]);
        let statement =
            format!("SELECT {one} AS {other}, {one}/* c */FROM {whole} -- {{x}}\nWHERE ${{y}} <> {one}");
        let word = |word: &str| Token::Other(word.to_owned());
        let named = |name: &str| Token::Name(name.to_owned());
        let mut expected = vec![word("SELECT")];
        expected.extend(texts(text));
        expected.extend([word("AS"), named(name), word(",")]);
        expected.extend(texts(text));
        expected.extend([word("FROM"), named(name), word("."), named("t"), word("WHERE")]);
        expected.extend(["$", "{", "y", "}", "<", ">"].map(word));
        expected.extend(texts(text));
        assert_eq!(read(&statement), expected, "{statement}");
    });
}

/// Returns the word or character at the beginning of a text.
fn other(rest: &str) -> &str {
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    match end {
        Some(0) => &rest[..rest.chars().next().map_or(0, char::len_utf8)],
        Some(end) => &rest[..end],
        None => rest,
    }
}
