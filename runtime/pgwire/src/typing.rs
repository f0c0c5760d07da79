//! Types of parameters that a client did not say, as far as the words of a statement tell them, and the forms by which the engine
//! tells more.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::tokens::{Kind, Token, tokens};
use crate::types;

/// The most parameters that are looked at one by one.
const MOST_ALONE: usize = 32;

/// Returns the number of parameters of a statement: the greatest that it names.
pub(crate) fn number_in(sql: &str) -> usize {
    let numbers = tokens(sql).filter_map(|token| match token.kind {
        Kind::Parameter(number) => Some(number),
        _ => None,
    });
    numbers.max().unwrap_or(0)
}

/// Returns a statement in the forms that tell types of parameters: itself, and with each parameter alone among NULLs,
/// as `$1`.
pub(crate) fn forms(sql: String) -> Vec<String> {
    let number = number_in(&sql);
    let alone = |own: usize| -> String {
        let pieces = tokens(&sql).map(|token| match token.kind {
            Kind::Parameter(number) if number == own => "$1",
            Kind::Parameter(_) => "NULL",
            _ => token.text,
        });
        pieces.collect()
    };
    let others: Vec<String> = match number {
        2..=MOST_ALONE => (1..=number).map(alone).collect(),
        _ => Vec::new(),
    };
    std::iter::once(sql).chain(others).collect()
}

/// Returns the types to which a statement casts parameters, as in `$1::INTEGER`; the first of each parameter.
pub(crate) fn casts(sql: &str) -> BTreeMap<usize, u32> {
    let all: Vec<_> = tokens(sql).filter(|token| token.kind != Kind::Blank).collect();
    let sign = |at: usize, sign| all.get(at).is_some_and(|token| token.kind == Kind::Sign(sign));
    let mut found = BTreeMap::new();
    for (at, token) in all.iter().enumerate() {
        let Kind::Parameter(number) = token.kind else {
            continue;
        };
        let name = all.get(at + 3).filter(|_| sign(at + 1, ':') && sign(at + 2, ':'));
        let Some(oid) = name.and_then(|name| types::by_name(name.text)) else {
            continue;
        };
        let is_array = sign(at + 4, '[') && sign(at + 5, ']') && !sign(at + 6, '[');
        // A zone makes another type, and a size a list that is none of Postgres.
        let is_more = sign(at + 4, '[')
            || all
                .get(at + 4)
                .is_some_and(|token| token.text.eq_ignore_ascii_case("with"));
        let oid = match (is_array, is_more) {
            (true, _) => types::array_of(oid),
            (false, true) => None,
            (false, false) => Some(oid),
        };
        if let Some(oid) = oid {
            found.entry(number).or_insert(oid);
        }
    }
    found
}

/// Returns the places of `= ANY ($1)` in the pieces of a statement, in their order, with the numbers of the parameters.
pub(crate) fn any_of_parameters(all: &[Token<'_>]) -> Vec<(Range<usize>, usize)> {
    let meant: Vec<usize> = (0..all.len()).filter(|at| all[*at].kind != Kind::Blank).collect();
    let mut places = Vec::new();
    for five in meant.windows(5) {
        let [equal, any, open, parameter, close] = [0, 1, 2, 3, 4].map(|at| five[at]);
        let is_any = all[any].kind == Kind::Word && all[any].text.eq_ignore_ascii_case("any");
        let signs = [equal, open, close].map(|at| all[at].kind);
        // The end of another operator, such as `>=`, is none.
        let before = equal.checked_sub(1).map(|before| all[before].kind);
        let is_whole = !matches!(before, Some(Kind::Sign(sign)) if "<>!=~*+-/%&|^@#:".contains(sign));
        if let Kind::Parameter(number) = all[parameter].kind
            && is_any
            && is_whole
            && signs == ['=', '(', ')'].map(Kind::Sign)
        {
            places.push((equal..close + 1, number));
        }
    }
    places
}

/// Returns a statement in which `= ANY ($1)` is `IN ($1)`, by which the type of the elements can be found, and the numbers of the
/// parameters that are arrays of these.
pub(crate) fn elements(sql: &str) -> (String, BTreeSet<usize>) {
    let all: Vec<_> = tokens(sql).collect();
    let mut pieces: Vec<&str> = all.iter().map(|token| token.text).collect();
    let mut arrays = BTreeSet::new();
    for (range, number) in any_of_parameters(&all) {
        let is_bracket = |at: &usize| matches!(all[*at].kind, Kind::Sign('(' | ')') | Kind::Parameter(_));
        let words = range.clone().filter(|at| !is_bracket(at));
        words.for_each(|at| pieces[at] = " ");
        pieces[range.start] = " IN ";
        arrays.insert(number);
    }
    (pieces.concat(), arrays)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_elements_can_be_found() {
        let (sql, arrays) = elements("SELECT 'any' WHERE a = ANY($2) AND b=any ( $1 )");
        let words: Vec<&str> = sql.split_whitespace().collect();
        assert_eq!(words.join(" "), "SELECT 'any' WHERE a IN ($2) AND b IN ( $1 )");
        assert_eq!(arrays, [1, 2].into());
        for other in [
            "c <> ANY($3)",
            "c >= ANY($1)",
            "c != ANY($1)",
            "c = ANY($1 || $2)",
            "c = ALL($1)",
        ] {
            assert_eq!(elements(other), (other.to_owned(), BTreeSet::new()), "{other}");
        }
    }

    #[test]
    fn casts_say_types() {
        assert_eq!(
            casts(
                "$1::int, $2 :: BigInt [], $3::date[1], $4::other, '$5::int', $6, $7::int[][], $8::timestamp with time zone, \
                 $1::date, $9::numeric(9, 2)"
            ),
            [(1, 23), (2, 1016), (9, 1700)].into()
        );
    }

    #[test]
    fn each_parameter_stands_alone_once() {
        assert_eq!(number_in("SELECT $3, $1"), 3);
        assert_eq!(forms("a $1".to_owned()), ["a $1"]);
        assert_eq!(
            forms("$1 '$1' $2".to_owned()),
            ["$1 '$1' $2", "$1 '$1' NULL", "NULL '$1' $1"]
        );
    }
}
