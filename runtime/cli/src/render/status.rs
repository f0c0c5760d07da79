//! The status of resources, for people.

use std::collections::BTreeMap;

use anstyle::Style;
use watershed_api::documents::{
    EndedEarly, Health, HistoryDocument, HistoryRun, HistoryTransition, LastRun, Moment, Outcome, Phase,
    Repeats, ResourceDocument, RunDocument, Time, Work,
};

use super::alerts;
use super::columns::{Cell, fitting};
use super::data_tests;
use super::managed;
use super::palette::{BAD, DIM, GOOD, STRONG, WARN};
use super::paragraph::{folded, paragraph};
use super::programs;
use super::summary::{blocked_by, first_line, is_waiting, output_kind, output_rows};
use super::units::{ago, count, duration, some_of};
use super::words::{self, Sources};
use watershed::program::PROJECT_PARSER;

pub(super) fn health_style(health: Health) -> Style {
    match health {
        Health::Failed => BAD,
        Health::Blocked | Health::Unready | Health::Stale | Health::Paused => WARN,
        Health::Unsupported | Health::NeverBuilt => DIM,
        Health::Ok => GOOD,
    }
}

fn outcome_style(outcome: Outcome) -> Style {
    match outcome {
        Outcome::Failed => BAD,
        Outcome::Skipped | Outcome::Cancelled => WARN,
        Outcome::Done => GOOD,
        Outcome::Unchanged | Outcome::NotSelected => DIM,
    }
}

/// The choice of lines in a status.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listing {
    /// Healthy resources without output are counted together.
    #[default]
    Grouped,
    /// Each resource has a line.
    Whole,
}

/// Renders the table of `status`, with resources that need a person first, on a screen of some width and height.
///
/// Where the screen is too low, healthy resources are counted by their kinds, and column titles repeated.
pub(crate) fn status(
    document: &RunDocument,
    listing: Listing,
    now: Time,
    (width, height): (Option<u16>, Option<u16>),
) -> String {
    if document.resources.is_empty() {
        let why = match &document.not_applied {
            Some(error) => format!(": {BAD}{}{BAD:#}", first_line(&error.message)),
            None => String::new(),
        };
        return format!(
            "{STRONG}{}{STRONG:#} has no resources yet{why}\n",
            document.project
        );
    }
    let end = end(document, now, width);
    // The prompt takes a line too.
    let room = height.map_or(usize::MAX, |height| {
        usize::from(height).saturating_sub(end.lines().count() + 1)
    });
    let mut sorted: Vec<&ResourceDocument> = document.resources.iter().collect();
    sorted.sort_by_key(|resource| resource.health);
    let lines: Vec<Line<'_>> = sorted
        .iter()
        .map(|resource| (*resource, status_line(resource, now)))
        .collect();
    let silent = lines
        .iter()
        .filter(|line| is_healthy(line) && is_silent(line))
        .count();
    let mut counted: Vec<String> = Vec::new();
    loop {
        let is_counted = |line: &Line<'_>| {
            let is_group = silent > MOST_SILENT && is_silent(line) || counted.contains(&called(line.0));
            listing == Listing::Grouped && is_healthy(line) && is_group
        };
        let table = table(&lines, is_counted, room, width);
        let next = most_common(lines.iter().filter(|line| is_healthy(line) && !is_counted(line)));
        match next {
            Some(kind) if table.lines().count() > room && listing == Listing::Grouped => counted.push(kind),
            _ => return table + &end,
        }
    }
}

/// A resource with the cells of its line.
type Line<'a> = (&'a ResourceDocument, Vec<Cell>);

