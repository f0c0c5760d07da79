//! Words of SQL around the names of tables.

use super::token::Token;

/// The expected role of a name, by the tokens before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Expect {
    /// Nothing in particular.
    #[default]
    Anything,
    /// A table: the words before it ask for one.
    Table,
    /// More of a list of tables, if a comma comes.
    MoreTables,
    /// Inside a call whose FROM is none, as in `extract(year FROM x)`.
    CallWithFrom,
}

/// Statements that begin with a word, and with the table that they are about.
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

/// Returns true if a table stands after a word.
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

/// Returns true if `COPY` goes from a table, as in `COPY a (b, c) TO`.
fn is_copied(rest: &[Token<'_>]) -> bool {
    let is_target = |token: &&Token<'_>| token.is_word("to") || token.is_word("from");
    rest.iter().find(is_target).is_some_and(|word| word.is_word("to"))
        && rest.first().is_some_and(|open| !open.is_sign("("))
}

/// Returns true if a table stands after `USING`, as in `DELETE FROM a USING b` and `MERGE INTO a USING b`.
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

/// Returns true if a word of a call stands before a FROM that names no table.
pub(super) fn has_from_inside(call: &Token<'_>) -> bool {
    ["extract", "substring", "trim", "overlay", "position"]
        .iter()
        .any(|name| call.is_word(name))
}

/// Returns true if a query begins with a word.
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

/// Returns true if a word stands between another and the table that the other asks for.
pub(super) fn is_filler(word: &str) -> bool {
    ["only", "lateral", "table"]
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known))
}

/// Returns true if no more tables come behind a word.
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
