//! What a run did, for people: what was made, what went wrong, what is behind it.

use std::collections::BTreeSet;

use anstyle::Style;

use super::columns::{Cell, columns};
use super::data_tests;
use super::palette::{BAD, DIM, GOOD, STRONG, WARN};
use super::units::{count, duration, grouped, some_of};
use crate::documents::{
    Command, Health, Outcome, Removed, ResourceDocument, ResourceName, RunDocument, Severity, Work,
};

/// A table of more lines than this tires; `-v` shows it whole.
const MOST_LINES: usize = 40;
/// Names in one line of what is blocked.
const MOST_NAMES: usize = 5;

/// How much of a run is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// What was done and what is wrong.
    Normal,
    /// Every resource.
    All,
}

/// The summary of `run`, `reconcile`, `refresh`.
pub(crate) fn run(document: &RunDocument, detail: Detail) -> String {
    let mut out = lines(document, detail);
    out.push_str(&causes(document));
    out.push_str(&removed(document));
    if !out.is_empty() {
        out.push('\n');
    }
    out.push_str(&verdict(document));
    out
}

/// The summary of `validate`.
pub(crate) fn validate(document: &RunDocument) -> String {
    let found = findings(document);
    let what = format!(
        "{} in {}",
        count(document.summary.resources, "resource"),
        duration(document.duration_ms)
    );
    let name = &document.project;
    match (found.errors, found.warnings) {
        (0, 0) => format!("{GOOD}✓{GOOD:#} {STRONG}{name}{STRONG:#} has no mistakes, {what}\n"),
        (0, warnings) => {
            let said = count(warnings, "warning");
            format!("{WARN}!{WARN:#} {STRONG}{name}{STRONG:#} has {said}, {what}\n")
        }
        (errors, 0) => format!(
            "{BAD}✗{BAD:#} {STRONG}{name}{STRONG:#} has {}, {what}\n",
            count(errors, "error")
        ),
        (errors, warnings) => {
            let said = format!("{} and {}", count(errors, "error"), count(warnings, "warning"));
            format!("{BAD}✗{BAD:#} {STRONG}{name}{STRONG:#} has {said}, {what}\n")
        }
    }
}

/// One line for each resource that was worked on or failed, those that need a person last, where the eye rests.
fn lines(document: &RunDocument, detail: Detail) -> String {
    let is_worked = |resource: &&ResourceDocument| match detail {
        Detail::All => resource.health != Health::Failed,
        Detail::Normal => !is_idle(resource),
    };
    let most = if detail == Detail::All {
        usize::MAX
    } else {
        MOST_LINES
    };
    let mut worked: Vec<&ResourceDocument> = document.resources.iter().filter(is_worked).collect();
    if worked.len() > most {
        worked.clear();
    }
    let outputs = columns(
        "",
        &worked
            .iter()
            .map(|resource| output_cells(resource))
            .collect::<Vec<_>>(),
    );
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for (resource, output) in worked.into_iter().zip(outputs.lines()) {
        let style = if is_idle(resource) { DIM } else { GOOD };
        let name = match former_name(document, resource) {
            Some(before) => format!("{before} → {}", resource.name),
            None => resource.name.clone(),
        };
        rows.push(line(resource.work.as_str(), style, resource, &name, output));
    }
    let failed: Vec<&ResourceDocument> = document
        .resources
        .iter()
        .filter(|resource| resource.health == Health::Failed)
        .collect();
    for resource in failed.iter().take(most) {
        let message = resource
            .error
            .as_ref()
            .map(|error| first_line(&error.message))
            .unwrap_or_default();
        rows.push(line("failed", BAD, resource, &resource.name, message));
    }
    let mut out = columns("  ", &rows);
    if failed.len() > most {
        out.push_str(&format!(
            "  {DIM}and {} more that failed{DIM:#}\n",
            failed.len() - most
        ));
    }
    out
}

