//! Results of the tests of models, for people.

use anstyle::Style;
use watershed_api::documents::{
    ResourceDocument, Severity, TestCounts, TestDocument, TestOutcome, TestedModel, TestsDocument,
};

use super::columns::{Cell, columns};
use super::palette::{BAD, DIM, GOOD, STRONG, WARN};
use super::units::{count, duration, grouped};

/// Renders a line for each test, failures last, then the counts.
pub(crate) fn tests(document: &TestsDocument) -> String {
    let name = &document.project;
    if document.models.is_empty() {
        return format!(
            "{STRONG}{name}{STRONG:#} has no tests; `tests:` in the YAML file of a model states some\n"
        );
    }
    let mut lines: Vec<(u8, Vec<Cell>)> = document.models.iter().flat_map(lines_of).collect();
    lines.sort_by_key(|(rank, _)| *rank);
    let rows: Vec<Vec<Cell>> = lines.into_iter().map(|(_, line)| line).collect();
    let mut out = columns("  ", &rows);
    let (mark, style) = match (document.exit_code, document.summary.warned) {
        (0, 0) => ("✓", GOOD),
        (0, _) => ("!", WARN),
        _ => ("✗", BAD),
    };
    let told = match document.summary.total() {
        0 => "no test was run".to_owned(),
        total => format!("{}, {}", count(total, "test"), counted(&document.summary)),
    };
    let took = duration(document.duration_ms);
    out.push_str(&format!(
        "\n{style}{mark}{style:#} {STRONG}{name}{STRONG:#}: {told} ({took})\n"
    ));
    out
}

/// Renders the counts: `12 passed, 1 failed`.
fn counted(counts: &TestCounts) -> String {
    let numbers = [
        (counts.passed, "passed"),
        (counts.warned, "warned"),
        (counts.failed, "failed"),
        (counts.not_run, "not run"),
    ];
    let told = numbers.iter().filter(|(number, _)| *number > 0);
    let told: Vec<String> = told
        .map(|(number, word)| format!("{} {word}", grouped(*number)))
        .collect();
    told.join(", ")
}

/// Renders a summary: `12 tests passed`, `1 of 3 tests failed`; none without tests.
pub(crate) fn summary(counts: &TestCounts) -> Option<String> {
    let total = counts.total();
    let bad = [
        (counts.failed, "failed"),
        (counts.warned, "warned"),
        (counts.not_run, "not run"),
    ];
    let bad: Vec<String> = bad
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| format!("{} {word}", grouped(*number)))
        .collect();
    match (total, bad.as_slice()) {
        (0, _) => None,
        (total, []) => Some(format!("{} passed", count(total, "test"))),
        (total, bad) => Some(format!("{}: {}", count(total, "test"), bad.join(", "))),
    }
}

/// Counts the tests of a resource by their results.
pub(crate) fn counts(resource: &ResourceDocument) -> TestCounts {
    let mut counts = TestCounts::default();
    resource.tests.iter().for_each(|test| counts.add(test));
    counts
}

fn lines_of(model: &TestedModel) -> Vec<(u8, Vec<Cell>)> {
    if let Some(error) = &model.error {
        let line = vec![
            Cell::left("not run", BAD),
            Cell::name(&model.name),
            Cell::plain(""),
            Cell::left(&error.message, BAD),
        ];
        return vec![(3, line)];
    }
    let line = |test: &TestDocument| {
        let (rank, word, style, rest) = told(test);
        let cells = vec![
            Cell::left(word, style),
            Cell::name(&model.name),
            Cell::plain(&test.name),
            Cell::left(rest, style),
        ];
        (rank, cells)
    };
    model.tests.iter().map(line).collect()
}

/// Returns the rank of a test among the lines, the word for its result with a style, and the details.
fn told(test: &TestDocument) -> (u8, &'static str, Style, String) {
    let more = if test.more { "more than " } else { "" };
    let rows = format!("{more}{}", count(test.failures, "row"));
    match (test.outcome, test.severity) {
        (TestOutcome::Passed, _) => (0, "passed", GOOD, String::new()),
        (TestOutcome::NotRun, _) => (1, "not run", DIM, String::new()),
        (TestOutcome::Failed, Severity::Warning | Severity::Hint) => (2, "warned", WARN, rows),
        (TestOutcome::Failed, Severity::Error) => (3, "failed", BAD, rows),
        (TestOutcome::Invalid, _) => (3, "failed", BAD, test.message.clone().unwrap_or_default()),
    }
}
