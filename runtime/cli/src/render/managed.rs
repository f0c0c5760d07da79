//! Managed resources in the status of resources.

use serde_json::Value;
use watershed_api::documents::{ResourceDocument, RunDocument, ShowDocument, Time};

use super::columns::{Cell, fitting};
use super::palette::{BAD, DIM, STRONG, WARN};
use super::programs::{number, text, time};
use super::units::{ago, ahead, clock};

/// Most resources in a status that shows the parts of owners: a longer status is not about single ones.
const MOST_OWNERS: usize = 3;

/// Renders windows, steps and parts of managed resources, if the document has few resources.
pub(super) fn details(document: &RunDocument, now: Time, width: Option<u16>) -> String {
    let managed = || document.resources.iter().filter(|one| one.kind == "managed");
    if document.resources.len() > MOST_OWNERS {
        return String::new();
    }
    managed().filter_map(|one| detail(one, now, width)).collect()
}

fn detail(resource: &ResourceDocument, now: Time, width: Option<u16>) -> Option<String> {
    let result = resource.result.as_ref()?;
    let mut about = vec![text(result, "stage").to_owned()];
    let desired = text(result, "desired");
    if desired != text(result, "stage") {
        about.push(format!("desired {desired}"));
    }
    if let Some(event) = result.get("event").and_then(Value::as_str) {
        about.push(format!("by event {event}"));
    }
    about.extend(result.get("window").map(|window| told_window(window, now)));
    about.extend(result.get("missed").map(|_| "missed".to_owned()));
    if let Some(names) = result.get("degraded_by").and_then(Value::as_array) {
        let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
        about.push(format!("degraded by {}", names.join(", ")));
    }
    let step = step(result, now);
    if !step.is_empty() {
        about.push(step);
    }
    about.extend(result.get("message").and_then(Value::as_str).map(str::to_owned));
    let mut out = format!(
        "\n{STRONG}managed/{}{STRONG:#}  {}\n",
        resource.name,
        about.join("   ")
    );
    let parts = result.get("parts").and_then(Value::as_array);
    let Some(parts) = parts.filter(|parts| !parts.is_empty()) else {
        return Some(out);
    };
    let titles = ["PART", "ORDER", "STAGE", "GOAL", "SINCE", "STEP"];
    let mut rows = vec![
        titles
            .iter()
            .map(|title| Cell::left(*title, DIM))
            .collect::<Vec<_>>(),
    ];
    rows.extend(parts.iter().map(|part| line(part, now)));
    out.push_str(&fitting("  ", &rows, width));
    Some(out)
}

/// Renders a managed resource for `show`: window, step, parts, data, and transitions, latest first. Empty for other
/// kinds.
pub(super) fn shown(document: &ShowDocument, now: Time, width: Option<u16>) -> String {
    let Some(mut out) =
        detail(&document.resource, now, width).filter(|_| document.resource.kind == "managed")
    else {
        return String::new();
    };
    let list = |key: &str| document.state.get(key).and_then(Value::as_array);
    let data = document.state.get("data").and_then(Value::as_object);
    let datum = |(key, value): (&String, &Value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        vec![Cell::left(key.as_str(), DIM), Cell::plain(value)]
    };
    let data: Vec<Vec<Cell>> = data.into_iter().flatten().map(datum).collect();
    out.push_str(&fitting("  ", &data, width));
    let change = |change: &Value| {
        let at = time(change, "at").map(|at| ago(at, now)).unwrap_or_default();
        let stages = format!("{} -> {}", text(change, "from"), text(change, "to"));
        vec![
            Cell::left(at, DIM),
            Cell::plain(stages),
            Cell::left(text(change, "reason"), DIM),
            Cell::plain(text(change, "detail")),
        ]
    };
    let changes: Vec<Vec<Cell>> = list("transitions")
        .into_iter()
        .flatten()
        .rev()
        .map(change)
        .collect();
    out.push_str(&fitting("  ", &changes, width));
    out.push('\n');
    out
}

/// Renders a window: `window active, ends in 38 min, cleanup by 11:10:00`.
fn told_window(window: &Value, now: Time) -> String {
    let phase = text(window, "phase");
    let until = |key: &str, word: &str| time(window, key).map(|at| format!("{word} {}", ahead(at, now)));
    let next = match phase {
        "before" => until("opening", "prepared"),
        "approaching" => until("start", "starts"),
        "active" => until("end", "ends"),
        _ => None,
    };
    let cleanup = time(window, "deadline").map(|at| format!("cleanup by {}", clock(at)));
    let overdue = window.get("overdue").and_then(Value::as_bool) == Some(true);
    let words = [
        Some(format!("window {phase}")),
        next,
        cleanup,
        overdue.then(|| "overdue".to_owned()),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Renders the current step: `boot: attempt 3 of 5 in 4 s (exit 1: no capacity)`.
fn step(result: &Value, now: Time) -> String {
    let Some(step) = result.get("step").filter(|step| !step.is_null()) else {
        return String::new();
    };
    let action = match text(step, "action") {
        "" => text(step, "to"),
        action => action,
    };
    if let Some(event) = step.get("waits_for_event").and_then(Value::as_str) {
        return format!("{action}: waits for an event {event}");
    }
    let attempts = step.get("attempts").and_then(Value::as_u64);
    let of = attempts.map(|most| format!(" of {most}")).unwrap_or_default();
    let when = time(step, "next_at").map(|at| format!(" {}", ahead(at, now)));
    let error = step.get("error").and_then(Value::as_str);
    let why = error.map(|error| {
        format!(
            " ({})",
            error.strip_prefix(&format!("{action}: ")).unwrap_or(error)
        )
    });
    format!(
        "{action}: attempt {}{of}{}{}",
        number(step, "attempt"),
        when.unwrap_or_default(),
        why.unwrap_or_default()
    )
}

fn line(part: &Value, now: Time) -> Vec<Cell> {
    let since = time(part, "since").map(|at| ago(at, now)).unwrap_or_default();
    let about = match (
        part.get("failure").and_then(|failure| failure.get("message")),
        part.get("error"),
    ) {
        (Some(Value::String(failure)), _) => Cell::left(failure.as_str(), BAD),
        _ => {
            let step = step(part, now);
            let waits = text(part, "unready");
            Cell::left(if step.is_empty() { waits.to_owned() } else { step }, WARN)
        }
    };
    vec![
        Cell::left(text(part, "name"), STRONG),
        Cell::left(number(part, "order").to_string(), anstyle::Style::new()),
        Cell::plain(text(part, "stage")),
        Cell::plain(text(part, "goal")),
        Cell::left(since, DIM),
        about,
    ]
}