/// Whether a command did nothing for a resource.
fn is_idle(resource: &ResourceDocument) -> bool {
    matches!(resource.work, Work::None | Work::Checked)
}

/// What a resource was called before, if this command renamed it.
fn former_name<'a>(document: &'a RunDocument, resource: &ResourceDocument) -> Option<&'a str> {
    let is_it = |removed: &&Removed| removed.became.as_ref() == Some(&resource.id());
    let removed = document.summary.removed.iter().find(is_it);
    removed
        .filter(|_| resource.work == Work::Renamed)
        .map(|removed| removed.name.as_str())
}

fn line(word: &str, style: Style, resource: &ResourceDocument, name: &str, rest: &str) -> Vec<Cell> {
    vec![
        Cell::left(word, style),
        Cell::left(&resource.kind, DIM),
        Cell::plain(name),
        Cell::rest(rest),
    ]
}

/// What a resource has, how much, and how long it took: the last, as its width is of no interest.
fn output_cells(resource: &ResourceDocument) -> Vec<Cell> {
    let took = resource.last_run.as_ref().filter(|_| resource.work != Work::None);
    let took = took.map(|run| duration(run.duration_ms)).unwrap_or_default();
    vec![
        Cell::left(output_kind(resource), DIM),
        Cell::right(output_rows(resource), Style::new()),
        Cell::left(took, DIM),
    ]
}

/// `table` or `view`, where a resource has an output.
pub(super) fn output_kind(resource: &ResourceDocument) -> String {
    let kind = resource
        .result
        .as_ref()
        .and_then(|result| result.get("type"))
        .and_then(|kind| kind.as_str());
    kind.unwrap_or_default().to_owned()
}

/// The rows of an output, where they were counted.
pub(super) fn output_rows(resource: &ResourceDocument) -> String {
    let rows = resource
        .result
        .as_ref()
        .and_then(|result| result.get("rows"))
        .and_then(serde_json::Value::as_u64);
    rows.map(|rows| count(rows, "row")).unwrap_or_default()
}

/// Each root cause once, with what it holds up.
fn causes(document: &RunDocument) -> String {
    let mut out = String::new();
    for (cause, blocked) in blocked_by(document) {
        let names: Vec<String> = blocked.iter().map(|resource| resource.name.clone()).collect();
        let number = count(blocked.len() as u64, "resource");
        let line = format!("  {WARN}blocked{WARN:#} {number} by {STRONG}{cause}{STRONG:#}: ");
        out.push_str(&format!("{line}{DIM}{}{DIM:#}\n", some_of(&names, MOST_NAMES)));
    }
    out
}

/// What each root cause blocks. A resource with several causes is counted with each.
pub(super) fn blocked_by(document: &RunDocument) -> Vec<(ResourceName, Vec<&ResourceDocument>)> {
    let mut causes: std::collections::BTreeMap<ResourceName, Vec<&ResourceDocument>> = Default::default();
    for resource in &document.resources {
        for cause in &resource.blocked_by {
            causes.entry(cause.clone()).or_default().push(resource);
        }
    }
    causes.into_iter().collect()
}

fn removed(document: &RunDocument) -> String {
    let line = |removed: &&Removed| match &removed.became {
        Some(new) => vec![
            Cell::left("renamed", GOOD),
            Cell::left(&removed.kind, DIM),
            Cell::plain(format!("{} → {}", removed.name, new.name)),
        ],
        None => vec![
            Cell::left("removed", GOOD),
            Cell::left(&removed.kind, DIM),
            Cell::plain(&removed.name),
        ],
    };
    // A rename that was work of its own has its line already.
    let renamed: BTreeSet<ResourceName> = document
        .resources
        .iter()
        .filter(|resource| resource.work == Work::Renamed)
        .map(ResourceDocument::id)
        .collect();
    let is_told = |removed: &&Removed| removed.became.as_ref().is_some_and(|new| renamed.contains(new));
    let worked = document.resources.iter().filter(|resource| !is_idle(resource));
    let is_listed = worked.count() <= MOST_LINES;
    let removed = document.summary.removed.iter();
    let removed: Vec<&Removed> = removed
        .filter(|removed| !(is_listed && is_told(removed)))
        .collect();
    let mut out = columns(
        "  ",
        &removed.iter().take(MOST_LINES).map(line).collect::<Vec<_>>(),
    );
    if removed.len() > MOST_LINES {
        out.push_str(&format!(
            "  {DIM}and {} more{DIM:#}\n",
            removed.len() - MOST_LINES
        ));
    }
    out
}

