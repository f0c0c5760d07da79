//! Tokens of SQL, including template actions.

use std::{collections::VecDeque, ops::Range};

/// The lexical class of a token of SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A word without quotes: a keyword or an identifier.
    Word,
    /// An identifier between double quotes.
    Quoted,
    /// A text literal in any of its forms.
    Text,
    /// A numeric literal.
    Number,
    /// An operator, a bracket or another sign.
    Sign,
    /// A comment, of a line or a block.
    Comment,
    /// A template action, including its braces.
    Action,
}

/// A token of SQL, with its text and byte range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: TokenKind,
    pub(crate) text: &'a str,
    pub(crate) range: Range<usize>,
}

impl Token<'_> {
    pub(crate) fn is_word(&self, word: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(word)
    }

    pub(crate) fn is_sign(&self, sign: &str) -> bool {
        self.kind == TokenKind::Sign && self.text == sign
    }

    /// Returns the value of the token: identifiers and texts without their quotes.
    pub(crate) fn meaning(&self) -> String {
        let inner = |quote: char| {
            let inner = self.text.strip_prefix(quote).unwrap_or(self.text);
            let inner = inner.strip_suffix(quote).unwrap_or(inner);
            inner.replace(&format!("{quote}{quote}"), &quote.to_string())
        };
        match self.kind {
            TokenKind::Quoted => inner('"'),
            TokenKind::Text => inner('\''),
            _ => self.text.to_owned(),
        }
    }
}

/// Splits SQL into tokens; never fails. Actions inside comments are tokens of their own, as they are executed; a text
/// that contains an action is one token.
pub(crate) fn tokens(sql: &str) -> Vec<Token<'_>> {
    Tokens::from_sql(sql).collect()
}

/// Returns true if a text contains only comments and semicolons.
pub(crate) fn is_blank(sql: &str) -> bool {
    Tokens::from_sql(sql).all(|token| token.kind == TokenKind::Comment || token.is_sign(";"))
}

/// An iterator over the [`tokens`] of a text, for readers that need only the first few.
#[derive(Debug)]
pub(crate) struct Tokens<'a> {
    sql: &'a str,
    at: usize,
    /// Tokens that were read ahead: the actions of a comment, then the comment.
    waiting: VecDeque<Token<'a>>,
}

