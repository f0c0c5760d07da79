//! The text of statements: where one ends and where a place in it is. Knows strings, quoted names and comments, and
//! nothing else of the language.

use thiserror::Error;

/// A place in a text as people count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextPosition {
    /// From 1.
    pub line: usize,
    /// From 1, in Unicode scalar values.
    pub column: usize,
}

impl TextPosition {
    /// The place of a byte; one past the end stands for the end.
    pub fn at_byte(text: &str, offset: usize) -> Self {
        Self::after(
            text.char_indices()
                .take_while(|(at, _)| *at < offset)
                .map(|(_, c)| c),
        )
    }

    /// The place of the character with that index; one past the end stands for the end.
    pub fn at_char(text: &str, index: usize) -> Self {
        Self::after(text.chars().take(index))
    }

    /// Returns the state after reading `before`.
    fn after(before: impl Iterator<Item = char>) -> Self {
        before.fold(Self { line: 1, column: 1 }, |at, c| match c {
            '\n' => Self {
                line: at.line + 1,
                column: 1,
            },
            _ => Self {
                column: at.column + 1,
                ..at
            },
        })
    }
}

/// The reasons for which a text is not one statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SoleError {
    /// Nothing but blanks and comments.
    #[error("there is no statement")]
    None,
    /// Something follows the first statement's semicolon.
    #[error("there is more than one statement")]
    Several {
        /// The beginning of the second, in bytes.
        offset: usize,
    },
}

/// The one statement in a text, without its semicolon. Comments stay.
///
/// # Errors
/// [`SoleError`] when there is none or more than one.
pub fn sole_statement(sql: &str) -> Result<&str, SoleError> {
    let mut end = None;
    let mut seen = false;
    for (at, piece) in Pieces::new(sql) {
        match (piece, end) {
            (Piece::Blank, _) => {}
            (Piece::Semicolon, None) if seen => end = Some(at),
            (Piece::Semicolon, _) => {}
            (Piece::Other, None) => seen = true,
            (Piece::Other, Some(_)) => return Err(SoleError::Several { offset: at }),
        }
    }
    if !seen {
        return Err(SoleError::None);
    }
    Ok(sql.get(..end.unwrap_or(sql.len())).unwrap_or(sql))
}

/// The words with which a statement begins, in lower case, comments and brackets skipped.
pub(crate) fn leading_words(sql: &str) -> impl Iterator<Item = String> + '_ {
    Pieces::new(sql)
        .filter(|(_, piece)| *piece == Piece::Other)
        .filter_map(move |(at, _)| {
            let rest = sql.get(at..)?;
            let word: String = rest
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            (!word.is_empty()).then(|| word.to_lowercase())
        })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    /// Blanks or a comment.
    Blank,
    Semicolon,
    /// A string, a quoted name, a word, or one other character.
    Other,
}

/// The pieces of a text with the byte at which each begins.
struct Pieces<'a> {
    sql: &'a str,
    at: usize,
}

impl<'a> Pieces<'a> {
    fn new(sql: &'a str) -> Self {
        Self { sql, at: 0 }
    }
}

impl Iterator for Pieces<'_> {
    type Item = (usize, Piece);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.sql.get(self.at..).filter(|rest| !rest.is_empty())?;
        let (piece, length) = first_piece(rest);
        let start = self.at;
        self.at += length;
        Some((start, piece))
    }
}

/// The first piece of a text that is not empty, and its length in bytes.
fn first_piece(rest: &str) -> (Piece, usize) {
    let first = rest.chars().next().unwrap_or(' ');
    match first {
        ';' => (Piece::Semicolon, 1),
        c if c.is_whitespace() => (Piece::Blank, c.len_utf8()),
        '-' if rest.starts_with("--") => (Piece::Blank, rest.find('\n').unwrap_or(rest.len())),
        '/' if rest.starts_with("/*") => (Piece::Blank, block_comment(rest)),
        '\'' => (Piece::Other, quoted(rest, 1, '\'', false)),
        '"' => (Piece::Other, quoted(rest, 1, '"', false)),
        'e' | 'E' if rest[1..].starts_with('\'') => (Piece::Other, quoted(rest, 2, '\'', true)),
        '$' => (Piece::Other, dollar_quoted(rest)),
        c if c.is_alphanumeric() || c == '_' => {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'));
            (Piece::Other, end.unwrap_or(rest.len()))
        }
        c => (Piece::Other, c.len_utf8()),
    }
}

/// The length of a block comment, nested ones included; all of the text if it does not end.
fn block_comment(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(pair) = bytes.get(at..at + 2) {
        match pair {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// The length of a quoted text whose content begins at `from`; all of the text if it does not end. A doubled quote
/// is two quoted texts in a row, which comes to the same here.
fn quoted(rest: &str, from: usize, quote: char, backslash_escapes: bool) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip_while(|(at, _)| *at < from) {
        match c {
            _ if escaped => escaped = false,
            '\\' if backslash_escapes => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The length of `$tag$ ... $tag$`, or of the dollar alone (a parameter).
fn dollar_quoted(rest: &str) -> usize {
    let Some(tag_end) = rest[1..].find('$').map(|at| at + 2) else {
        return 1;
    };
    let tag = &rest[..tag_end];
    if !tag[1..tag_end - 1].chars().all(|c| c.is_alphabetic() || c == '_') {
        return 1;
    }
    rest[tag_end..]
        .find(tag)
        .map_or(rest.len(), |at| tag_end + at + tag.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_ends_at_its_semicolon() {
        for (sql, sole) in [
            ("select 1", "select 1"),
            ("select 1;", "select 1"),
            (" select 1 ; ; -- done\n", " select 1 "),
            ("select ';' ; /* ; */", "select ';' "),
            ("select 1 -- a; b", "select 1 -- a; b"),
            ("select \"a;b\"", "select \"a;b\""),
            ("select 'it''s; so'", "select 'it''s; so'"),
            ("select e'a\\';b'", "select e'a\\';b'"),
            ("select $$a;b$$, $x$ ; $$ ; $x$", "select $$a;b$$, $x$ ; $$ ; $x$"),
            ("select /* /* ; */ ; */ 1;", "select /* /* ; */ ; */ 1"),
            ("select $1", "select $1"),
        ] {
            assert_eq!(sole_statement(sql), Ok(sole), "{sql}");
        }
    }

    #[test]
    fn a_second_statement_is_found_wherever_it_hides() {
        for (sql, offset) in [
            ("select 1; drop table x", 10),
            ("select ''; x", 11),
            ("a;/* */b", 7),
        ] {
            assert_eq!(sole_statement(sql), Err(SoleError::Several { offset }), "{sql}");
        }
        for sql in ["", " ", ";", "-- nothing", "/* open"] {
            assert_eq!(sole_statement(sql), Err(SoleError::None), "{sql}");
        }
    }

    #[test]
    fn places_count_characters_and_lines() {
        let text = "über\nß x";
        assert_eq!(
            TextPosition::at_byte(text, 9),
            TextPosition { line: 2, column: 3 }
        );
        assert_eq!(
            TextPosition::at_char(text, 7),
            TextPosition { line: 2, column: 3 }
        );
        assert_eq!(
            TextPosition::at_byte(text, 999),
            TextPosition { line: 2, column: 4 }
        );
        assert_eq!(TextPosition::at_byte("", 0), TextPosition { line: 1, column: 1 });
    }

    #[test]
    fn the_leading_words_skip_comments_and_brackets() {
        let words: Vec<_> = leading_words("/* a */ EXPLAIN (\"x\") select").take(3).collect();
        assert_eq!(words, ["explain", "select"]);
    }
}
