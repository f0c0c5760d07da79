//! Qualification of names in a statement with another database.

use super::{
    scan::places,
    token::{Token, TokenKind},
};

/// Returns a statement whose tables, and calls of the given table functions, are qualified with `database`. The
/// qualifier `called` in the statement means the same database.
pub fn within(sql: &str, database: &str, called: &str, functions: &[&str]) -> String {
    let (tokens, named) = places(sql);
    let mut edited = String::with_capacity(sql.len());
    let mut copied = 0;
    for last in named {
        let first = first_part(&tokens, last);
        let (Some(from), Some(to)) = (tokens.get(first), tokens.get(last)) else {
            continue;
        };
        let is_call = tokens.get(last + 1).is_some_and(|open| open.is_sign("("));
        let function = to.meaning().to_lowercase();
        if is_call && !functions.contains(&function.as_str()) {
            continue;
        }
        let is_called = last > first && from.meaning().eq_ignore_ascii_case(called);
        // A name of three parts says its database.
        if !is_called && last > first + 2 {
            continue;
        }
        edited.push_str(sql.get(copied..from.range.start).unwrap_or_default());
        edited.push_str(database);
        copied = from.range.end;
        if !is_called {
            edited.push('.');
            copied = from.range.start;
        }
    }
    edited.push_str(sql.get(copied..).unwrap_or_default());
    edited
}

/// Returns the index of the first part of a dotted name, given the index of the last.
fn first_part(tokens: &[Token<'_>], last: usize) -> usize {
    let mut first = last;
    let is_part = |token: &Token<'_>| matches!(token.kind, TokenKind::Word | TokenKind::Quoted);
    while let Some(before) = first.checked_sub(2)
        && tokens.get(first - 1).is_some_and(|dot| dot.is_sign("."))
        && tokens.get(before).is_some_and(is_part)
    {
        first = before;
    }
    first
}

#[cfg(test)]
mod tests {
    fn within(sql: &str) -> String {
        super::within(sql, "\"db\"", "lake", &["snapshots"])
    }

    #[test]
    fn tables_are_those_of_the_database_and_ctes_are_not() {
        assert_eq!(
            within(
                "WITH t AS (FROM orders AT (VERSION => 3)) SELECT t.id, a.b FROM t JOIN main.a USING (id), b -- FROM c"
            ),
            "WITH t AS (FROM \"db\".orders AT (VERSION => 3)) SELECT t.id, a.b FROM t JOIN \"db\".main.a USING (id), \"db\".b -- FROM c"
        );
        assert_eq!(
            within(
                "SELECT 'FROM x', extract(year FROM day) FROM \"Or ders\" o WHERE id IN (SELECT id FROM c)"
            ),
            "SELECT 'FROM x', extract(year FROM day) FROM \"db\".\"Or ders\" o WHERE id IN (SELECT id FROM \"db\".c)"
        );
    }

    #[test]
    fn the_database_may_be_called_by_its_name() {
        assert_eq!(
            within("FROM Lake.orders, lake.main.a, lake, else.where.a"),
            "FROM \"db\".orders, \"db\".main.a, \"db\".lake, else.where.a"
        );
    }

    #[test]
    fn of_functions_those_of_the_database_are_looked_for_there() {
        assert_eq!(
            within("FROM snapshots() JOIN lake.snapshots() ON true, range(3), read_csv('a.csv')"),
            "FROM \"db\".snapshots() JOIN \"db\".snapshots() ON true, range(3), read_csv('a.csv')"
        );
        assert_eq!(within("SELECT snapshots()"), "SELECT snapshots()");
        assert_eq!(within(""), "");
    }
}
