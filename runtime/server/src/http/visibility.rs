//! Visibility: the parts of documents that a caller's role may see.
//!
//! | role | sees |
//! |---|---|
//! | `read` | kinds, names, refs, states of work, times, and codes and places of errors |
//! | `operate` | texts of errors, specs, states, causes and callers too |
//! | `+query` | rows too: of alerts, tests, reports and partitions, and compiled SQL |
//!
//! Documents of questions under policies (metrics, APIs) have the rows that the policies let through, for every role.

use serde_json::{Map, Value};
use watershed_api::operations::Role;
use watershed_api::{Answer, Code, Problem, Request};
use watershed_callers::Grant;

/// Text in the place of a message that the role may not read.
const UNREAD: &str = "the role `operate` reads this message";

/// Text in the place of a message that quotes rows.
const UNQUOTED: &str = "the test failed; the role `+query` reads its rows";

/// The parts of documents that a caller may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Visibility {
    /// True if texts of errors, specs, states and causes are shown.
    texts: bool,
    /// True if rows are shown that no policy has filtered.
    rows: bool,
}

impl Visibility {
    /// The visibility of everything.
    pub(crate) const WHOLE: Self = Self {
        texts: true,
        rows: true,
    };

    /// Returns the visibility of a caller with this access.
    pub(crate) fn of(grant: Grant) -> Self {
        Self {
            texts: grant.allows(Role::Operate),
            rows: grant.allows(Role::Query),
        }
    }

    /// Returns a number for each visibility, less than 4.
    pub(crate) fn number(self) -> usize {
        usize::from(self.texts) + 2 * usize::from(self.rows)
    }

    /// Returns the visibility that holds for an operation's answer: everything if the answer is bound by policies.
    pub(crate) fn of_answer(self, answer: &Answer) -> Self {
        match answer {
            Answer::Metrics(_) | Answer::MetricsBounds(_) | Answer::Call(_) => Self::WHOLE,
            _ => self,
        }
    }

    /// Returns true if specs and states are shown.
    pub(crate) fn shows_specs(self) -> bool {
        self.texts
    }

    /// Returns the document without hidden parts.
    pub(crate) fn show(self, mut document: Value) -> Value {
        if !self.rows {
            hide_rows(&mut document);
        }
        if !self.texts {
            hide_texts(&mut document, SEEN);
        }
        document
    }

    /// Refuses a question for rows themselves, which have columns that no view declares.
    ///
    /// # Errors
    /// `not-allowed`.
    pub(crate) fn check_request(self, request: &Request) -> Result<(), Problem> {
        let asks_for_rows =
            matches!(request, Request::Metrics(asked) if asked.query.get("rows") == Some(&Value::Bool(true)));
        match asks_for_rows && !self.rows {
            true => Err(
                Problem::new(Code::NotAllowed, "rows themselves need the role `+query`")
                    .hint("ask for measures and dimensions"),
            ),
            false => Ok(()),
        }
    }

    /// Returns the problem of a caller's own question for rows: who may see all rows may read what the engine says of
    /// the statement.
    pub(crate) fn problem_of_question(self, problem: Problem) -> Problem {
        match problem.code {
            Code::ProjectError => problem,
            _ => self.problem(problem),
        }
    }

    /// Returns the problem without hidden words: those of the engine, and those about the machine.
    pub(crate) fn problem(self, problem: Problem) -> Problem {
        let is_of_caller = match problem.code {
            Code::UnknownName
            | Code::AmbiguousName
            | Code::BadArgument
            | Code::AlreadyExists
            | Code::WrongState
            | Code::NotAllowed
            | Code::RemoteEditOff
            | Code::Unauthenticated
            | Code::KeyReused
            | Code::VersionRequired
            | Code::StaleVersion
            | Code::OwnedByGit
            | Code::NotBuilt
            | Code::DeadlinePassed
            | Code::Busy
            | Code::Stopping
            | Code::Unattended
            | Code::Interrupted => true,
            Code::ProjectError
            | Code::HeldElsewhere
            | Code::OutcomeUnknown
            | Code::Unavailable
            | Code::NoSpace
            | Code::StateUnreadable
            | Code::Defect => false,
        };
        match self.texts || is_of_caller {
            true => problem,
            false => Problem {
                message: UNREAD.to_owned(),
                hint: None,
                ..problem
            },
        }
    }
}

