//! Splitting of SQL texts into statements, and positions in them. Only strings, quoted names and comments are
//! understood.

use thiserror::Error;

/// A position in a text as line and column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextPosition {
    /// Line number in the text, from 1.
    pub line: usize,
    /// Column in Unicode scalar values, from 1.
    pub column: usize,
}

impl TextPosition {
    /// Returns the position of a byte; the end of the text if out of range.
    pub fn at_byte(text: &str, offset: usize) -> Self {
        Self::after(
            text.char_indices()
                .take_while(|(at, _)| *at < offset)
                .map(|(_, c)| c),
        )
    }

    /// Returns the position of a character by index; the end of the text if out of range.
    pub fn at_char(text: &str, index: usize) -> Self {
        Self::after(text.chars().take(index))
    }

    /// Returns the position after the characters `before`.
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

/// The reason why a text is not a single statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SoleError {
    /// The text contains only whitespace and comments.
    #[error("there is no statement")]
    None,
    /// A second statement follows the first one's semicolon.
    #[error("there is more than one statement")]
    Several {
        /// Byte offset of the second statement.
        offset: usize,
    },
}

/// Returns the only statement in a text, with comments but without its semicolon.
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

/// Returns the words at the beginning of a statement in lower case, skipping comments and brackets.
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

/// Target of the spans of statements by authors and callers, which `tracing` makes at its level TRACE.
pub const STATEMENTS: &str = "watershed::statement";

/// Length of the longest text without values, in bytes.
const SHOWN: usize = 2_000;

/// Returns a statement without what may be somebody's data: texts and numbers are `?`, and comments are gone. Cut if it is
/// long.
pub(crate) fn without_values(sql: &str) -> String {
    let mut shown = String::new();
    for (at, piece) in Pieces::new(sql) {
        let text = sql.get(at..at + first_piece(&sql[at..]).1).unwrap_or_default();
        let is_value = match text.chars().next() {
            Some('"') => false,
            Some('$') => text.len() > 1,
            first => first.is_some_and(|first| first.is_numeric()) || text.contains('\''),
        };
        match piece {
            Piece::Blank if shown.ends_with(' ') => {}
            Piece::Blank => shown.push(' '),
            _ if is_value => shown.push('?'),
            _ => shown.push_str(text),
        }
        if shown.len() > SHOWN {
            shown.truncate(shown.floor_char_boundary(SHOWN));
            shown.push_str(" ...");
            break;
        }
    }
    shown.trim().to_owned()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    /// Whitespace or a comment.
    Blank,
    Semicolon,
    /// A string, a quoted name, a word, or one other character.
    Other,
}

/// Lexical pieces of a text, each with its byte offset.
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

/// Returns the first piece of a non-empty text, and its length in bytes.
fn first_piece(rest: &str) -> (Piece, usize) {
    let first = rest.chars().next().unwrap_or(' ');
    match first {
        ';' => (Piece::Semicolon, 1),
        c if c.is_whitespace() => (Piece::Blank, c.len_utf8()),
        '-' if rest.starts_with("--") => (Piece::Blank, rest.find(['\n', '\r']).unwrap_or(rest.len())),
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

/// Returns the length of a block comment including nested ones; the rest of the text if unterminated.
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

/// Returns the length of a quoted text whose content begins at `from`; the rest of the text if unterminated. A doubled
/// quote counts as two adjacent quoted texts, with the same result.
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

/// Returns the length of `$tag$ ... $tag$`, or of the dollar alone for a parameter.
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

/// First words of statements that EXPLAIN may contain. EXPLAIN ANALYZE executes them, and the engine's read-only
/// transaction permits COPY to files.
const READING_WORDS: [&str; 10] = [
    "select",
    "from",
    "with",
    "values",
    "table",
    "pivot",
    "unpivot",
    "describe",
    "show",
    "summarize",
];

/// Returns true if the first words of a statement are those of a read-only one.
pub(crate) fn reads(sql: &str) -> bool {
    let mut words = leading_words(sql).skip_while(|word| {
        matches!(
            word.as_str(),
            "explain" | "analyze" | "format" | "json" | "html" | "graphviz" | "text" | "yaml"
        )
    });
    words
        .next()
        .is_some_and(|word| READING_WORDS.contains(&word.as_str()))
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
    fn s_api30_a_statement_is_shown_without_values() {
        for (sql, shown) in [
            (
                "select a, 'x''y' from t  where b = 12.5 -- so",
                "select a, ?? from t where b = ?.?",
            ),
            (
                "select $$secret$$, e'a\\'b', $1, \"q'1\"",
                "select ?, ?, $?, \"q'1\"",
            ),
            ("select x'0a', 0x1F, 1e10, a1 /* 'b' */;", "select x?, ?, ?, a1 ;"),
            ("select 'open", "select ?"),
            ("select e'open", "select ?"),
            ("select $tag$open", "select ?"),
            ("", ""),
        ] {
            assert_eq!(without_values(sql), shown, "{sql}");
        }
        assert!(without_values(&"ä, ".repeat(SHOWN)).len() < SHOWN + 10);
    }

    #[test]
    fn a_second_statement_is_found_wherever_it_hides() {
        for (sql, offset) in [
            ("select 1; drop table x", 10),
            ("select ''; x", 11),
            ("a;/* */b", 7),
            ("a -- \r; b", 8),
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
