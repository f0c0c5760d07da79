//! Results of operations by hand, and counts, for people.

use std::collections::BTreeMap;

use anstyle::Style;
use watershed_api::documents::{OperateDocument, Operated, Operation, Phase, ProcessStats, StatsDocument};

use super::columns::{Cell, columns};
use super::palette::{BAD, DIM, GOOD, STRONG, WARN};
use super::units::{ago, duration, grouped, micros};

/// Renders a line for each resource that was changed.
pub(crate) fn operated(document: &OperateDocument) -> String {
    if document.command == Operation::Event && document.resources.is_empty() {
        return "no resource is meant by it\n".to_owned();
    }
    let line = |resource: &Operated| {
        let name = format!("{}/{}", resource.kind, resource.name);
        let (word, style, rest) = told(document, resource, &name);
        vec![
            Cell::left(word, style),
            Cell::left(name, STRONG),
            Cell::left(rest, DIM),
        ]
    };
    let rows: Vec<Vec<Cell>> = document.resources.iter().map(line).collect();
    columns("", &rows)
}

fn told(document: &OperateDocument, resource: &Operated, name: &str) -> (&'static str, Style, String) {
    let running = resource.phase == Phase::Running;
    match (document.command, resource.changed) {
        (Operation::Pause, true) if running => ("paused", WARN, "the current run will finish".to_owned()),
        (Operation::Pause, true) => ("paused", WARN, format!("`watershed resume {name}` lets it go on")),
        (Operation::Pause, false) => ("paused", DIM, "it was paused already".to_owned()),
        (Operation::Resume, true) => {
            let then = match (resource.phase, document.live) {
                (Phase::Running, _) => "running",
                (Phase::Pending, _) => "it waits for its turn",
                (Phase::Idle, true) => "nothing had asked for it meanwhile",
                (Phase::Idle, false) => "`watershed run` brings it up to date",
            };
            ("resumed", GOOD, then.to_owned())
        }
        (Operation::Resume, false) => ("resumed", DIM, "it was not paused".to_owned()),
        (Operation::Cancel, true) if running => (
            "cancelled",
            WARN,
            "it was told to stop and has not returned yet".to_owned(),
        ),
        (Operation::Cancel, true) => (
            "cancelled",
            WARN,
            match resource.kind.as_str() {
                "job" => format!("`watershed retry {name}` runs it again"),
                _ => format!("`watershed reconcile {name}` asks for it again"),
            },
        ),
        (Operation::Scale, _) => ("scaled", GOOD, resource.detail.clone()),
        (Operation::Restart, _) => ("restarted", GOOD, resource.detail.clone()),
        (Operation::Rollback, _) => ("rolled back", GOOD, resource.detail.clone()),
        (Operation::Set, _) => ("set", GOOD, resource.detail.clone()),
        (Operation::Snooze, true) => ("snoozed", GOOD, resource.detail.clone()),
        (Operation::Snooze, false) => ("snoozed", DIM, resource.detail.clone()),
        (Operation::Event, _) => ("told", GOOD, resource.detail.clone()),
        (Operation::Cancel, false) if document.live => ("idle", DIM, "was not running".to_owned()),
        (Operation::Cancel, false) => (
            "idle",
            DIM,
            "was not running; no process runs the project".to_owned(),
        ),
    }
}

