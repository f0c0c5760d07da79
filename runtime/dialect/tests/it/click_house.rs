//! ClickHouse's quoting: backslashes escape in texts and in quoted names.

use watershed_dialect::ClickHouse;

use crate::{Token, other, stays_quoted};

/// Splits a statement into tokens by the syntax in ClickHouse's manual.
fn read(statement: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = statement;
    while let Some(first) = rest.chars().next() {
        if first.is_ascii_whitespace() {
            rest = &rest[1..];
        } else if rest.starts_with("--") || rest.starts_with("#!") || rest.starts_with("# ") {
            rest = rest.split_once('\n').map_or("", |(_, after)| after);
        } else if rest.starts_with("/*") {
            rest = rest.split_once("*/").map_or("", |(_, after)| after);
        } else if matches!(first, '\'' | '"' | '`') {
            let mut reader = rest.chars();
            let content = within(&mut reader);
            tokens.push(match first {
                '\'' => Token::Text(content),
                _ => Token::Name(content),
            });
            rest = reader.as_str();
        } else {
            let word = other(rest);
            tokens.push(Token::Other(word.to_owned()));
            rest = &rest[word.len()..];
        }
    }
    tokens
}

/// Reads a quoted text up to the closing quote, which is consumed.
fn within(reader: &mut std::str::Chars<'_>) -> String {
    let quote = reader.next();
    let mut bytes = Vec::new();
    let mut put = |letter: char| bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
    loop {
        let letter = reader.next().expect("it has no end");
        if Some(letter) == quote {
            if reader.clone().next() != quote {
                return String::from_utf8(bytes).expect("UTF-8");
            }
            reader.next();
            put(letter);
        } else if letter == '\\' {
            match reader.next().expect("a letter behind a backslash") {
                'b' => put('\u{8}'),
                'f' => put('\u{c}'),
                'r' => put('\r'),
                'n' => put('\n'),
                't' => put('\t'),
                '0' => put('\0'),
                'a' => put('\u{7}'),
                'v' => put('\u{b}'),
                'e' => put('\u{1b}'),
                'N' => {}
                'x' => {
                    let mut digit = || reader.next().and_then(|digit| digit.to_digit(16));
                    let byte = digit().zip(digit()).map(|(high, low)| high * 16 + low);
                    put(byte.and_then(char::from_u32).expect("two digits"));
                }
                escaped @ ('\\' | '\'' | '"' | '`' | '/' | '=') => put(escaped),
                other => {
                    put('\\');
                    put(other);
                }
            }
        } else {
            put(letter);
        }
    }
}

#[test]
fn texts_and_names_of_click_house_stay_within_their_quotes() {
    stays_quoted(&ClickHouse, read, |text| vec![Token::Text(text.to_owned())]);
}

#[test]
fn quotes_of_another_engine_let_texts_out_here() {
    let read_in = |text: &str| {
        read(&watershed_dialect::Quoting::text(
            &watershed_dialect::DuckDb,
            text,
        ))
    };
    let inside = |text: &str| vec![Token::Text(text.to_owned())];
    assert_eq!(read_in("it's"), inside("it's"));
    assert_ne!(
        read_in(r"\' OR 1 -- "),
        inside(r"\' OR 1 -- "),
        "a reader that finds no way out finds nothing"
    );
}
