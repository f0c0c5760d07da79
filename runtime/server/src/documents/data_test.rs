//! Tests of models and what they came to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{At, Diagnostic, ResourceError, Severity, Time};

/// A test of a model and what it came to when it was last run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestDocument {
    /// Its name.
    pub name: String,
    /// How it ended.
    pub outcome: TestOutcome,
    /// How much a failure matters: `warning` keeps the new rows, `error` throws them away.
    pub severity: Severity,
    /// How many rows are wrong.
    pub failures: u64,
    /// Counting ended there: there are more.
    pub more: bool,
    /// The first of them, each as `column = value, ...`.
    pub rows: Vec<String>,
    /// What the engine says against a test that it can't run.
    pub message: Option<String>,
    /// What may help.
    pub hint: Option<String>,
    /// Where the test is stated.
    pub at: At,
}

/// How a test ended.
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

/// How many tests came to what.
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
    /// When the command began.
    pub started_at: Time,
    /// How long it took.
    pub duration_ms: u64,
    /// What the program ends with.
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
    /// Why its tests were not run.
    pub error: Option<ResourceError>,
}
