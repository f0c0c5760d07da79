//! Conditions on what stands in the engine: the rows that break them, counted.

use tokio_util::sync::CancellationToken;

use super::engine::{Company, Engine};
use super::failure::{Source, not_one, plain_error};
use super::sys::{Answer, RawError, StatementKind};
use super::work::Work;
use crate::olap::{Check, Failing, Failure, SqlError, Value, Verdict, sole_statement};

/// Rows that are shown of those that a check returns.
const SHOWN: usize = 5;
/// Characters of one of them.
const LONGEST_ROW: usize = 400;
/// Rows are counted up to here: more are as bad.
const MOST_COUNTED: u64 = 1_000_000;

impl Engine {
    /// Runs checks in read-only transactions. A check that can't be run may end one; the next begins another.
    pub(super) async fn run_checks(
        &self,
        checks: &[Check],
        cancel: &CancellationToken,
    ) -> Result<Vec<Verdict>, Failure> {
        let checks = checks.to_vec();
        self.work(cancel, Company::Others, move |work| {
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
}

/// Runs the checks of a build in its transaction.
pub(super) fn verdicts(work: &Work<'_>, checks: &[Check]) -> Result<Vec<Verdict>, Failure> {
    checks.iter().map(|check| verdict(work, check)).collect()
}

fn verdict(work: &Work<'_>, check: &Check) -> Result<Verdict, Failure> {
    work.check_cancelled()?;
    match failing(work, check) {
        Ok(None) => Ok(Verdict::Holds),
        Ok(Some(failing)) => Ok(Verdict::Fails(failing)),
        Err(Failure::Sql(error)) if is_aborted(&error) => Ok(Verdict::NotRun),
        Err(Failure::Sql(error)) => Ok(Verdict::Broken(error)),
        Err(other) => Err(other),
    }
}

/// Returns true if a statement was refused because one before it ended the transaction.
fn is_aborted(error: &SqlError) -> bool {
    error.message.contains("transaction is aborted")
}

/// The rows that a check returns, if it returns any.
fn failing(work: &Work<'_>, check: &Check) -> Result<Option<Failing>, Failure> {
    let sql = sole_statement(&check.sql).map_err(not_one)?;
    let source = Source { prefix: "", sql };
    let fail = |raw: RawError| work.fail(&raw, Some(source));
    let statement = work.connection().prepare(sql).map_err(fail)?;
    if statement.kind() != StatementKind::Select {
        return Err(Failure::Sql(plain_error("a test is a SELECT")));
    }
    let mut answer = statement.stream().map_err(fail)?;
    let mut failing = Failing::default();
    while let Some((rows, first)) = next(&mut answer, SHOWN - failing.first.len()).map_err(fail)? {
        failing.rows += rows;
        failing.first.extend(first);
        if failing.rows >= MOST_COUNTED {
            (failing.rows, failing.more) = (MOST_COUNTED, true);
            break;
        }
        work.check_cancelled()?;
    }
    Ok((failing.rows > 0).then_some(failing))
}

/// The number of rows of the next chunk, and up to `wanted` of them as text.
fn next(answer: &mut Answer<'_>, wanted: usize) -> Result<Option<(u64, Vec<String>)>, RawError> {
    let names: Vec<String> = answer.columns().iter().map(|(name, _)| name.clone()).collect();
    let Some(chunk) = answer.next_chunk()? else {
        return Ok(None);
    };
    let first = match wanted {
        0 => Vec::new(),
        wanted => chunk
            .rows()
            .iter()
            .take(wanted)
            .map(|row| line(&names, row))
            .collect(),
    };
    Ok(Some((chunk.len() as u64, first)))
}

/// `a = 1, b = x`.
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
