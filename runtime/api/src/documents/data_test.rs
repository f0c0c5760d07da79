//! Tests of models and what they came to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{At, Diagnostic, ResourceError, Severity, Time};

/// A test of a model and what it came to when it was last run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestDocument {
    /// Its name.
    pub name: String,
    /// The outcome.
    pub outcome: TestOutcome,
    /// The weight of a failure: `warning` keeps the new rows, `error` throws them away.
    pub severity: Severity,
    /// The number of wrong rows.
    pub failures: u64,
    /// Counting ended there: there are more.
    pub more: bool,
    /// The first of them, each as `column = value, ...`.
    pub rows: Vec<String>,
    /// The number of rows that are kept in the engine, in the table `_watershed.failures`.
    #[serde(default)]
    pub stored: u64,
    /// The engine's reason for not running the test.
    pub message: Option<String>,
    /// Advice.
    pub hint: Option<String>,
    /// The place of the test in the project's files.
    pub at: At,
}

/// The outcome of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TestOutcome {
    /// No row is wrong.
    Passed,
    /// Rows are wrong.
    Failed,
    /// The engine can't run it.
    Invalid,
    /// It was not run: one before it could not be run.
    NotRun,
}

/// Numbers of tests by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestCounts {
    /// No row is wrong.
    pub passed: u64,
    /// Rows are wrong, and that is a warning.
    pub warned: u64,
    /// Rows are wrong, or the engine can't run it.
    pub failed: u64,
    /// Not run, because one before it could not be run.
    pub not_run: u64,
}

impl TestCounts {
    /// Counts one more.
    pub fn add(&mut self, test: &TestDocument) {
        let counter = match (test.outcome, test.severity) {
            (TestOutcome::Passed, _) => &mut self.passed,
            (TestOutcome::Failed, Severity::Warning) => &mut self.warned,
            (TestOutcome::Failed | TestOutcome::Invalid, _) => &mut self.failed,
            (TestOutcome::NotRun, _) => &mut self.not_run,
        };
        *counter += 1;
    }

    /// All together.
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

/// The document of `test`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestsDocument {
    /// Name and version of this form: `watershed.test/1`.
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// Name of the project.
    pub project: String,
    /// Folder of the project.
    pub root: String,
    /// The environment.
    pub environment: String,
    /// The time at which the command began.
    pub started_at: Time,
    /// The time that it took, in milliseconds.
    pub duration_ms: u64,
    /// The program's exit code.
    pub exit_code: u8,
    /// The models that have tests, or were named, by name.
    pub models: Vec<TestedModel>,
    /// Every test that failed, could not be run or warns, with its place.
    pub diagnostics: Vec<Diagnostic>,
    /// The numbers.
    pub summary: TestCounts,
}

impl TestsDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.test/1";
}

/// A model and its tests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestedModel {
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
    /// Its tests, in the order in which it states them.
    pub tests: Vec<TestDocument>,
    /// The reason for not running its tests.
    pub error: Option<ResourceError>,
}
