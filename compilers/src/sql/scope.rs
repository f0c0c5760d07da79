//! The CTEs of a statement without a tree, with the range in which each is visible.
//!
//! A CTE is seen by those after it and by the query that its WITH belongs to, which ends with the bracket around it; by itself
//! only where it is recursive, which takes a UNION as well as the word.

use std::collections::{BTreeMap, BTreeSet};

use super::token::{Token, TokenKind};

/// The CTEs of a statement, by the index of the token from which they are visible.
#[derive(Debug, Default)]
pub(super) struct Ctes {
    /// Names of CTEs, in lower case, by the index of the first token that sees them.
    begins: BTreeMap<usize, Vec<String>>,
}

impl Ctes {
    /// Finds the CTEs of a statement.
    pub(super) fn of(tokens: &[Token<'_>]) -> Self {
        let mut ctes = Self::default();
        if !tokens.iter().any(|token| token.is_word("with")) {
            return ctes;
        }
        let brackets = Brackets::of(tokens);
        for (at, token) in tokens.iter().enumerate() {
            if token.is_word("with") {
                ctes.read_with(tokens, &brackets, at);
            }
        }
        ctes
    }

    /// Returns the names that become visible at a token.
    pub(super) fn seen_from(&self, at: usize) -> &[String] {
        self.begins.get(&at).map_or(&[], Vec::as_slice)
    }

    /// Reads the list of CTEs after a WITH; does nothing for other uses of the word, such as `WITH TIES`.
    fn read_with(&mut self, tokens: &[Token<'_>], brackets: &Brackets, with: usize) {
        let is_word = |at: usize, word: &str| tokens.get(at).is_some_and(|token| token.is_word(word));
        let is_sign = |at: usize, sign: &str| tokens.get(at).is_some_and(|token| token.is_sign(sign));
        let may_recur = is_word(with + 1, "recursive");
        let mut at = with + 1 + usize::from(may_recur);
        loop {
            let name = tokens
                .get(at)
                .filter(|token| matches!(token.kind, TokenKind::Word | TokenKind::Quoted));
            let Some(name) = name.map(|name| name.meaning().to_lowercase()) else {
                return;
            };
            at += 1;
            // Names of columns, and of those that make a row's key.
            if is_sign(at, "(") {
                at = brackets.after(at);
            }
            if is_word(at, "using") && is_word(at + 1, "key") && is_sign(at + 2, "(") {
                at = brackets.after(at + 2);
            }
            if !is_word(at, "as") {
                return;
            }
            at += 1;
            at += usize::from(is_word(at, "not"));
            at += usize::from(is_word(at, "materialized"));
            if !is_sign(at, "(") {
                return;
            }
            let end = brackets.after(at);
            let from = match may_recur && brackets.is_union(tokens, at) {
                true => at,
                false => end,
            };
            self.begins.entry(from).or_default().push(name);
            if !is_sign(end, ",") {
                return;
            }
            at = end + 1;
        }
    }
}

/// The index behind a bracket that is not closed; no token has it.
const UNCLOSED: usize = usize::MAX / 2;

/// The brackets of a statement, by token index.
#[derive(Debug, Default)]
struct Brackets {
    /// The closing bracket of each opening bracket.
    closes: BTreeMap<usize, usize>,
    /// Opening brackets that directly contain a UNION.
    unions: BTreeSet<usize>,
}

impl Brackets {
    fn of(tokens: &[Token<'_>]) -> Self {
        let (mut open, mut brackets) = (Vec::new(), Self::default());
        for (at, token) in tokens.iter().enumerate() {
            if token.is_sign("(") {
                open.push(at);
            } else if token.is_sign(")") {
                brackets.closes.extend(open.pop().map(|begin| (begin, at)));
            } else if token.is_word("union") {
                brackets.unions.extend(open.last());
            }
        }
        brackets
    }

    /// Returns the index behind the bracket that closes the one at `open`.
    fn after(&self, open: usize) -> usize {
        self.closes.get(&open).map_or(UNCLOSED, |close| close + 1)
    }

    /// Returns true if the bracketed query is a UNION, also within further brackets around all of it.
    fn is_union(&self, tokens: &[Token<'_>], open: usize) -> bool {
        let mut open = open;
        loop {
            let inner = open + 1;
            let is_wrapped = tokens.get(inner).is_some_and(|token| token.is_sign("("))
                && self
                    .closes
                    .get(&inner)
                    .is_some_and(|close| self.closes.get(&open) == Some(&(close + 1)));
            match (self.unions.contains(&open), is_wrapped) {
                (true, _) => return true,
                (false, true) => open = inner,
                (false, false) => return false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::token::tokens;

    /// Returns the tokens as text, with the names of CTEs before the token from which they are visible.
    fn seen(sql: &str) -> String {
        let tokens = tokens(sql);
        let ctes = Ctes::of(&tokens);
        let pieces = (0..=tokens.len()).flat_map(|at| {
            let names = ctes.seen_from(at).iter().map(|name| format!("<{name}>"));
            let text = tokens.get(at).map(|token| token.text.to_owned());
            names.chain(text).collect::<Vec<_>>()
        });
        pieces.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_cte_is_seen_behind_its_own_query() {
        for (sql, expected) in [
            (
                "WITH a AS (b), c AS (d) e",
                "WITH a AS ( b ) <a> , c AS ( d ) <c> e",
            ),
            (
                "WITH \"A b\"(x, y) AS (c) d",
                "WITH \"A b\" ( x , y ) AS ( c ) <a b> d",
            ),
            (
                "WITH a AS MATERIALIZED (b), c AS NOT MATERIALIZED (d) e",
                "WITH a AS MATERIALIZED ( b ) <a> , c AS NOT MATERIALIZED ( d ) <c> e",
            ),
            ("WITH RECURSIVE a AS (b) c", "WITH RECURSIVE a AS ( b ) <a> c"),
            (
                "WITH RECURSIVE a(x) USING KEY (x) AS (b UNION a) c",
                "WITH RECURSIVE a ( x ) USING KEY ( x ) AS <a> ( b UNION a ) c",
            ),
            (
                "WITH RECURSIVE a AS ((b UNION c)), d AS (SELECT (b UNION c)) e",
                "WITH RECURSIVE a AS <a> ( ( b UNION c ) ) , d AS ( SELECT ( b UNION c ) ) <d> e",
            ),
            ("LIMIT 1 WITH TIES", "LIMIT 1 WITH TIES"),
            (
                "timestamp WITH time zone AS (x)",
                "timestamp WITH time zone AS ( x )",
            ),
            ("WITH a AS (b", "WITH a AS ( b"),
        ] {
            assert_eq!(seen(sql), expected, "{sql}");
        }
    }
}
