//! The summary of a run, for people: results, errors, and their causes.

use std::collections::BTreeSet;

use watershed_api::documents::{
    Command, Health, Outcome, Removed, ResourceDocument, ResourceName, RunDocument, Severity, Work,
};

use super::columns::{Cell, fitting};
use super::data_tests;
use super::palette::{BAD, DIM, GOOD, STRONG, WARN};
use super::paragraph::folded;
use super::units::{chosen_of, count, duration, grouped, some_of};
use super::words::Sources;

/// Most lines of the table; `-v` shows it whole.
const MOST_LINES: usize = 40;
/// Most names in a line of blocked resources.
const MOST_NAMES: usize = 5;

/// Renders the summary of `run`, `reconcile` or `refresh`; the resources in `told` had a line when they ended.
pub(crate) fn run(document: &RunDocument, told: &BTreeSet<ResourceName>, width: Option<u16>) -> String {
    let mut out = failures(document, told, width);
    out.push_str(&causes(document, width));
    out.push_str(&removed(document, told, width));
    if !(out.is_empty() && told.is_empty()) {
        out.push('\n');
    }
    out.push_str(&folded(&verdict(document), 2, width));
    out
}

/// Renders the summary of `validate`.
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

/// Renders the resources that have failed and were not run now.
fn failures(document: &RunDocument, told: &BTreeSet<ResourceName>, width: Option<u16>) -> String {
    let is_untold = |resource: &&ResourceDocument| {
        resource.selected && resource.health == Health::Failed && !told.contains(&resource.id())
    };
    let failed: Vec<&ResourceDocument> = document.resources.iter().filter(is_untold).collect();
    let line = |resource: &&ResourceDocument| {
        let message = resource.error.as_ref().map(|error| first_line(&error.message));
        vec![
            Cell::left("failed", BAD),
            Cell::left(resource.declared_as.as_ref().unwrap_or(&resource.kind), DIM),
            Cell::name(&resource.name),
            Cell::plain(message.unwrap_or_default()),
        ]
    };
    let mut rows: Vec<Vec<Cell>> = failed.iter().take(MOST_LINES).map(line).collect();
    rows.extend(paused_lines(document));
    let mut out = fitting("  ", &rows, width);
    if failed.len() > MOST_LINES {
        let more = failed.len() - MOST_LINES;
        out.push_str(&format!("  {DIM}and {more} more that failed{DIM:#}\n"));
    }
    out
}

/// Returns a line for each paused resource; many of them are named in the last line alone.
fn paused_lines(document: &RunDocument) -> Vec<Vec<Cell>> {
    let paused: Vec<&ResourceDocument> = document
        .resources
        .iter()
        .filter(|resource| resource.health == Health::Paused)
        .collect();
    if paused.len() > MOST_NAMES {
        return Vec::new();
    }
    let rest = |name: &str| format!("waits for `watershed resume {name}`");
    let line = |resource: &&ResourceDocument| {
        vec![
            Cell::left("paused", WARN),
            Cell::left(resource.declared_as.as_ref().unwrap_or(&resource.kind), DIM),
            Cell::name(&resource.name),
            Cell::plain(rest(&resource.name)),
        ]
    };
    paused.iter().map(line).collect()
}

/// Renders the paused resources: `1 paused (weather)`; none without any.
fn paused(document: &RunDocument) -> Option<String> {
    let paused = &document.summary.paused;
    if paused.is_empty() {
        return None;
    }
    let names: Vec<String> = paused.iter().map(|resource| resource.name.clone()).collect();
    let number = grouped(paused.len() as u64);
    let names = some_of(&names, MOST_NAMES);
    Some(format!("{WARN}{number} paused{WARN:#} ({names})"))
}

/// Renders the resources that are not ready, with those that others wait for: `1 not ready (api)`; none without any.
fn unready(document: &RunDocument) -> Option<String> {
    let unready = || {
        document
            .resources
            .iter()
            .filter(|one| one.selected && one.health == Health::Unready)
    };
    let names: Vec<String> = unready()
        .filter(|one| one.blocked_by.is_empty())
        .map(|one| one.name.clone())
        .collect();
    if names.is_empty() {
        return None;
    }
    let number = grouped(unready().count() as u64);
    let names = some_of(&names, MOST_NAMES);
    Some(format!("{WARN}{number} not ready{WARN:#} ({names})"))
}

/// Returns `table` or `view`; empty for a resource without an output.
pub(super) fn output_kind(resource: &ResourceDocument) -> String {
    let kind = resource
        .result
        .as_ref()
        .and_then(|result| result.get("type"))
        .and_then(|kind| kind.as_str());
    kind.unwrap_or_default().to_owned()
}

/// Returns the number of rows of an output; none if they were not counted.
pub(crate) fn rows_of(resource: &ResourceDocument) -> Option<u64> {
    let result = resource.result.as_ref()?;
    result.get("rows")?.as_u64()
}

/// Renders the number of rows of an output; empty if they were not counted.
pub(super) fn output_rows(resource: &ResourceDocument) -> String {
    rows_of(resource)
        .map(|rows| count(rows, "row"))
        .unwrap_or_default()
}

