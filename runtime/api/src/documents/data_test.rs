//! Tests of models and their results.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{At, Diagnostic, ResourceError, Severity, Time};

/// A test of a model, with the result of its last run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestDocument {
    /// Name of the test.
    pub name: String,
    /// Outcome of the last run.
    pub outcome: TestOutcome,
    /// Severity of a failure: `warning` keeps the new rows, `error` discards them.
    pub severity: Severity,
    /// Number of wrong rows; a lower bound if `more` is true.
    pub failures: u64,
    /// True if counting stopped at `failures` and there are more wrong rows.
    pub more: bool,
    /// First wrong rows, each as `column = value, ...`.
    pub rows: Vec<String>,
    /// Number of wrong rows that are stored in the engine's table `_watershed.failures`.
    #[serde(default)]
    pub stored: u64,
    /// Reason why the engine can't run the test; null if it can.
    pub message: Option<String>,
    /// Suggested fix; null if none is known.
    pub hint: Option<String>,
    /// Place of the test in the project's files.
    pub at: At,
}

/// The outcome of a test: passed, failed, invalid or not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TestOutcome {
    /// The test found no wrong rows.
    Passed,
    /// The test found wrong rows.
    Failed,
    /// The engine can't run the test.
    Invalid,
    /// The test was not run, because the engine could not run an earlier test.
    NotRun,
}

/// The numbers of tests, by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestCounts {
    /// Number of tests that found no wrong rows.
    pub passed: u64,
    /// Number of tests with severity `warning` that found wrong rows.
    pub warned: u64,
    /// Number of tests with severity `error` that found wrong rows, and of tests that the engine can't run.
    pub failed: u64,
    /// Number of tests that were not run, because an earlier test could not be run.
    pub not_run: u64,
}

impl TestCounts {
    /// Counts a further test.
    pub fn add(&mut self, test: &TestDocument) {
        let counter = match (test.outcome, test.severity) {
            (TestOutcome::Passed, _) => &mut self.passed,
            (TestOutcome::Failed, Severity::Warning) => &mut self.warned,
            (TestOutcome::Failed | TestOutcome::Invalid, _) => &mut self.failed,
            (TestOutcome::NotRun, _) => &mut self.not_run,
        };
        *counter += 1;
    }

    /// Returns the number of all tests.
    pub fn total(&self) -> u64 {
        self.passed + self.warned + self.failed + self.not_run
    }
}

impl Extend<TestCounts> for TestCounts {
    fn extend<T: IntoIterator<Item = TestCounts>>(&mut self, more: T) {
        for counts in more {
            self.passed += counts.passed;
            self.warned += counts.warned;
            self.failed += counts.failed;
            self.not_run += counts.not_run;
        }
    }
}

/// The results of the command `test`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestsDocument {
    /// Name and version of this form: `watershed.test/1`.
    pub schema: String,
    /// Version of the program that wrote the document.
    pub version: String,
    /// Name of the project.
    pub project: String,
    /// Path of the project's folder.
    pub root: String,
    /// Name of the project's environment.
    pub environment: String,
    /// Time at which the command began.
    pub started_at: Time,
    /// Duration of the command, in milliseconds.
    pub duration_ms: u64,
    /// Exit code of the command.
    pub exit_code: u8,
    /// Models that have tests or were named, by name.
    pub models: Vec<TestedModel>,
    /// Tests that failed, warned or could not be run, each with its place.
    pub diagnostics: Vec<Diagnostic>,
    /// Numbers of tests, by outcome.
    pub summary: TestCounts,
}

impl TestsDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.test/1";
}

/// A model with its tests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestedModel {
    /// Kind of the resource: `model`.
    pub kind: String,
    /// Name of the model.
    pub name: String,
    /// Tests of the model, in the order of its file.
    pub tests: Vec<TestDocument>,
    /// Reason why the model's tests were not run; null if they were.
    pub error: Option<ResourceError>,
}