/// Renders the lines of resources, and the number of those that are counted instead.
fn table(
    lines: &[Line<'_>],
    is_counted: impl Fn(&Line<'_>) -> bool,
    room: usize,
    width: Option<u16>,
) -> String {
    let titles = ["HEALTH", "KIND", "NAME", "LAST RUN", "OUTPUT"];
    let titles = titles.map(|title| Cell::left(title, DIM)).to_vec();
    let listed = lines.iter().filter(|line| !is_counted(line));
    let mut rows = vec![titles.clone()];
    rows.extend(listed.map(|(_, cells)| cells.clone()));
    let counted: Vec<&ResourceDocument> = lines
        .iter()
        .filter(|line| is_counted(line))
        .map(|(resource, _)| *resource)
        .collect();
    let counted = group(&counted, width);
    let out = match rows.len() {
        1 => String::new(),
        _ => fitting("", &rows, width),
    };
    if out.lines().count() + counted.lines().count() <= room {
        return out + &counted;
    }
    // The first titles are out of sight.
    rows.push(titles);
    fitting("", &rows, width) + &counted
}

/// Returns the kind of most lines; none without lines.
fn most_common<'a>(lines: impl Iterator<Item = &'a Line<'a>>) -> Option<String> {
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    for (resource, _) in lines {
        *numbers.entry(called(resource)).or_default() += 1;
    }
    numbers
        .into_iter()
        .max_by_key(|(_, number)| *number)
        .map(|(kind, _)| kind)
}

/// Renders what follows the table: details of programs, root causes, the verdict.
fn end(document: &RunDocument, now: Time, width: Option<u16>) -> String {
    let details = programs::details(document, now, width) + &managed::details(document, now, width);
    let mut out = "\n".to_owned();
    let sources = Sources::of(document);
    for (cause, blocked) in blocked_by(document) {
        let cause = sources.name(&cause);
        let number = count(blocked.len() as u64, "resource");
        let word = match is_waiting(&blocked) {
            true => "waiting for",
            false => "blocked by",
        };
        out.push_str(&format!(
            "{WARN}{number}{WARN:#} {word} {STRONG}{cause}{STRONG:#}\n"
        ));
    }
    out.push_str(&verdict(document));
    // What is at no place in a file is told by nobody else.
    for found in document.diagnostics.iter().filter(|found| found.path.is_empty()) {
        out.push_str(&format!("{BAD}✗{BAD:#} {}\n", found.message));
        let hint = found.hint.as_ref().map(|hint| format!("  hint: {hint}\n"));
        out.extend(hint);
    }
    if document.resources.iter().any(programs::is_last_known) {
        let word = programs::LAST_KNOWN;
        out.push_str(&format!("{DIM}jobs and services: {word}{DIM:#}\n"));
    }
    details + &folded(&out, 2, width)
}

/// Most healthy resources without output that have a line each instead of a count.
const MOST_SILENT: usize = 3;

/// Returns true if a resource is healthy and idle, and nobody is told of anything.
fn is_healthy((resource, _): &Line<'_>) -> bool {
    let verdict = resource.result.as_ref().and_then(|result| result.get("verdict"));
    let tests = data_tests::counts(resource);
    let is_quiet = verdict.is_none_or(|verdict| verdict == "pass") && tests.failed + tests.warned == 0;
    (resource.health, resource.phase) == (Health::Ok, Phase::Idle) && is_quiet
}

/// Returns true if a resource is without output.
fn is_silent((_, cells): &Line<'_>) -> bool {
    cells.last().is_some_and(Cell::is_empty)
}

/// Renders the number of each kind: `30 dashboards and 5 components: ok`; nothing for none.
fn group(counted: &[&ResourceDocument], width: Option<u16>) -> String {
    let mut numbers: Vec<(String, u64)> = Vec::new();
    for resource in counted {
        let kind = called(resource);
        match numbers.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, number)) => *number += 1,
            None => numbers.push((kind, 1)),
        }
    }
    if numbers.is_empty() {
        return String::new();
    }
    let parts: Vec<String> = numbers
        .iter()
        .map(|(kind, number)| count(*number, kind))
        .collect();
    let what = format!("{}: ok (`--all` lists them)", some_of(&parts, parts.len()));
    paragraph("", 0, &what, DIM, width)
}

/// Returns the word for a resource's kind.
fn called(resource: &ResourceDocument) -> String {
    match resource.declared_as.as_ref().unwrap_or(&resource.kind).as_str() {
        "explore" | "canvas" => "dashboard".to_owned(),
        "api" => "API".to_owned(),
        kind => kind.replace('_', " "),
    }
}

/// Widest output that is never cut, in columns; wider ones are cut before names are.
const WIDEST_OUTPUT: usize = 24;

fn status_line(resource: &ResourceDocument, now: Time) -> Vec<Cell> {
    let run = match (resource.phase, &resource.last_run) {
        (Phase::Running, _) => "running now".to_owned(),
        (Phase::Pending, _) => "waits for its turn".to_owned(),
        (Phase::Idle, None) => "never".to_owned(),
        (Phase::Idle, Some(run)) => last_run(run, now),
    };
    let about = match (&resource.error, output_kind(resource)) {
        (Some(error), _) => Cell::left(first_line(&error.message), BAD).below(),
        (None, _) if resource.unready.is_some() => {
            Cell::left(resource.unready.clone().unwrap_or_default(), WARN).below()
        }
        (None, kind) => {
            let tests = data_tests::summary(&data_tests::counts(resource)).unwrap_or_default();
            let told = alerts::glance(resource, now);
            let rows = output_rows(resource);
            let parts = [
                // What has rows is a table.
                if rows.is_empty() { kind } else { rows },
                programs::glance(resource),
                told,
                tests,
            ];
            let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            let about = Cell::left(parts.join(", "), DIM);
            if about.width() <= WIDEST_OUTPUT {
                about.whole()
            } else {
                about
            }
        }
    };
    vec![
        Cell::left(resource.health.as_str(), health_style(resource.health)),
        Cell::left(resource.declared_as.as_ref().unwrap_or(&resource.kind), DIM),
        Cell::name(&resource.name),
        Cell::left(run, DIM).whole(),
        about,
    ]
}