/// Renders each root cause with the resources that it blocks.
fn causes(document: &RunDocument, width: Option<u16>) -> String {
    let mut out = String::new();
    let sources = Sources::of(document);
    for (cause, blocked) in blocked_by(document) {
        let cause = sources.name(&cause);
        let is_alone = |resource: &&&ResourceDocument| {
            let same = blocked.iter().filter(|other| other.name == resource.name);
            same.count() == 1
        };
        // Of two kinds that share a name each says which it is.
        let names: Vec<String> = blocked
            .iter()
            .take(MOST_NAMES + 1)
            .map(|resource| match is_alone(&resource) {
                true => resource.name.clone(),
                false => sources.name(&resource.id()).to_string(),
            })
            .collect();
        let more = blocked.len() - names.len();
        let all: Vec<String> = names.into_iter().chain(vec![String::new(); more]).collect();
        let number = count(blocked.len() as u64, "resource");
        let (word, how) = match is_waiting(&blocked) {
            true => ("waits", "for"),
            false => ("blocked", "by"),
        };
        let line = vec![
            Cell::left(word, WARN),
            Cell::plain(format!("{number} {how} {cause}:")),
            Cell::left(some_of(&all, MOST_NAMES), DIM),
        ];
        out.push_str(&fitting("  ", &[line], width));
    }
    out
}

/// Returns true if all blocked resources merely wait for something to become ready.
pub(super) fn is_waiting(blocked: &[&ResourceDocument]) -> bool {
    blocked.iter().all(|resource| resource.health == Health::Unready)
}

/// Lists the resources that each root cause blocks. A resource with several causes is listed with each.
pub(super) fn blocked_by(document: &RunDocument) -> Vec<(ResourceName, Vec<&ResourceDocument>)> {
    let mut causes: std::collections::BTreeMap<ResourceName, Vec<&ResourceDocument>> = Default::default();
    for resource in document.resources.iter().filter(|resource| resource.selected) {
        for cause in &resource.blocked_by {
            causes.entry(cause.clone()).or_default().push(resource);
        }
    }
    causes.into_iter().collect()
}

fn removed(document: &RunDocument, told: &BTreeSet<ResourceName>, width: Option<u16>) -> String {
    let is_told = |removed: &Removed| match &removed.became {
        Some(new) => told.contains(new),
        None => told.contains(&ResourceName {
            kind: removed.kind.clone(),
            name: removed.name.clone(),
        }),
    };
    let line = |removed: &&Removed| {
        let (word, name) = match &removed.became {
            // Both names are whole, in a line of their own if need be.
            Some(new) => (
                "renamed",
                Cell::plain(format!("{} → {}", removed.name, new.name)).below(),
            ),
            None => ("removed", Cell::name(&removed.name)),
        };
        vec![Cell::left(word, GOOD), Cell::left(&removed.kind, DIM), name]
    };
    let untold = document
        .summary
        .removed
        .iter()
        .filter(|removed| !is_told(removed));
    let untold: Vec<&Removed> = untold.collect();
    let rows: Vec<Vec<Cell>> = untold.iter().take(MOST_LINES).map(line).collect();
    let mut out = fitting("  ", &rows, width);
    if untold.len() > MOST_LINES {
        out.push_str(&format!("  {DIM}and {} more{DIM:#}\n", untold.len() - MOST_LINES));
    }
    out
}

/// Renders the last line: the state of the project.
fn verdict(document: &RunDocument) -> String {
    let name = &document.project;
    let time = duration(document.duration_ms);
    let left_out = document.summary.outcomes.not_selected;
    let resources = document.summary.resources;
    let selected = (left_out > 0).then(|| resources.saturating_sub(left_out));
    let total = chosen_of(selected, resources);
    let paused = paused(document);
    let unready = unready(document);
    let (mark, style) = match document.exit_code {
        // What is paused may be behind, so not all is well.
        0 if paused.is_some() || unready.is_some() => ("!", WARN),
        0 => ("✓", GOOD),
        1 => ("✗", BAD),
        _ => ("!", WARN),
    };
    let begin = format!("{style}{mark}{style:#} {STRONG}{name}{STRONG:#}");
    if document.exit_code == 0 && !did_anything(document) && paused.is_none() && unready.is_none() {
        let tests = data_tests::summary(&document.summary.tests).map(|tests| format!("{tests}, "));
        let tests = tests.unwrap_or_default();
        if selected.is_some() {
            return format!("{begin}: {total}, {tests}nothing to do ({time})\n");
        }
        return format!("{begin} is up to date: {total}, {tests}nothing to do ({time})\n");
    }
    let findings = findings(document);
    let outcomes = &document.summary.outcomes;
    let fixed = document.summary.fixed.min(outcomes.unchanged);
    let untouched = outcomes.unchanged - fixed;
    let checked = works_of(document, Work::Checked).min(untouched);
    let rest = untouched - checked;
    let never_built = never_run(document, Health::NeverBuilt).min(rest);
    let unsupported = never_run(document, Health::Unsupported).min(rest - never_built);
    let numbers = [
        (works_of(document, Work::Built), "built"),
        (works_of(document, Work::Restored), "restored"),
        (works_of(document, Work::Renamed), "renamed"),
        (fixed, "fixed"),
        (checked, "checked"),
        (outcomes.failed, "failed"),
        (outcomes.skipped, "skipped"),
        (outcomes.cancelled, "cancelled"),
        (never_built, "not built"),
        (unsupported, "not supported yet"),
        (rest - never_built - unsupported, "unchanged"),
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
    parts.extend(paused);
    parts.extend(unready);
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

/// Returns true if a command was about the whole project.
fn is_whole(document: &RunDocument) -> bool {
    matches!(document.command, Command::Run | Command::Start)
}

fn did_anything(document: &RunDocument) -> bool {
    let changes = &document.summary.changes;
    is_whole(document) && changes.created + changes.renamed + changes.deleted > 0
        || document.summary.fixed > 0
        || document
            .resources
            .iter()
            .any(|r| !matches!(r.work, Work::Checked | Work::None))
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

/// Counts the selected resources with this health that were never run.
fn never_run(document: &RunDocument, health: Health) -> u64 {
    let all = document.resources.iter();
    all.filter(|resource| resource.selected && resource.health == health && resource.last_run.is_none())
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
