//! Tests of models as documents show them.

use std::sync::Arc;

use watershed_api::documents::{At, Diagnostic, ResourceName, Severity, TestDocument, TestOutcome};
use watershed_core::Row;
use watershed_proto::{Message, ModelStateGlance, TestOutcome as Stored, TestResult};
use watershed_reconcilers::{model, model::data_tests};

/// Returns the results of a model's tests in their last run.
pub(crate) fn from_row(row: &Row) -> Vec<TestDocument> {
    let results = results(row);
    results
        .iter()
        .map(|result| document(result, &row.paths))
        .collect()
}

/// Returns the stored results of a model's tests.
fn results(row: &Row) -> Vec<TestResult> {
    let state = row.state.as_deref().filter(|_| row.kind.as_str() == model::KIND);
    let state = state.and_then(|state| ModelStateGlance::decode(state).ok());
    state.map(|state| state.test_results).unwrap_or_default()
}

/// Returns one test with its result, for a document.
pub(crate) fn document(result: &TestResult, paths: &[Arc<str>]) -> TestDocument {
    let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let place = data_tests::place(&result.path, result.line, result.column, paths);
    TestDocument {
        name: result.name.clone(),
        outcome: match result.outcome() {
            Stored::Passed => TestOutcome::Passed,
            Stored::Failed => TestOutcome::Failed,
            Stored::Broken => TestOutcome::Invalid,
            Stored::Unspecified => TestOutcome::NotRun,
        },
        severity: if result.warns {
            Severity::Warning
        } else {
            Severity::Error
        },
        failures: result.failures,
        more: result.more,
        rows: result.rows.clone(),
        stored: result.stored,
        message: text(&result.message),
        hint: text(&result.hint),
        at: At {
            path: place.path.to_string(),
            line: place.line,
            column: place.column,
        },
    }
}

/// Returns the finding of `watershed test` about a test; none if the test passed.
pub(crate) fn complaint(result: &TestResult, row: &Row) -> Option<Diagnostic> {
    let is_fine = matches!(result.outcome(), Stored::Passed | Stored::Unspecified);
    (!is_fine).then(|| finding(result, row, None))
}

/// Returns a finding for each test of a row that failed or warns.
///
/// Failures count only while they are the row's own error: otherwise they speak of rows that something else has kept
/// from being made since.
pub(super) fn findings(row: &Row) -> Vec<Diagnostic> {
    let error = super::health::own_error(row);
    let is_because_of_tests = error.is_some_and(|error| error.code.starts_with("test-"));
    let results = results(row);
    let is_told = |result: &&TestResult| match result.outcome() {
        Stored::Passed | Stored::Unspecified => false,
        Stored::Failed if result.warns => error.is_none() || is_because_of_tests,
        Stored::Failed | Stored::Broken => is_because_of_tests,
    };
    let hint = error.and_then(|error| error.hint.as_deref());
    let told = results.iter().filter(is_told);
    told.map(|result| finding(result, row, hint)).collect()
}

/// Returns the finding of a test that failed or warns. `hint` says what became of the rows.
fn finding(result: &TestResult, row: &Row, hint: Option<&str>) -> Diagnostic {
    let test = document(result, &row.paths);
    let is_invalid = test.outcome == TestOutcome::Invalid;
    let severity = if is_invalid {
        Severity::Error
    } else {
        test.severity
    };
    let fate = hint.filter(|_| severity == Severity::Error).map(str::to_owned);
    let mut notes = test.rows;
    let shown = notes.len() as u64;
    if test.failures > shown && shown > 0 {
        notes.push(format!("and {} more", test.failures - shown));
    }
    if test.stored > 0 {
        notes.push(format!(
            "`watershed query \"SELECT data FROM _watershed.failures WHERE table_name = '{}'\"` shows {} of them",
            row.name, test.stored
        ));
    }
    Diagnostic {
        severity,
        code: if is_invalid { "test-invalid" } else { "test-failed" }.to_owned(),
        path: test.at.path,
        line: test.at.line,
        column: test.at.column,
        end_line: test.at.line,
        end_column: test.at.column + 1,
        message: data_tests::told(result),
        hint: test.hint.or(fate),
        notes,
        details: None,
        resource: Some(ResourceName::new(row.kind.as_str(), row.name.as_str())),
        related: Vec::new(),
    }
}