impl<'a> Tokens<'a> {
    pub(crate) fn from_sql(sql: &'a str) -> Self {
        Self {
            sql,
            at: 0,
            waiting: VecDeque::new(),
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        if let Some(token) = self.waiting.pop_front() {
            return Some(token);
        }
        let rest = self.sql.get(self.at..)?;
        let at = self.at + rest.len() - rest.trim_start().len();
        let rest = self.sql.get(at..).filter(|rest| !rest.is_empty())?;
        let (kind, length) = first(rest);
        let length = length.clamp(1, rest.len());
        let length = (length..=rest.len())
            .find(|end| rest.is_char_boundary(*end))
            .unwrap_or(rest.len());
        let text = rest.get(..length).unwrap_or(rest);
        self.at = at + length;
        let range = at..self.at;
        let token = Token { kind, text, range };
        if kind != TokenKind::Comment {
            return Some(token);
        }
        self.waiting.extend(actions(text, at));
        self.waiting.push_back(token);
        self.waiting.pop_front()
    }
}

fn first(rest: &str) -> (TokenKind, usize) {
    let mut chars = rest.chars();
    let (first, second) = (chars.next().unwrap_or_default(), chars.next().unwrap_or_default());
    match (first, second) {
        ('-', '-') => (TokenKind::Comment, rest.find('\n').unwrap_or(rest.len())),
        ('/', '*') => (TokenKind::Comment, block_comment(rest)),
        ('{', '{') => (TokenKind::Action, action_length(rest)),
        ('\'', _) => (TokenKind::Text, quoted(rest, 0, '\'', false)),
        ('e' | 'E', '\'') => (TokenKind::Text, quoted(rest, 1, '\'', true)),
        ('"', _) => (TokenKind::Quoted, quoted(rest, 0, '"', false)),
        ('$', _) => dollar(rest),
        (c, _) if c.is_ascii_digit() => (TokenKind::Number, number(rest)),
        ('.', d) if d.is_ascii_digit() => (TokenKind::Number, number(rest)),
        (c, _) if is_word_char(c) => (
            TokenKind::Word,
            rest.find(|c| !is_word_char(c)).unwrap_or(rest.len()),
        ),
        _ => (TokenKind::Sign, sign(rest)),
    }
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || !c.is_ascii()
}

/// Returns the length in bytes of a block comment at the start of a text; comments nest.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(next) = rest.get(at..).and_then(|rest| rest.find(['*', '/'])) {
        at += next;
        match rest.get(at..at + 2) {
            Some("/*") => (depth, at) = (depth + 1, at + 2),
            Some("*/") => (depth, at) = (depth.saturating_sub(1), at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// Returns the length in bytes of the template action at the start of a text, up to the closing braces outside its
/// texts and comment.
pub(crate) fn action_length(rest: &str) -> usize {
    let inner = rest.get(2..).unwrap_or_default();
    if inner.strip_prefix("- ").unwrap_or(inner).starts_with("/*")
        && let Some(end) = rest.find("*/")
    {
        let close = rest.get(end..).and_then(|rest| rest.find("}}"));
        return close.map_or(rest.len(), |close| end + close + 2);
    }
    let mut quote = None;
    let mut escaped = false;
    let mut before = ' ';
    for (at, c) in rest.char_indices().skip(2) {
        match (quote, c) {
            (Some(_), _) if escaped => escaped = false,
            (Some('"'), '\\') => escaped = true,
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '`') => quote = Some(c),
            (None, '}') if before == '}' => return at + 1,
            (None, _) => {}
        }
        before = c;
    }
    rest.len()
}

fn quoted(rest: &str, start: usize, quote: char, escapes: bool) -> usize {
    let mut chars = rest.char_indices().skip(start + 1).peekable();
    while let Some((at, c)) = chars.next() {
        if escapes && c == '\\' {
            chars.next();
        } else if c == quote {
            if chars.peek().is_some_and(|(_, next)| *next == quote) {
                chars.next();
            } else {
                return at + quote.len_utf8();
            }
        }
    }
    rest.len()
}

/// Reads a dollar-quoted text or a parameter; returns its kind and length in bytes.
fn dollar(rest: &str) -> (TokenKind, usize) {
    let tag = rest
        .get(1..)
        .and_then(|rest| rest.find(|c: char| !is_word_char(c)).map(|end| end + 1));
    let Some(tag) = tag.filter(|end| rest.get(*end..).is_some_and(|rest| rest.starts_with('$'))) else {
        let end = rest
            .get(1..)
            .and_then(|rest| rest.find(|c: char| !is_word_char(c)))
            .map(|end| end + 1);
        return (TokenKind::Sign, end.unwrap_or(rest.len()));
    };
    let (open, body) = rest.split_at(tag + 1);
    let end = body
        .find(open)
        .map_or(rest.len(), |end| tag + 1 + end + open.len());
    (TokenKind::Text, end)
}

fn number(rest: &str) -> usize {
    let mut before = ' ';
    rest.find(|c: char| {
        let inside = c.is_ascii_alphanumeric()
            || matches!(c, '.' | '_')
            || (matches!(c, '+' | '-') && matches!(before, 'e' | 'E'));
        before = c;
        !inside
    })
    .unwrap_or(rest.len())
}

/// Returns the length in bytes of the sign at the start of a text, which may have several characters.
fn sign(rest: &str) -> usize {
    const LONG: [&str; 14] = [
        "->>", "::", "<>", "!=", "<=", ">=", "==", "||", "->", "=>", ":=", "**", "//", "~~",
    ];
    LONG.iter()
        .find(|sign| rest.starts_with(**sign))
        .map_or(1, |sign| sign.len())
}

fn actions(comment: &str, start: usize) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = comment.get(at..).and_then(|rest| rest.find("{{")) {
        at += next;
        let length = action_length(comment.get(at..).unwrap_or_default()).max(1);
        if let Some(text) = comment.get(at..at + length) {
            found.push(Token {
                kind: TokenKind::Action,
                text,
                range: start + at..start + at + length,
            });
        }
        at += length;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(sql: &str) -> Vec<&str> {
        tokens(sql).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn quotes_comments_and_actions_are_kept_whole() {
        assert_eq!(
            texts("a.'b''c' \"d\"\"e\" -- f\n/* g /* h */ */i"),
            ["a", ".", "'b''c'", "\"d\"\"e\"", "-- f", "/* g /* h */ */", "i"]
        );
        assert_eq!(
            texts("x{{ ref \"a }}\" }}y 1.5e-3 $$it's$$ $1 E'\\''"),
            [
                "x",
                "{{ ref \"a }}\" }}",
                "y",
                "1.5e-3",
                "$$it's$$",
                "$1",
                "E'\\''"
            ]
        );
        assert_eq!(
            texts("-- {{ ref \"a\" }}\nb"),
            ["{{ ref \"a\" }}", "-- {{ ref \"a\" }}", "b"]
        );
    }

    #[test]
    fn any_text_can_be_cut_and_ends() {
        for text in [
            "'",
            "\"",
            "$",
            "$a$",
            "{{",
            "/*",
            "é'é",
            "-",
            "/",
            "\u{1F600}",
            "e'",
            "1e",
        ] {
            let cut: usize = tokens(text).iter().map(|token| token.text.len()).sum();
            assert_eq!(cut, text.len(), "{text}");
        }
    }
}
