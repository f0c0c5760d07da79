//! The status of resources, for people.

use anstyle::Style;
use watershed_api::documents::{
    EndedEarly, GraphDocument, Health, HistoryDocument, HistoryRun, HistoryTransition, LastRun, Moment,
    Outcome, Phase, Repeats, ResourceDocument, RunDocument, Time, Work,
};

use super::alerts;
use super::columns::{Cell, fitting};
use super::data_tests;
use super::managed;
use super::palette::{BAD, DIM, GOOD, STRONG, WARN};
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

/// Renders the table of `status`, with resources that need a person first.
pub(crate) fn status(document: &RunDocument, listing: Listing, now: Time, width: Option<u16>) -> String {
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
    let mut sorted: Vec<&ResourceDocument> = document.resources.iter().collect();
    sorted.sort_by_key(|resource| resource.health);
    let title = |text: &str| Cell::left(text, DIM);
    let mut rows = vec![vec![
        title("HEALTH"),
        title("KIND"),
        title("NAME"),
        title("LAST RUN"),
        title("OUTPUT"),
    ]];
    let lines = sorted
        .iter()
        .map(|resource| (*resource, status_line(resource, now)));
    let (grouped, listed): (Vec<_>, Vec<_>) = lines.partition(|(resource, line)| is_silent(resource, line));
    let is_grouped = listing == Listing::Grouped && grouped.len() > MOST_SILENT;
    rows.extend(listed.into_iter().map(|(_, line)| line));
    let silent: Vec<&ResourceDocument> = grouped.iter().map(|(resource, _)| *resource).collect();
    rows.extend(grouped.into_iter().filter(|_| !is_grouped).map(|(_, line)| line));
    let mut out = fitting("", &rows, width);
    if is_grouped {
        out.push_str(&group(&silent, width));
    }
    out.push_str(&programs::details(document, now, width));
    out.push_str(&managed::details(document, now, width));
    out.push('\n');
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
    out
}

/// Most healthy resources without output that have a line each instead of a count.
const MOST_SILENT: usize = 3;

/// Returns true if a resource is healthy, idle and without output.
fn is_silent(resource: &ResourceDocument, line: &[Cell]) -> bool {
    (resource.health, resource.phase) == (Health::Ok, Phase::Idle) && line.last().is_some_and(Cell::is_empty)
}

/// Renders the count of such resources: `35 dashboards and components: ok`.
fn group(silent: &[&ResourceDocument], width: Option<u16>) -> String {
    let mut kinds: Vec<String> = Vec::new();
    for resource in silent {
        let kind = plural(&resource.kind);
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let number = super::units::grouped(silent.len() as u64);
    let what = format!(
        "{number} {}: ok (`--all` lists them)",
        some_of(&kinds, kinds.len())
    );
    super::paragraph::paragraph("", 0, &what, DIM, width)
}

fn plural(kind: &str) -> String {
    match kind {
        "explore" | "canvas" => "dashboards".to_owned(),
        "api" => "APIs".to_owned(),
        kind => format!("{}s", kind.replace('_', " ")),
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

/// Renders the tree of `graph`: dependents are indented below their dependencies. A repeated resource is not expanded
/// again.
pub(crate) fn graph(document: &GraphDocument) -> String {
    let mut children: std::collections::BTreeMap<_, Vec<_>> = Default::default();
    let mut has_parent = std::collections::BTreeSet::new();
    for edge in &document.edges {
        children.entry(&edge.from).or_default().push(&edge.to);
        has_parent.insert(&edge.to);
    }
    let names: Vec<_> = document
        .nodes
        .iter()
        .map(|node| (node.id(), node.health))
        .collect();
    let health: std::collections::BTreeMap<_, _> =
        names.iter().map(|(name, health)| (name, *health)).collect();
    let mut seen = std::collections::BTreeSet::new();
    let mut out = String::new();
    let roots = names
        .iter()
        .map(|(name, _)| name)
        .filter(|name| !has_parent.contains(name));
    // Members of cycles have no root above them: whatever was not reached is begun at its first name.
    for root in roots.chain(names.iter().map(|(name, _)| name)) {
        if seen.contains(root) {
            continue;
        }
        // A stack of its own: a chain of models may be deeper than the thread's.
        let mut stack = vec![(root, 0_usize)];
        while let Some((name, depth)) = stack.pop() {
            let fresh = seen.insert(name);
            let below = children.get(name).map(Vec::as_slice).unwrap_or_default();
            out.push_str(&graph_line(
                name,
                depth,
                health.get(name).copied(),
                fresh || below.is_empty(),
            ));
            if fresh {
                stack.extend(below.iter().rev().map(|child| (*child, depth + 1)));
            }
        }
    }
    out
}

/// Deepest indentation, in levels; deeper lines show their depth as a number, since chains may be very long.
const DEEPEST_INDENT: usize = 30;

fn graph_line(
    name: &watershed_api::documents::ResourceName,
    depth: usize,
    health: Option<Health>,
    opened: bool,
) -> String {
    let mut indent = "  ".repeat(depth.min(DEEPEST_INDENT));
    if depth > DEEPEST_INDENT {
        indent.push_str(&format!("{DIM}({depth}){DIM:#} "));
    }
    let kind = if name.kind == "model" {
        String::new()
    } else {
        format!("{DIM}{}/{DIM:#}", name.kind)
    };
    let stand = match health {
        None | Some(Health::Ok) => String::new(),
        Some(health) => {
            let style = health_style(health);
            format!("  {style}{}{style:#}", health.as_str())
        }
    };
    let again = if opened {
        String::new()
    } else {
        format!("  {DIM}(above){DIM:#}")
    };
    format!("{indent}{kind}{}{stand}{again}\n", name.name)
}

/// Renders the graph for Graphviz.
pub(crate) fn dot(document: &GraphDocument) -> String {
    let quoted = |name: &watershed_api::documents::ResourceName| {
        format!(
            "\"{}\"",
            name.to_string().replace('\\', "\\\\").replace('"', "\\\"")
        )
    };
    let mut out = "digraph watershed {\n  rankdir=LR;\n  node [shape=box];\n".to_owned();
    for node in &document.nodes {
        let label = node.name.replace('\\', "\\\\").replace('"', "\\\"");
        out.push_str(&format!("  {} [label=\"{label}\"];\n", quoted(&node.id())));
    }
    for edge in &document.edges {
        out.push_str(&format!("  {} -> {};\n", quoted(&edge.from), quoted(&edge.to)));
    }
    out.push_str("}\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use watershed_api::documents::{Edge, Node, ResourceName};

    /// Returns the length of the rendered graph of a chain of `length` models, in bytes.
    fn chain(length: usize) -> usize {
        let name = |at: usize| ResourceName {
            kind: "model".into(),
            name: format!("m{at:05}"),
        };
        let nodes = (0..length).map(|at| Node {
            kind: "model".into(),
            name: name(at).name,
            health: Health::Ok,
        });
        let edges = (1..length).map(|at| Edge {
            from: name(at - 1),
            to: name(at),
        });
        let document = GraphDocument {
            schema: GraphDocument::SCHEMA.into(),
            nodes: nodes.collect(),
            edges: edges.collect(),
        };
        graph(&document).len()
    }

    #[test]
    fn the_text_of_a_long_chain_grows_with_its_length() {
        let (short, long) = (chain(2_000), chain(4_000));
        assert!(long < short * 11 / 5, "{short} bytes and {long} bytes");
    }
}
