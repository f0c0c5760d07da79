//! DuckDB's quoting: a doubled quote stands for one, and no other character has a meaning.

use watershed_dialect::DuckDb;

use crate::{Token, other, stays_quoted};

/// Splits a statement into tokens by the syntax in DuckDB's manual.
fn read(statement: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = statement;
    while let Some(first) = rest.chars().next() {
        let skipped = match rest {
            _ if first.is_ascii_whitespace() => 1,
            _ if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            _ => 0,
        };
        if skipped > 0 {
            rest = &rest[skipped..];
            continue;
        }
        if first == '\'' || first == '"' {
            let (content, length) = within(rest, first);
            tokens.push(match first {
                '\'' => Token::Text(content),
                _ => Token::Name(content),
            });
            rest = &rest[length..];
            continue;
        }
        let word = other(rest);
        tokens.push(Token::Other(word.to_owned()));
        rest = &rest[word.len()..];
    }
    tokens
}

/// Returns the content of the quoted text at the beginning, and its length.
fn within(text: &str, quote: char) -> (String, usize) {
    let mut content = String::new();
    let mut at = 1;
    while let Some(length) = text[at..].find(quote) {
        content.push_str(&text[at..at + length]);
        at += length + 1;
        if !text[at..].starts_with(quote) {
            return (content, at);
        }
        content.push(quote);
        at += 1;
    }
    panic!("it has no end: {text}");
}

/// Returns the tokens of a text constant. As no statement can contain a NUL, the parts around one are joined by a
/// function.
fn tokens_of(text: &str) -> Vec<Token> {
    if !text.contains('\0') {
        return vec![Token::Text(text.to_owned())];
    }
    let sign = |sign: &str| Token::Other(sign.to_owned());
    let mut tokens = Vec::from(["concat_ws", "(", "chr", "(", "0", ")"].map(sign));
    for part in text.split('\0') {
        tokens.extend([sign(","), Token::Text(part.to_owned())]);
    }
    tokens.push(sign(")"));
    tokens
}

#[test]
fn texts_and_names_of_duckdb_stay_within_their_quotes() {
    stays_quoted(&DuckDb, read, tokens_of);
}
