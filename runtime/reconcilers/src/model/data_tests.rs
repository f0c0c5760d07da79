//! The tests of a model, which are queries for failing rows, and their last results.

use std::{collections::BTreeSet, sync::Arc};

use watershed_compilers::{RenderError, render_text, sql::names_in, with_all_columns};
use watershed_core::{Error, SourcePosition};
use watershed_drivers::olap::{Check, Gravity, KeptRows, Verdict};
use watershed_outputs::{secrets::Secrets, traces::Made};
use watershed_proto::{ModelSpec, ModelTest, TestOutcome, TestResult};

use super::{failure, record::Record, statement};
use crate::places;

/// The number of failing tests that a message names.
const MOST_NAMES: usize = 3;
/// The number of characters for rows in the message about one failing test.
const LONGEST_ROWS: usize = 160;

/// The tests of a model, ready to run, with templates executed.
#[derive(Debug, Clone)]
pub struct Tests {
    stated: Vec<ModelTest>,
    /// The checks to run, one per test, in the order of the tests.
    pub checks: Vec<Check>,
    /// A digest of the tests; empty if there are none.
    pub digest: Vec<u8>,
}

impl Tests {
    /// Returns the tests of the model `name`, declared in `paths`; `secrets` holds the values of its variables.
    ///
    /// # Errors
    /// When a template in one of them can't be executed.
    pub fn for_model(
        spec: &ModelSpec,
        name: &str,
        environment: &str,
        paths: &[Arc<str>],
        secrets: &Secrets,
    ) -> Result<Self, Error> {
        let scope = statement::scope(secrets.open(&spec.variables)?, name, environment);
        let (mut stated, mut checks) = (Vec::new(), Vec::new());
        for test in &spec.tests {
            let Some(sql) = sql_of(test) else { continue };
            let sql = render_text(sql, &scope).map_err(|error| unrendered(test, &error, paths))?;
            checks.push(Check {
                otherwise: with_all_columns(&sql),
                sql,
                gravity: match test.warns {
                    true => Gravity::Warns,
                    false => Gravity::Undoes,
                },
                keep: test.store_failures as usize,
            });
            stated.push(test.clone());
        }
        let digest = digest(spec, &stated);
        Ok(Self {
            stated,
            checks,
            digest,
        })
    }

    /// Has the tests run again when something that a migration made, and that they read, changes.
    #[must_use]
    pub(crate) fn reading(mut self, made: &Made) -> Self {
        let names: BTreeSet<String> = self
            .checks
            .iter()
            .flat_map(|check| names_in(&check.sql))
            .collect();
        let reads = made.read_by_names(names.iter().map(String::as_str));
        self.digest.extend(reads.inputs.into_values().flatten());
        self
    }

    /// Returns true if the tests ran for an output and none of them blocked it.
    #[must_use]
    pub fn passed_for(&self, record: &Record) -> bool {
        record.tests == self.digest
            && record.results.len() == self.stated.len()
            && !record.results.iter().any(is_in_the_way)
    }

    /// Returns true if failing rows of any test are stored.
    #[must_use]
    pub fn store_failures(&self) -> bool {
        self.stated.iter().any(|test| test.store_failures > 0)
    }

    /// Returns the failing rows to store; `verdicts` are in the order of the checks.
    #[must_use]
    pub fn kept(&self, verdicts: &[Verdict]) -> Vec<KeptRows> {
        let both = self.stated.iter().zip(verdicts);
        let kept = both.filter_map(|(test, verdict)| match verdict {
            Verdict::Fails(failing) if !failing.kept.is_empty() => Some(KeptRows {
                test: test.name.clone(),
                rows: failing.kept.clone(),
            }),
            _ => None,
        });
        kept.collect()
    }

    /// Returns the results with secrets removed; `verdicts` are in the order of the checks.
    #[must_use]
    pub fn results(&self, verdicts: &[Verdict], secrets: &Secrets) -> Vec<TestResult> {
        let both = self.stated.iter().zip(verdicts);
        let hidden = |result: TestResult| TestResult {
            message: secrets.redact(&result.message).into_owned(),
            hint: secrets.redact(&result.hint).into_owned(),
            ..result
        };
        both.map(|(test, verdict)| hidden(result(test, verdict)))
            .collect()
    }
}

fn sql_of(test: &ModelTest) -> Option<&str> {
    let data = test.data.as_ref().filter(|data| data.resolver == "sql")?;
    data.properties.as_ref()?.str("sql")
}