/// The last line: how the project stands now.
fn verdict(document: &RunDocument) -> String {
    let name = &document.project;
    let time = duration(document.duration_ms);
    let total = count(document.summary.resources, "resource");
    let (mark, style) = match document.exit_code {
        0 => ("✓", GOOD),
        1 => ("✗", BAD),
        _ => ("!", WARN),
    };
    let begin = format!("{style}{mark}{style:#} {STRONG}{name}{STRONG:#}");
    if document.exit_code == 0 && !did_anything(document) {
        let tests = data_tests::summary(&document.summary.tests).map(|tests| format!("{tests}, "));
        let tests = tests.unwrap_or_default();
        return format!("{begin} is up to date: {total}, {tests}nothing to do ({time})\n");
    }
    let findings = findings(document);
    let outcomes = &document.summary.outcomes;
    let numbers = [
        (works_of(document, Work::Built), "built"),
        (works_of(document, Work::Renamed), "renamed"),
        (outcomes.failed, "failed"),
        (outcomes.skipped, "skipped"),
        (outcomes.cancelled, "cancelled"),
        (outcomes.unchanged, "unchanged"),
        (document.summary.changes.deleted, "removed"),
    ];
    if document.not_applied.is_some() && is_whole(document) {
        let errors = count(findings.errors, "error");
        let stay = if document.resources.is_empty() {
            String::new()
        } else {
            format!("; {total} stay as they were")
        };
        return format!("{begin}: nothing was applied because of {BAD}{errors}{BAD:#}{stay} ({time})\n");
    }
    let mut parts = vec![total];
    parts.extend(
        numbers
            .iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, word)| format!("{} {word}", grouped(*n))),
    );
    if findings.errors > 0 && outcomes.failed == 0 {
        parts.push(format!("{BAD}{}{BAD:#}", count(findings.errors, "error")));
    }
    parts.extend(data_tests::summary(&document.summary.tests));
    if findings.warnings > 0 {
        parts.push(format!("{WARN}{}{WARN:#}", count(findings.warnings, "warning")));
    }
    format!("{begin}: {} ({time})\n", parts.join(", "))
}

/// Whether a command was about the whole project.
fn is_whole(document: &RunDocument) -> bool {
    matches!(document.command, Command::Run | Command::Start)
}

fn did_anything(document: &RunDocument) -> bool {
    let changes = &document.summary.changes;
    is_whole(document) && changes.created + changes.renamed + changes.deleted > 0
        || document
            .resources
            .iter()
            .any(|r| matches!(r.work, Work::Built | Work::Renamed | Work::Dropped))
        || document.resources.iter().any(|r| {
            r.last_run
                .as_ref()
                .is_some_and(|run| run.outcome == Outcome::Cancelled)
        })
}

fn works_of(document: &RunDocument, work: Work) -> u64 {
    document
        .resources
        .iter()
        .filter(|resource| resource.work == work)
        .count() as u64
}

struct Findings {
    errors: u64,
    warnings: u64,
}

fn findings(document: &RunDocument) -> Findings {
    let of = |severity| {
        document
            .diagnostics
            .iter()
            .filter(|d| d.severity == severity)
            .count() as u64
    };
    Findings {
        errors: of(Severity::Error),
        warnings: of(Severity::Warning),
    }
}

pub(crate) fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
