//! Words that no statement in a sandbox has, wherever they stand: they make the engine run texts that nobody has looked at,
//! or end the process.
//!
//! The text is searched as it is, strings and comments included. To take it apart as the engine does would be another thing
//! to get wrong, and a word that stands in a string may be run by what reads the string. Names whose characters are written as
//! numbers (`U&"..."`) are unknown to the engine.

use super::RawError;
use crate::olap::leading_words;

/// The beginning of all messages about forbidden statements.
pub(in crate::duckdb) const WORDS: &str = "the sandbox runs no ";

/// Functions that are refused by their names alone, in lower case: logs in files that can't be written end the process, and
/// a serialized statement is one that nobody can read.
const FUNCTIONS: [&str; 2] = ["enable_logging", "json_execute_serialized_sql"];

/// The table function that runs a text as a query.
const QUERY: &str = "query";

/// Refuses a text with a forbidden word.
///
/// # Errors
/// When it has one, with the word.
pub(super) fn refuse(sql: &str) -> Result<(), RawError> {
    let lower = sql.to_ascii_lowercase();
    if let Some(function) = FUNCTIONS.iter().find(|function| lower.contains(**function)) {
        return Err(error(&format!("`{function}`, wherever it stands in a statement")));
    }
    if calls_query(&lower) {
        return Err(error("`query(...)`, which runs a text: write the query itself"));
    }
    // The engine reads the statements of a folder and runs them as if they stood here.
    match leading_words(sql).next().as_deref() {
        Some("import") => Err(error("IMPORT")),
        _ => Ok(()),
    }
}

/// Returns the error about something forbidden.
pub(super) fn error(what: &str) -> RawError {
    RawError(format!("Permission Error: {WORDS}{what}"))
}

/// Returns true if a text in lower case calls the function, quoted or not.
fn calls_query(lower: &str) -> bool {
    lower.match_indices(QUERY).any(|(at, _)| {
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let before = at.checked_sub(1).and_then(|at| lower.as_bytes().get(at));
        let is_end = before.is_some_and(|byte| is_of_name(*byte));
        !is_end && is_called(lower.get(at + QUERY.len()..).unwrap_or_default())
    })
}

/// Returns true if a bracket is the next thing behind the name of a function, or may be behind a comment.
fn is_called(rest: &str) -> bool {
    let mut rest = rest.strip_prefix('"').unwrap_or(rest);
    loop {
        // The engine takes more than ASCII for blanks.
        rest = rest.trim_start_matches(|c: char| !c.is_ascii_graphic());
        if rest.starts_with('(') || rest.starts_with("/*") {
            return true;
        }
        let Some(comment) = rest.strip_prefix("--") else {
            return false;
        };
        let Some(end) = comment.find(['\n', '\r']) else {
            return false;
        };
        rest = comment.get(end..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_texts_or_ends_the_process_is_refused_wherever_it_stands() {
        for sql in [
            "CALL enable_logging('QueryLog')",
            "SELECT * FROM main.\"ENABLE_logging\"()",
            "SELECT 'x enable_logging'",
            "FROM json_execute_serialized_sql(x)",
            "FROM query('SELECT 1')",
            "FROM QUERY ('a' || 'b')",
            "FROM system.main.\"query\"\n('a')",
            "FROM query -- (\n -- x\r ('a')",
            "FROM query/* */('a')",
            "FROM query\u{a0}('a')",
            "/* */ import DATABASE 'data'",
        ] {
            assert!(refuse(sql).is_err(), "{sql}");
        }
        for sql in [
            "SELECT * FROM query_table('a')",
            "SELECT query, my_query(1), count(*) FROM query GROUP BY query",
            "SELECT a AS query -- the last",
            "FROM queries",
        ] {
            assert_eq!(refuse(sql), Ok(()), "{sql}");
        }
    }
}
