//! Evaluation of conditions without tables, such as a policy's conditions about a viewer.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use watershed_locks::Unpoisoned;

use watershed_dialect::DuckDb;

use super::failure::classify;
use super::sys::{Answer, Connection, Database, RawError};
use crate::olap::{self, Failure, Statement, Statements as _, Value};

/// Time limit for the conditions of a policy, which compare a few constants.
const LONGEST: Duration = Duration::from_secs(2);
/// The most texts that are remembered as valid expressions.
const KNOWN: usize = 1_000;
/// The longest text that is remembered, in bytes.
const LONGEST_KNOWN: usize = 4_096;

/// An evaluator of conditions in its own in-memory engine, without access to tables, files, network or settings.
#[derive(Default)]
pub struct Conditions {
    /// Connection to the in-memory engine; none before the first use.
    connection: Mutex<Option<Connection>>,
    /// Texts that were found to be a single expression each.
    known: Mutex<HashSet<String>>,
}

impl Conditions {
    /// Creates an evaluator, without cost until the first use.
    pub fn new() -> Self {
        Self::default()
    }

    fn run(&self, sql: &str) -> Result<Vec<Vec<Value>>, Failure> {
        let mut kept = self.connection.lock().unpoisoned();
        let connection = match &mut *kept {
            Some(connection) => connection,
            none => none.insert(open().map_err(|raw| classified(&raw))?),
        };
        bounded(connection, sql).map_err(|raw| classified(&raw))
    }
}

impl olap::Conditions for Conditions {
    fn evaluate(&self, conditions: &[String]) -> Result<Vec<Option<bool>>, Failure> {
        if conditions.is_empty() {
            return Ok(Vec::new());
        }
        // On lines of its own, so that a comment ends where its condition does.
        let terms = conditions
            .iter()
            .map(|one| format!("CAST((\n{one}\n) AS BOOLEAN)"));
        let sql = format!("SELECT {}", terms.collect::<Vec<_>>().join(", "));
        let rows = self.run(&sql)?;
        let value = |value: &Value| match value {
            Value::Boolean(flag) => Some(*flag),
            _ => None,
        };
        match rows.as_slice() {
            [row] if row.len() == conditions.len() => Ok(row.iter().map(value).collect()),
            _ => Err(classified(&RawError(
                "Binder Error: a condition is more than one expression".to_owned(),
            ))),
        }
    }

    fn are_expressions(&self, texts: &[String]) -> Result<bool, Failure> {
        let mut known = self.known.lock().unpoisoned();
        let new: Vec<&String> = texts.iter().filter(|text| !known.contains(*text)).collect();
        if new.is_empty() {
            return Ok(true);
        }
        let texts: Vec<&str> = new.iter().map(|text| text.as_str()).collect();
        let rows = self.run(&DuckDb.write(&Statement::Expressions(&texts)))?;
        let all = DuckDb.not_one_expression(&texts, &rows).is_empty();
        if all {
            if known.len() + new.len() > KNOWN {
                known.clear();
            }
            known.extend(
                new.into_iter()
                    .filter(|text| text.len() <= LONGEST_KNOWN)
                    .cloned(),
            );
        }
        Ok(all)
    }
}

fn classified(raw: &RawError) -> Failure {
    classify(raw, None).0
}

impl std::fmt::Debug for Conditions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conditions").finish_non_exhaustive()
    }
}

fn open() -> Result<Connection, RawError> {
    let settings = [
        ("threads", "1"),
        ("memory_limit", "64MB"),
        ("errors_as_json", "true"),
        ("autoinstall_known_extensions", "false"),
        ("autoload_known_extensions", "false"),
        ("enable_external_access", "false"),
        ("lock_configuration", "true"),
    ];
    let settings: Vec<_> = settings.map(|(name, value)| (name, value.to_owned())).into();
    let connection = Connection::new(&Database::open(None, &settings)?)?;
    // A policy compares values: nobody needs there what a sandbox forbids.
    connection.guard();
    Ok(connection)
}

/// Runs a statement within the time limit.
fn bounded(connection: &Connection, sql: &str) -> Result<Vec<Vec<Value>>, RawError> {
    let interrupt = connection.interrupt();
    let (done, waits) = channel::<()>();
    thread::scope(|scope| {
        let watch = move || {
            if waits.recv_timeout(LONGEST) == Err(RecvTimeoutError::Timeout) {
                interrupt.interrupt();
            }
        };
        thread::Builder::new()
            .spawn_scoped(scope, watch)
            .map_err(|error| RawError(format!("Out of Memory Error: no thread can be started: {error}")))?;
        let rows = connection.run(sql, &[]).and_then(Answer::collect);
        drop(done);
        rows
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::olap::Conditions as _;

    fn evaluated(conditions: &[&str]) -> Result<Vec<Option<bool>>, Failure> {
        let owned: Vec<String> = conditions.iter().map(|one| (*one).to_owned()).collect();
        Conditions::new().evaluate(&owned)
    }

    #[test]
    fn a_text_that_closes_the_brackets_around_it_is_not_one_expression() {
        let conditions = Conditions::new();
        let is_one = |text: &str| conditions.are_expressions(&[text.to_owned()]).unwrap();
        for one in [
            "a > 1 OR b",
            "count(*) FILTER (x = ')') -- end (",
            "(SELECT max(a) FROM t)",
            "[1, 2][1]",
            "$$ ] $$ || e'\\'] '",
            "CASE WHEN a THEN 1 END /* ( */",
            "sum(a) OVER (PARTITION BY b)",
        ] {
            assert!(is_one(one), "{one}");
            assert!(is_one(one), "{one}, remembered");
        }
        for other in [
            "",
            "-- nothing",
            "*",
            "COLUMNS(*)",
            "1, 2",
            "a, ",
            "SELECT 1",
            "true) OR (true",
            "1] || [2",
            "1), [1], (2",
            "1) FROM t WHERE (true",
            "1; SELECT 2",
            "a AS b",
            "1 /* open",
            "'open",
            "(1",
        ] {
            assert!(!is_one(other), "{other}");
        }
    }

    #[test]
    fn conditions_are_true_false_or_null() {
        let found = evaluated(&[
            "'a' = 'a'",
            "1 > 2 -- never",
            "NULL = 'x'",
            "'true'",
            "2 IN (1, 2)",
        ]);
        let expected = [Some(true), Some(false), None, Some(true), Some(true)];
        assert_eq!(found.expect("conditions"), expected);
        assert_eq!(evaluated(&[]).expect("none"), []);
    }

    #[test]
    fn conditions_reach_nothing_and_end() {
        for condition in [
            "(SELECT count(*) FROM read_text('/etc/hostname')) > 0",
            "a = 1",
            "",
            "'maybe'",
            "(SELECT sum(a.i * b.i) FROM range(10000000) a(i), range(10000000) b(i)) > 0",
        ] {
            assert!(evaluated(&[condition]).is_err(), "{condition}");
        }
    }
}
