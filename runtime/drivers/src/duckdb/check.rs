//! Checks of outputs in the engine, which count violating rows.

use tokio_util::sync::CancellationToken;

use super::engine::{Engine, Intent};
use super::failure::{Source, not_one, plain_error};
use super::gate::Company;
use super::sys::{RawError, StatementKind};
use super::transaction::Work;
use crate::olap::{Check, Failing, Failure, SqlError, Value, Verdict, sole_statement};

/// The most violating rows that a verdict shows.
const SHOWN: usize = 5;
/// The most characters of a shown row.
const LONGEST_ROW: usize = 400;
/// The most bytes of values in a kept row.
const LARGEST_KEPT: usize = 4_096;
/// The most violating rows that are counted.
const MOST_COUNTED: u64 = 1_000_000;

/// Runs checks in read-only transactions. A failing check may abort its transaction; the next one then begins another.
pub(super) async fn check(
    engine: &Engine,
    checks: &[Check],
    cancel: &CancellationToken,
) -> Result<Vec<Verdict>, Failure> {
    let checks = checks.to_vec();
    engine
        .work_to(Intent::Read, cancel, Company::Others, move |work| {
            let mut verdicts = Vec::with_capacity(checks.len());
            work.run("BEGIN TRANSACTION READ ONLY", &[])?;
            for check in &checks {
                let verdict = verdict(work, check)?;
                if matches!(verdict, Verdict::Broken(_)) {
                    work.run("ROLLBACK", &[])?;
                    work.run("BEGIN TRANSACTION READ ONLY", &[])?;
                }
                verdicts.push(verdict);
            }
            work.roll_back();
            Ok(verdicts)
        })
        .await
}

/// Runs the checks of a build in the build's transaction.
pub(super) fn verdicts(work: &Work<'_>, checks: &[Check]) -> Result<Vec<Verdict>, Failure> {
    checks.iter().map(|check| verdict(work, check)).collect()
}

fn verdict(work: &Work<'_>, check: &Check) -> Result<Verdict, Failure> {
    work.check_cancelled()?;
    let found = failing(work, check, &check.sql);
    let found = match (found, &check.otherwise) {
        // Where the first lacks a column, the other one gives all of them: what that lacks is the mistake. Else what the engine
        // says of the first is about the text that stands in the file.
        (Err(Failure::Sql(error)), Some(otherwise)) if !is_aborted(&error) => {
            match failing(work, check, otherwise) {
                Err(Failure::Sql(_)) if !lacks_column(&error) => Err(Failure::Sql(error)),
                found => found,
            }
        }
        (found, _) => found,
    };
    match found {
        Ok(None) => Ok(Verdict::Holds),
        Ok(Some(failing)) => Ok(Verdict::Fails(failing)),
        Err(Failure::Sql(error)) if is_aborted(&error) => Ok(Verdict::NotRun),
        Err(Failure::Sql(error)) => Ok(Verdict::Broken(error)),
        Err(other) => Err(other),
    }
}

/// Returns true if a statement was refused because a column is not there.
fn lacks_column(error: &SqlError) -> bool {
    let says = |text: &str| error.message.contains(text);
    error.class == "binder" && (says("Referenced column") || says("does not have a column"))
}

/// Returns true if a statement was refused because an earlier error aborted the transaction.
fn is_aborted(error: &SqlError) -> bool {
    error.message.contains("transaction is aborted")
}

/// Returns the violating rows of a check; none if there are none.
fn failing(work: &Work<'_>, check: &Check, sql: &str) -> Result<Option<Failing>, Failure> {
    let sql = sole_statement(sql).map_err(not_one)?;
    let source = Source { prefix: "", sql };
    let fail = |raw: RawError| work.fail(&raw, Some(source));
    let statement = work.connection().prepare(sql).map_err(fail)?;
    if statement.kind() != StatementKind::Select {
        return Err(Failure::Sql(plain_error("a test is a SELECT")));
    }
    let mut answer = statement.stream(&[]).map_err(fail)?;
    let mut failing = Failing::default();
    let names: Vec<String> = answer.columns().iter().map(|(name, _)| name.clone()).collect();
    while let Some(chunk) = answer.next_chunk().map_err(fail)? {
        failing.rows += chunk.len() as u64;
        let (shown, kept) = (SHOWN - failing.first.len(), check.keep - failing.kept.len());
        if shown > 0 || kept > 0 {
            let rows = chunk.rows();
            let first = rows.iter().take(shown).map(|row| line(&names, row));
            failing.first.extend(first);
            failing
                .kept
                .extend(rows.iter().take(kept).map(|row| object(&names, row)));
        }
        if failing.rows >= MOST_COUNTED {
            (failing.rows, failing.more) = (MOST_COUNTED, true);
            break;
        }
        work.check_cancelled()?;
    }
    Ok((failing.rows > 0).then_some(failing))
}

/// Formats a row as a JSON object, leaving out texts beyond the size limit of a row.
fn object(names: &[String], row: &[Value]) -> String {
    let mut room = LARGEST_KEPT;
    let mut fields = serde_json::Map::new();
    for (name, value) in names.iter().zip(row) {
        let value = value.to_json();
        let size = name.len() + value.to_string().len();
        let fits = size <= room;
        room = room.saturating_sub(size);
        fields.insert(
            name.clone(),
            match fits {
                true => value,
                false => "…".into(),
            },
        );
    }
    serde_json::Value::Object(fields).to_string()
}

/// Formats a row as text: `a = 1, b = x`.
fn line(names: &[String], row: &[Value]) -> String {
    let mut line = String::new();
    for (name, value) in names.iter().zip(row) {
        if !line.is_empty() {
            line.push_str(", ");
        }
        line.push_str(&format!("{name} = {value}"));
        if let Some((at, _)) = line.char_indices().nth(LONGEST_ROW) {
            line.truncate(at);
            line.push('…');
            break;
        }
    }
    line
}
