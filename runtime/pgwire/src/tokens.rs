//! Words, texts and parameters of a statement, told apart as the engine tells them.

/// The kind of a piece of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Whitespace or a comment.
    Blank,
    /// A word without quotes, or a number.
    Word,
    /// A text or a name in quotes.
    Quoted,
    /// A parameter, by its number.
    Parameter(usize),
    /// One other sign.
    Sign(char),
}

/// A piece of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// Kind of the piece.
    pub kind: Kind,
    /// The piece itself.
    pub text: &'a str,
    /// Offset of the piece, in bytes.
    pub at: usize,
}

impl Token<'_> {
    /// Returns the name that the piece is, in lower case unless it is quoted; nothing for other pieces.
    pub fn name(&self) -> String {
        let quoted = self
            .text
            .strip_prefix('"')
            .and_then(|text| text.strip_suffix('"'));
        match (self.kind, quoted) {
            (Kind::Word, _) => self.text.to_ascii_lowercase(),
            (Kind::Quoted, Some(text)) => text.replace("\"\"", "\""),
            _ => String::new(),
        }
    }
}

/// Returns the pieces of a text; together they are the text.
pub fn tokens(sql: &str) -> impl Iterator<Item = Token<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = sql.get(at..).filter(|rest| !rest.is_empty())?;
        let (kind, length) = next(rest);
        let token = Token {
            kind,
            text: &rest[..length],
            at,
        };
        at += length;
        Some(token)
    })
}

/// Returns the statements of a text, which semicolons part. None of them is blank.
pub(crate) fn statements(sql: &str) -> Vec<&str> {
    let (mut all, mut from, mut is_blank) = (Vec::new(), 0, true);
    for token in tokens(sql) {
        match token.kind {
            Kind::Sign(';') => {
                if !is_blank {
                    all.push(&sql[from..token.at]);
                }
                (from, is_blank) = (token.at + 1, true);
            }
            Kind::Blank => {}
            _ => is_blank = false,
        }
    }
    if !is_blank {
        all.push(&sql[from..]);
    }
    all
}

/// Returns kind and length of the first piece.
fn next(rest: &str) -> (Kind, usize) {
    let bytes = rest.as_bytes();
    let second = bytes.get(1).copied().unwrap_or(0);
    match bytes[0] {
        b'-' if second == b'-' => (Kind::Blank, rest.find('\n').unwrap_or(rest.len())),
        b'/' if second == b'*' => (Kind::Blank, comment(bytes)),
        b'\'' => (Kind::Quoted, quoted(bytes, 0, b'\'', false)),
        b'"' => (Kind::Quoted, quoted(bytes, 0, b'"', false)),
        b'e' | b'E' if second == b'\'' => (Kind::Quoted, quoted(bytes, 1, b'\'', true)),
        b'$' => dollar(rest),
        _ => {
            let first = rest.chars().next().unwrap_or(' ');
            let is_of_word = |sign: char| sign.is_alphanumeric() || sign == '_' || sign == '$';
            let end = |is: &dyn Fn(char) -> bool| rest.find(|sign| !is(sign)).unwrap_or(rest.len());
            match first {
                first if first.is_whitespace() => (Kind::Blank, end(&char::is_whitespace)),
                first if is_of_word(first) => (Kind::Word, end(&is_of_word)),
                sign => (Kind::Sign(sign), sign.len_utf8()),
            }
        }
    }
}

/// Returns the length of a comment, which may hold others.
fn comment(bytes: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < bytes.len() {
        match bytes.get(at..at + 2) {
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") => {
                (depth, at) = (depth - 1, at + 2);
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Returns the length of a quoted text that begins at an offset.
fn quoted(bytes: &[u8], from: usize, quote: u8, has_escapes: bool) -> usize {
    let mut at = from + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if has_escapes => at += 2,
            sign if sign == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
            sign if sign == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Returns kind and length of what begins with a dollar: a parameter, or a text in dollars.
fn dollar(rest: &str) -> (Kind, usize) {
    let digits = rest[1..].bytes().take_while(u8::is_ascii_digit).count();
    if digits > 0 {
        let number = rest[1..=digits].parse().unwrap_or(usize::MAX);
        return (Kind::Parameter(number), digits + 1);
    }
    let tag = rest[1..].find(|sign: char| !(sign.is_alphanumeric() || sign == '_'));
    let tag = tag.filter(|tag| rest[1 + tag..].starts_with('$'));
    let Some(tag) = tag.map(|tag| &rest[..tag + 2]) else {
        return (Kind::Sign('$'), 1);
    };
    let end = rest[tag.len()..].find(tag).map(|end| end + 2 * tag.len());
    (Kind::Quoted, end.unwrap_or(rest.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_pieces_are_the_text(sql in "(\\PC|['\"$/*;\\\\e1 -]){0,40}") {
            let joined: String = tokens(&sql).map(|token| token.text).collect();
            prop_assert_eq!(joined, sql);
        }
    }

    #[test]
    fn parameters_are_found_where_the_engine_finds_them() {
        let found = |sql: &str| -> Vec<usize> {
            let numbers = tokens(sql).filter_map(|token| match token.kind {
                Kind::Parameter(number) => Some(number),
                _ => None,
            });
            numbers.collect()
        };
        assert_eq!(found("SELECT $1, $2::int"), [1, 2]);
        for none in [
            "'$1'",
            "\"$1\"",
            "-- $1",
            "/* /* */ $1 */",
            "$$ $1 $$",
            "$a$ $1 $$ $a$",
            "e'\\' $1'",
            "'' '$1'''",
            "a$1",
        ] {
            assert!(found(none).is_empty(), "{none}");
        }
        assert_eq!(found("e'\\''||$3"), [3]);
        assert_eq!(found("'a'$1"), [1]);
    }

    #[test]
    fn statements_end_with_semicolons_outside_of_quotes() {
        assert_eq!(
            statements(";; SELECT ';' ; -- b;\n SELECT 2"),
            [" SELECT ';' ", " -- b;\n SELECT 2"]
        );
        assert!(statements(" ; -- nothing").is_empty());
    }
}
