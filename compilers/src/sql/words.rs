//! Keywords of SQL that decide where table names stand.

use super::token::Token;

/// The role of the next name, as determined by the tokens before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Expect {
    /// No particular role.
    #[default]
    Anything,
    /// A table, which the words before require.
    Table,
    /// Another table of a list, after a comma.
    MoreTables,
    /// A position inside a call whose FROM names no table, as in `extract(year FROM x)`.
    CallWithFrom,
}

/// Words that begin a statement and are followed by its table.
const LEADS: [&str; 8] = [
    "pivot",
    "unpivot",
    "pivot_wider",
    "pivot_longer",
    "summarize",
    "describe",
    "desc",
    "show",
];

/// Returns true if the word at a token is followed by a table.
pub(super) fn asks_for_table(tokens: &[Token<'_>], at: usize, expected: Expect) -> bool {
    let Some(token) = tokens.get(at) else { return false };
    let before = |n: usize| at.checked_sub(n).and_then(|before| tokens.get(before));
    let is_lead = |words: &[&str]| words.iter().any(|word| token.is_word(word));
    if token.is_word("from") {
        let distinct = before(1).is_some_and(|word| word.is_word("distinct"))
            && before(2).is_some_and(|word| word.is_word("is") || word.is_word("not"));
        return expected != Expect::CallWithFrom && !distinct;
    }
    let begins = before(1)
        .is_none_or(|before| ["(", ")", ";"].iter().any(|sign| before.is_sign(sign)) || before.is_word("as"));
    let goes_on = || {
        let words = ["union", "all", "except", "intersect", "name"];
        before(1).is_some_and(|before| words.iter().any(|word| before.is_word(word)))
    };
    token.is_word("join")
        || begins && is_lead(&LEADS)
        || token.is_word("table") && (begins || goes_on())
        || token.is_word("copy") && begins && is_copied(tokens.get(at + 1..).unwrap_or_default())
        || token.is_word("using") && names_second_table(tokens, at)
}

/// Returns true if `COPY` is followed by a source table, as in `COPY a (b, c) TO`.
fn is_copied(rest: &[Token<'_>]) -> bool {
    let is_target = |token: &&Token<'_>| token.is_word("to") || token.is_word("from");
    rest.iter().find(is_target).is_some_and(|word| word.is_word("to"))
        && rest.first().is_some_and(|open| !open.is_sign("("))
}

/// Returns true if `USING` is followed by a table, as in `DELETE FROM a USING b` or `MERGE INTO a USING b`.
fn names_second_table(tokens: &[Token<'_>], at: usize) -> bool {
    let before = tokens.get(..at).unwrap_or_default().iter();
    let first = before.rev().take_while(|token| !token.is_sign(";")).last();
    let changes = first.is_some_and(|word| {
        ["delete", "merge", "with"]
            .iter()
            .any(|known| word.is_word(known))
    });
    let verb = |word: &str| {
        tokens
            .get(..at)
            .unwrap_or_default()
            .iter()
            .any(|token| token.is_word(word))
    };
    changes && (verb("delete") || verb("merge")) && tokens.get(at + 1).is_some_and(|next| !next.is_sign("("))
}

/// Returns true if a function takes a FROM that names no table, such as `extract`.
pub(super) fn has_from_inside(call: &Token<'_>) -> bool {
    ["extract", "substring", "trim", "overlay", "position"]
        .iter()
        .any(|name| call.is_word(name))
}

/// Returns true if a word can begin a query.
pub(super) fn begins_query(word: &str) -> bool {
    [
        "select",
        "with",
        "values",
        "from",
        "pivot",
        "unpivot",
        "describe",
        "summarize",
        "show",
    ]
    .iter()
    .any(|known| word.eq_ignore_ascii_case(known))
}

/// Returns true if a word may stand before a table's name, such as `lateral`.
pub(super) fn is_filler(word: &str) -> bool {
    ["only", "lateral", "table"]
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known))
}

/// Returns true if a word ends a list of tables.
pub(super) fn ends_tables(word: &str) -> bool {
    [
        "where",
        "group",
        "order",
        "having",
        "limit",
        "offset",
        "window",
        "qualify",
        "union",
        "intersect",
        "except",
        "select",
        "set",
        "returning",
    ]
    .iter()
    .any(|known| word.eq_ignore_ascii_case(known))
}