/// Removes rows that no policy has filtered, wherever a document has them.
fn hide_rows(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(hide_rows),
        Value::Object(fields) => {
            let is_of_test = text(fields, "code").is_some_and(|code| code.starts_with("test-"));
            let is_partition = fields.contains_key("watermark") && fields.contains_key("ran_at");
            if fields.contains_key("rows") && text(fields, "schema") == Some("watershed.call/1") {
                // Rows are there, and not shown.
                fields.insert("truncated".to_owned(), true.into());
            }
            for (key, value) in fields.iter_mut() {
                match key.as_str() {
                    "rows" | "totals" if !value.is_number() => *value = nothing(value),
                    "notes" if is_of_test => *value = nothing(value),
                    // The message of a failed test quotes rows.
                    "message" if is_of_test => *value = UNQUOTED.into(),
                    "data" | "watermark" if is_partition => *value = Value::Null,
                    // The SQL of a plan is compiled, and holds values.
                    "sql" if value.get("before").is_some() => *value = Value::Null,
                    _ => hide_rows(value),
                }
            }
        }
        _ => {}
    }
}

fn text<'a>(fields: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    fields.get(key).and_then(Value::as_str)
}

/// Keys whose values every role sees, in documents that every role may ask for. A key that is new is hidden until it is
/// listed here.
#[rustfmt::skip]
const SEEN: &[&str] = &[
    // Of documents, and of the program.
    "schema", "version", "command", "project", "environment", "run_id", "exit_code", "at", "next", "watch",
    // Of resources.
    "resources", "resource", "kind", "name", "refs", "declared_as", "paths", "selected", "phase", "health",
    "blocked_by", "work", "last_run", "runs_total", "next_run_at", "spec_version", "state_version", "result", "tests",
    "id", "reason", "started_at", "duration_ms", "outcome",
    // Of errors and findings.
    "error", "warnings", "code", "path", "line", "column", "end_line", "end_column", "retryable", "not_applied",
    "diagnostics", "severity", "related", "failures", "more", "stored",
    // Of runs and the past.
    "summary", "outcomes", "done", "failed", "skipped", "cancelled", "unchanged", "not_selected", "changes", "created",
    "updated", "renamed", "deleted", "removed", "became", "passed", "warned", "not_run", "fixed", "paused", "runs",
    "transitions", "searched_since", "ended_early", "from", "to", "run", "moment", "repeats", "since",
    // Of trees and graphs.
    "stage", "goal", "parts", "nodes", "edges",
    // Of counts.
    "process", "revision", "pending", "pending_by_reason", "oldest_pending_ms", "running", "longest_running_ms", "stuck",
    "settled", "blocked", "retries", "alerts", "notifications", "process_stats", "last_convergence_at",
    // Of the engine.
    "driver", "promises", "title", "how", "weaker", "present",
    // Of requests. A problem's texts are `detail` and `hint`.
    "operation", "accepted_at", "state", "document", "problem", "type", "status",
];

/// Keys of a resource's result that every role sees.
const SEEN_OF_RESULT: &[&str] = &[
    "stage", "goal", "desired", "since", "verdict", "standing", "at", "moment", "history", "type", "parts",
    "name", "replicas", "code", "failure",
];

/// Empties everything that is not listed, in the way that the documents' schemas allow.
fn hide_texts(value: &mut Value, seen: &[&str]) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| hide_texts(value, seen)),
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                let is_stored = matches!(key.as_str(), "state" | "error" | "failure") && !is_told(key, value);
                match key.as_str() {
                    "result" => hide_texts(value, SEEN_OF_RESULT),
                    // A transition without details has an empty text.
                    "message" | "detail" if value.as_str().is_some_and(|text| !text.is_empty()) => {
                        *value = UNREAD.into();
                    }
                    "message" | "detail" => {}
                    key if seen.contains(&key) && !is_stored => hide_texts(value, seen),
                    _ => *value = nothing(value),
                }
            }
        }
        _ => {}
    }
}

/// Returns true if the value of a key with two meanings is the one that every role sees: the state of a request, which
/// is a word, and errors with a code.
fn is_told(key: &str, value: &Value) -> bool {
    match key {
        "state" => value.is_string(),
        _ => value.is_object(),
    }
}

/// Returns the empty value of the same type. Numbers and truth values stay: they quote nothing.
fn nothing(value: &Value) -> Value {
    match value {
        Value::Array(_) => Value::Array(Vec::new()),
        Value::Number(_) | Value::Bool(_) => value.clone(),
        Value::Null | Value::String(_) | Value::Object(_) => Value::Null,
    }
}