/// Returns a digest of tests: their text and, if they have templates, the stored variables.
fn digest(spec: &ModelSpec, stated: &[ModelTest]) -> Vec<u8> {
    if stated.is_empty() {
        return Vec::new();
    }
    let mut hasher = blake3::Hasher::new();
    let mut text = |text: &str| {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    for test in stated {
        let sql = sql_of(test).unwrap_or_default();
        text(&test.name);
        text(sql);
        // Said only where it is so: digests were made before there was a choice.
        if test.warns {
            text("warns");
        }
        if test.store_failures > 0 {
            text("stores");
            text(&test.store_failures.to_string());
        }
        if sql.contains("{{") {
            spec.variables.iter().for_each(|(name, value)| {
                text(name);
                text(value);
            });
        }
    }
    hasher.finalize().as_bytes()[..16].to_vec()
}

fn unrendered(test: &ModelTest, error: &RenderError, paths: &[Arc<str>]) -> Error {
    Error {
        place: Some(place(&test.path, test.line, test.column, paths)),
        ..failure::from_render(error)
    }
}

fn result(test: &ModelTest, verdict: &Verdict) -> TestResult {
    let mut result = TestResult {
        name: test.name.clone(),
        warns: test.warns,
        line: test.line,
        column: test.column,
        path: test.path.clone(),
        ..TestResult::default()
    };
    let outcome = match verdict {
        Verdict::Holds => TestOutcome::Passed,
        Verdict::NotRun => TestOutcome::Unspecified,
        Verdict::Fails(failing) => {
            result.failures = failing.rows;
            result.more = failing.more;
            result.rows.clone_from(&failing.first);
            result.stored = failing.kept.len() as u64;
            TestOutcome::Failed
        }
        Verdict::Broken(error) => {
            let error = failure::from_sql(error);
            result.message = error.message.to_string();
            result.hint = error.hint.as_deref().unwrap_or_default().to_owned();
            TestOutcome::Broken
        }
    };
    result.outcome = outcome.into();
    result
}

/// Returns true if the result of a test blocks the output: a failure that is no warning, or a test that could not run.
fn is_in_the_way(result: &TestResult) -> bool {
    match result.outcome() {
        TestOutcome::Passed => false,
        TestOutcome::Failed => !result.warns,
        TestOutcome::Broken | TestOutcome::Unspecified => true,
    }
}

/// Returns the error about the tests that block an output, if any do.
#[must_use]
pub fn error(results: &[TestResult], paths: &[Arc<str>]) -> Option<Error> {
    let failing = results
        .iter()
        .filter(|result| is_in_the_way(result) && result.outcome() != TestOutcome::Unspecified);
    let failing: Vec<&TestResult> = failing.collect();
    let first = failing.first()?;
    let is_broken = |result: &&TestResult| result.outcome() == TestOutcome::Broken;
    let code = match failing.iter().all(is_broken) {
        true => "test-invalid",
        false => "test-failed",
    };
    let message = match failing.as_slice() {
        [one] => describe_one(one),
        several => describe_several(several, results.len()),
    };
    Some(Error {
        hint: Some("the new rows were thrown away, because its tests must hold".into()),
        place: Some(place(&first.path, first.line, first.column, paths)),
        ..Error::permanent(code, message)
    })
}

/// Describes a test that failed or could not run, in one line.
#[must_use]
pub fn told(result: &TestResult) -> String {
    let name = &result.name;
    if result.outcome() == TestOutcome::Broken {
        return format!("test \"{name}\" can't be run: {}", result.message);
    }
    let (more, plural) = match (result.more, result.failures) {
        (true, _) => ("more than ", "s"),
        (false, 1) => ("", ""),
        (false, _) => ("", "s"),
    };
    format!("test \"{name}\" failed: {more}{} row{plural}", result.failures)
}

fn describe_one(result: &TestResult) -> String {
    let told = told(result);
    if result.rows.is_empty() {
        return told;
    }
    let rows = result.rows.join("; ");
    match rows.char_indices().nth(LONGEST_ROWS) {
        Some((at, _)) => format!("{told} ({}…)", &rows[..at]),
        None if result.failures > result.rows.len() as u64 => format!("{told} ({rows}; ...)"),
        None => format!("{told} ({rows})"),
    }
}

fn describe_several(failing: &[&TestResult], all: usize) -> String {
    let names: Vec<String> = failing
        .iter()
        .take(MOST_NAMES)
        .map(|result| format!("\"{}\"", result.name))
        .collect();
    let more = match failing.len().saturating_sub(MOST_NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "{} of {all} tests failed: {}{more}",
        failing.len(),
        names.join(", ")
    )
}

/// Returns the position of a test in its file: the YAML file among the resource's `paths`, unless a path says otherwise.
#[must_use]
pub fn place(path: &str, line: u32, column: u32, paths: &[Arc<str>]) -> SourcePosition {
    SourcePosition {
        path: match path {
            "" => places::yaml(paths).into(),
            path => path.into(),
        },
        line: line.max(1),
        column: column.max(1),
    }
}