/// Returns the reason why a resource's rows may differ from its files; none if they are up to date.
pub(crate) fn behind(resource: &ResourceDocument) -> Option<String> {
    match resource.health {
        Health::Failed => Some("behind: its last run has failed".to_owned()),
        Health::Blocked => {
            let causes: Vec<String> = resource.blocked_by.iter().map(ToString::to_string).collect();
            Some(format!("behind: {} failed", super::units::some_of(&causes, 3)))
        }
        Health::Unready => Some("it is not ready yet".to_owned()),
        Health::Paused => Some("it is paused".to_owned()),
        Health::Stale => Some("behind: `watershed run` brings it up to date".to_owned()),
        Health::Unsupported | Health::NeverBuilt | Health::Ok => None,
    }
}

/// Renders the age and the duration of a run, and its outcome where the health does not say it.
fn last_run(run: &LastRun, now: Time) -> String {
    let when = format!("{}, {}", ago(run.started_at, now), duration(run.duration_ms));
    match run.outcome {
        Outcome::Done | Outcome::Unchanged => when,
        outcome => format!("{} {when}", outcome.as_str()),
    }
}

fn verdict(document: &RunDocument) -> String {
    let number = |health| document.resources.iter().filter(|r| r.health == health).count();
    let all = [
        Health::Failed,
        Health::Blocked,
        Health::Unready,
        Health::Paused,
        Health::NeverBuilt,
        Health::Stale,
        Health::Unsupported,
        Health::Ok,
    ];
    let parts: Vec<String> = all
        .into_iter()
        .filter(|health| number(*health) > 0)
        .map(|health| {
            let style = health_style(health);
            let count = super::units::grouped(number(health) as u64);
            format!("{style}{count} {}{style:#}", health.as_str())
        })
        .collect();
    let parts: Vec<String> = parts
        .into_iter()
        .chain(data_tests::summary(&document.summary.tests))
        .collect();
    format!(
        "{STRONG}{}{STRONG:#} ({}): {}\n",
        document.project,
        document.environment,
        parts.join(", ")
    )
}

/// Renders the table of `history`, the latest last.
pub(crate) fn history(document: &HistoryDocument, now: Time, width: Option<u16>) -> String {
    let moments = document.moments();
    let end = document.ended_early.as_ref().map(|end| ended_early(end, now));
    if moments.is_empty() {
        return end.unwrap_or_else(|| "no run has changed anything yet\n".to_owned());
    }
    let title = |text: &str| Cell::left(text, DIM);
    let mut rows = vec![vec![
        title("WHEN"),
        title("OUTCOME"),
        title("KIND"),
        title("NAME"),
        Cell::right("TOOK", DIM),
        title("WHY"),
        title(""),
    ]];
    rows.extend(moments.into_iter().rev().map(|moment| match moment {
        Moment::Run(run) => history_line(run, &document.project, now),
        Moment::Transition(transition) => transition_line(transition, now),
    }));
    fitting("", &rows, width) + &end.unwrap_or_default()
}

/// Renders the early end of the last process, which is not in the history.
fn ended_early(end: &EndedEarly, now: Time) -> String {
    let (when, message) = (ago(end.at, now), &end.message);
    format!("{BAD}✗{BAD:#} {when} a run ended before it could be noted here, because {message}\n")
}

fn transition_line(transition: &HistoryTransition, now: Time) -> Vec<Cell> {
    let why = match (&transition.from, &transition.to) {
        (from, to) if from != to => format!("{from} → {to}").replace('_', " "),
        // An alert that stays as it was.
        (_, to) if transition.moment.is_some() => to.clone(),
        _ => String::new(),
    };
    let messages = transition.messages.len() as u64;
    let more = [
        transition.moment.map(|moment| format!("for {moment}")),
        transition.rows.map(|rows| count(rows, "row")),
        (messages > 0).then(|| count(messages, "message")),
        Some(transition.detail.clone()).filter(|detail| !detail.is_empty()),
    ];
    let more: Vec<String> = more.into_iter().flatten().collect();
    vec![
        Cell::left(ago(transition.at, now), DIM).whole(),
        Cell::left(transition.reason.replace('_', " "), Style::new()),
        Cell::left(transition.resource.kind.as_str(), DIM),
        Cell::name(transition.resource.name.as_str()),
        Cell::right("", Style::new()),
        Cell::left(why, DIM),
        Cell::left(more.join(", "), DIM),
    ]
}