/// Renders the table of `stats`.
pub(crate) fn stats(document: &StatsDocument) -> String {
    let mut out = format!(
        "{STRONG}{}{STRONG:#} ({})",
        document.project, document.environment
    );
    match document.process {
        Some(process) => out.push_str(&format!(", run by process {process}\n")),
        None => out.push_str(": not running; showing the stored state\n"),
    }
    let mut rows = vec![
        row("resources", document.resources, Style::new(), at_rest(document)),
        row(
            "pending",
            document.pending.values().sum(),
            WARN,
            with_age(by(&document.pending), "oldest", document.oldest_pending_ms),
        ),
        row(
            "running",
            document.running,
            GOOD,
            with_age(String::new(), "longest", document.longest_running_ms),
        ),
        row("stuck", document.stuck, BAD, String::new()),
        row("failed", document.failed, BAD, String::new()),
        row("blocked", document.blocked, WARN, String::new()),
        row("paused", document.paused, WARN, String::new()),
        row("retries", document.retries, WARN, String::new()),
    ];
    let counts = |name: &str, counts: &std::collections::BTreeMap<String, u64>, bad: &str| {
        let style = if counts.contains_key(bad) { BAD } else { GOOD };
        (!counts.is_empty()).then(|| row(name, counts.values().sum(), style, by(counts)))
    };
    rows.extend(counts("alerts", &document.alerts, "fail"));
    rows.extend(counts("notifications", &document.notifications, "dead"));
    if let Some(process) = &document.process_stats {
        rows.extend(process_rows(document, process));
    }
    out.push_str(&columns("  ", &rows));
    out
}

fn process_rows(document: &StatsDocument, process: &ProcessStats) -> Vec<Vec<Cell>> {
    let runs = format!(
        "{} succeeded, {} failed",
        grouped(process.invocations_done),
        grouped(process.invocations_failed)
    );
    let commits = format!(
        "last {}, longest of the last minute {}{}",
        micros(process.commit_last_us),
        micros(process.commit_longest_us),
        match process.commits_failed {
            0 => String::new(),
            failed => format!(", {} failed", grouped(failed)),
        }
    );
    let lag = format!(
        "last {}, longest of the last minute {}",
        micros(process.loop_lag_last_us),
        micros(process.loop_lag_longest_us)
    );
    let lease = match (process.lease_age_ms, process.lease_term_ms) {
        (Some(age), Some(term)) => format!("renewed {} ago, lasts {}", duration(age), duration(term)),
        _ => "as long as the process".to_owned(),
    };
    let settled = match (process.last_convergence_at, process.last_convergence_took_ms) {
        (Some(at), Some(took)) => format!("{}, took {}", ago(at, document.at), duration(took)),
        _ => "not yet".to_owned(),
    };
    let mut rows = vec![
        row("runs", process.invocations_started, Style::new(), runs),
        row("commits", process.commits, Style::new(), commits),
        text("loop lag", lag),
        text("lease", lease),
        text("converged", settled),
    ];
    if process.log_lines_dropped > 0 {
        let rest = "the disk was too slow for them".to_owned();
        rows.push(row("log lines lost", process.log_lines_dropped, WARN, rest));
    }
    rows
}

/// Renders a line with a number, dimmed if the number is zero.
fn row(title: &str, number: u64, style: Style, rest: String) -> Vec<Cell> {
    let style = if number == 0 { DIM } else { style };
    vec![
        Cell::left(title, DIM),
        Cell::right(grouped(number), style),
        Cell::left(rest, DIM),
    ]
}

fn text(title: &str, rest: String) -> Vec<Cell> {
    vec![Cell::left(title, DIM), Cell::plain(""), Cell::left(rest, DIM)]
}

/// Renders the counts of settled resources by their reason, without failures, which have lines of their own.
fn at_rest(document: &StatsDocument) -> String {
    let mut settled = document.settled.clone();
    settled.remove("failed");
    by(&settled)
}

fn by(numbers: &BTreeMap<String, u64>) -> String {
    let parts: Vec<String> = numbers
        .iter()
        .map(|(word, number)| format!("{} {word}", grouped(*number)))
        .collect();
    parts.join(", ")
}

fn with_age(text: String, what: &str, age_ms: u64) -> String {
    match (age_ms, text.is_empty()) {
        (0, _) => text,
        (age, true) => format!("{what} for {}", duration(age)),
        (age, false) => format!("{text}; {what} for {}", duration(age)),
    }
}
