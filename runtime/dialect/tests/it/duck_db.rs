//! Texts of DuckDB: a quote within quotes is doubled, and nothing else has a meaning there.

use watershed_dialect::DuckDb;

use crate::{Token, other, stays_quoted};

/// Reads a statement as DuckDB's manual describes literals and identifiers.
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

/// Returns what stands between quotes at the beginning of a text, and where it ends.
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

/// Returns the tokens of a text: no NUL can stand in a statement, so the parts around one are joined by a function.
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