fn history_line(run: &HistoryRun, project: &str, now: Time) -> Vec<Cell> {
    let did = match (run.outcome, run.work) {
        // In the words of `run`.
        (Outcome::Done, Work::Dropped) => "removed",
        (Outcome::Done, work) => work.as_str(),
        (outcome, _) => outcome.as_str(),
    };
    let causes = super::units::some_of(&words::told_causes(&run.cause), 3);
    let why = words::reason_and_causes(run.reason, &causes);
    let why = match run.chain.iter().find_map(|link| link.origin.as_deref()) {
        Some(origin) => format!("{why} ({origin})"),
        None => why,
    };
    // The reader of the files is no resource of anybody's: it stands for the project.
    let (kind, name, why) = match run.resource.kind == PROJECT_PARSER {
        true => ("project", project, "its files were read".to_owned()),
        false => (run.resource.kind.as_str(), run.resource.name.as_str(), why),
    };
    let error = run
        .error
        .as_ref()
        .map(|error| first_line(&error.message))
        .unwrap_or_default();
    let why = match run.repeats {
        Some(Repeats { runs, since }) => {
            let runs = count(u64::from(runs), "time");
            format!("{runs} since {}; {why}", ago(since, now))
        }
        None => why,
    };
    vec![
        Cell::left(ago(run.started_at, now), DIM).whole(),
        Cell::left(did, outcome_style(run.outcome)),
        Cell::left(kind, DIM),
        Cell::name(name),
        Cell::right(duration(run.duration_ms), Style::new()),
        Cell::left(why, DIM),
        Cell::left(error, BAD).below(),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use watershed_api::documents::{Command, Summary};

    use super::*;

    fn resource(kind: &str, name: &str, health: &str, result: Value) -> ResourceDocument {
        let resource = json!({
            "kind": kind, "name": name, "refs": [], "paths": [], "phase": "idle", "health": health, "error": null,
            "blocked_by": [], "warnings": [], "work": "none", "last_run": null, "runs_total": 1, "next_run_at": null,
            "spec_version": 1, "state_version": 1, "result": result,
        });
        serde_json::from_value(resource).unwrap()
    }

    /// A project of 40 models, 10 themes and 2 alerts, of which one tells of something; one model has failed.
    fn project() -> RunDocument {
        let rows = || json!({"type": "table", "rows": 7});
        let mut resources = vec![
            resource("alert", "late", "ok", json!({"verdict": "fail"})),
            resource("alert", "early", "ok", json!({"verdict": "pass"})),
            resource("model", "broken", "failed", Value::Null),
        ];
        resources.extend((0..40).map(|at| resource("model", &format!("model_{at}"), "ok", rows())));
        resources.extend((0..10).map(|at| resource("theme", &format!("theme_{at}"), "ok", Value::Null)));
        RunDocument {
            schema: RunDocument::SCHEMA.into(),
            version: String::new(),
            command: Command::Status,
            project: "shop".into(),
            root: String::new(),
            environment: "dev".into(),
            run_id: String::new(),
            started_at: Time::from_millis(0),
            duration_ms: 0,
            exit_code: 1,
            resources,
            not_applied: None,
            diagnostics: Vec::new(),
            summary: Summary::default(),
        }
    }

    fn on_screen(listing: Listing, height: Option<u16>) -> String {
        let text = status(&project(), listing, Time::from_millis(0), (Some(80), height));
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn a_low_screen_has_all_that_is_not_ok_and_counts_the_rest() {
        let said = on_screen(Listing::Grouped, Some(24));
        let table: Vec<&str> = said.lines().take(5).collect();
        assert!(table[0].starts_with("HEALTH  KIND   NAME"), "{said}");
        assert!(table[1].starts_with("failed  model  broken"), "{said}");
        assert!(table[2].starts_with("ok      alert  late"), "{said}");
        assert!(table[3].starts_with("ok      alert  early"), "{said}");
        assert_eq!(table[4], "40 models and 10 themes: ok (`--all` lists them)");
        let high = on_screen(Listing::Grouped, Some(60));
        assert!(
            high.contains("model_39") && high.contains("\n10 themes: ok"),
            "{high}"
        );
        assert_eq!(high.matches("HEALTH").count(), 1, "{high}");
        assert_eq!(on_screen(Listing::Grouped, None), high, "a pipe has room for all");
    }

    #[test]
    fn the_titles_of_a_table_that_is_higher_than_the_screen_stand_at_its_end_too() {
        let said = on_screen(Listing::Whole, Some(24));
        let titles: Vec<usize> = said
            .lines()
            .enumerate()
            .filter_map(|(at, line)| line.starts_with("HEALTH").then_some(at))
            .collect();
        assert_eq!(titles, [0, 54], "{said}");
        assert!(!said.contains("lists them"), "{said}");
        assert_eq!(on_screen(Listing::Whole, None).matches("HEALTH").count(), 1);
    }
}
