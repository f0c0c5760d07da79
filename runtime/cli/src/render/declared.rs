//! A resource without rows, for people: its state and its settings.

use serde_json::Value;
use watershed_api::documents::{ResourceDocument, ShowDocument, Time};
use watershed_compilers::Arguments;

use super::alerts;
use super::columns::{Cell, fitting};
use super::explain::{labelled, ran};
use super::managed;
use super::palette::{BAD, DIM, STRONG};
use super::status::health_style;
use super::units::{ahead, count};

/// Most settings that are shown; the document has all.
const MOST: usize = 40;

/// Renders `show` for a resource without rows, in lines of at most `width` columns if known.
pub(crate) fn declared(document: &ShowDocument, now: Time, width: Option<u16>) -> String {
    let resource = &document.resource;
    let style = health_style(resource.health);
    let mut out = format!(
        "{STRONG}{}/{}{STRONG:#}  {style}{}{style:#}\n",
        resource.declared_as.as_ref().unwrap_or(&resource.kind),
        resource.name,
        resource.health.as_str()
    );
    let mut line = |label: &str, text: &str, style| {
        if !text.is_empty() {
            out.push_str(&labelled(label, DIM, text, style, width));
        }
    };
    let plain = anstyle::Style::new();
    let said = |key: &str| document.spec.get(key).and_then(Value::as_str).unwrap_or_default();
    line("title", said("display_name"), plain);
    line("about", said("description"), plain);
    for (label, text) in message(resource) {
        line(label, &text, plain);
    }
    line("now", &alerts::glance(resource, now), plain);
    if let Some(error) = &resource.error {
        line("error", &error.message, BAD);
    }
    line("takes", &arguments(document), plain);
    line("file", &resource.paths.join(", "), plain);
    let reads: Vec<String> = resource.refs.iter().map(ToString::to_string).collect();
    line("reads", &reads.join(", "), plain);
    if let Some(run) = &resource.last_run {
        line("last run", &ran(run, now), plain);
    }
    if let Some(next) = resource.next_run_at {
        line("next run", &ahead(next, now), plain);
    }
    out.push_str(&managed::shown(document, now, width));
    out.push_str(&settings(&document.spec, width));
    out.push_str(&format!(" {DIM}`--json` has all of it{DIM:#}\n"));
    out
}

/// Returns the title, sender and receiver of a message; empty for other kinds.
fn message(resource: &ResourceDocument) -> Vec<(&'static str, String)> {
    let Some(result) = resource
        .result
        .as_ref()
        .filter(|_| resource.kind == "notification")
    else {
        return Vec::new();
    };
    let said = |key: &str| text(result.pointer(key).unwrap_or(&Value::Null));
    vec![
        ("title", said("/title")),
        (
            "from",
            format!("{}/{}", said("/sender/kind"), said("/sender/name")),
        ),
        ("to", said("/receiver")),
        ("attempts", said("/attempts")),
        (
            "failure",
            result["failure"].as_str().unwrap_or_default().to_owned(),
        ),
    ]
}

/// Renders the arguments that an API reads itself.
fn arguments(document: &ShowDocument) -> String {
    if document.resource.kind != "api" {
        return String::new();
    }
    let mut read = Arguments::default();
    let mut settings = Vec::new();
    collect(
        "",
        document.spec.get("data").unwrap_or(&Value::Null),
        &mut settings,
    );
    settings.iter().for_each(|(_, text)| read.add(text));
    let needed: Vec<&str> = read.needed().collect();
    let said = |name: &str| match needed.contains(&name) {
        true => name.to_owned(),
        false => format!("{name} (optional)"),
    };
    read.names().map(said).collect::<Vec<_>>().join(", ")
}

/// Renders the settings of a file, one per line; empty and disabled ones are left out.
fn settings(spec: &Value, width: Option<u16>) -> String {
    let mut found = Vec::new();
    collect("", spec, &mut found);
    found.retain(|(path, _)| !matches!(path.as_str(), "display_name" | "description"));
    let left_out = found.len().saturating_sub(MOST);
    let rows: Vec<Vec<Cell>> = found
        .iter()
        .take(MOST)
        .map(|(path, value)| vec![Cell::left(path.as_str(), DIM), Cell::plain(value.as_str())])
        .collect();
    let mut out = match rows.is_empty() {
        true => String::new(),
        false => format!("\n{}", fitting("  ", &rows, width)),
    };
    if left_out > 0 {
        out.push_str(&format!(
            "  {DIM}and {} more{DIM:#}\n",
            count(left_out as u64, "setting")
        ));
    }
    out
}

/// Collects the settings below a path: scalar values, and lists of scalars.
fn collect(path: &str, value: &Value, found: &mut Vec<(String, String)>) {
    let below = |key: &str| match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    };
    match value {
        Value::Object(map) => map
            .iter()
            .for_each(|(key, value)| collect(&below(key), value, found)),
        Value::Array(list) if list.iter().any(|one| one.is_object() || one.is_array()) => {
            for (number, one) in list.iter().enumerate() {
                collect(&below(&number.to_string()), one, found);
            }
        }
        Value::Array(list) => {
            let all: Vec<String> = list.iter().map(text).collect();
            if !all.is_empty() {
                found.push((path.to_owned(), all.join(", ")));
            }
        }
        Value::Null | Value::Bool(false) => {}
        Value::Number(number) if number.as_f64() == Some(0.0) => {}
        Value::String(text) if text.is_empty() => {}
        value => found.push((path.to_owned(), text(value))),
    }
}

/// Renders a value in one line.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_stand_one_a_line_without_what_is_empty() {
        let spec = json!({
            "display_name": "Late", "timeout_seconds": 300, "renotify": false, "after": 0, "query": null,
            "data": {"resolver": "sql", "properties": {"sql": "SELECT 1\nFROM a"}},
            "notifiers": [{"connector": "file", "names": ["a", "b"]}], "annotations": {},
        });
        let shown = anstream::adapter::strip_str(&settings(&spec, None)).to_string();
        let lines: Vec<Vec<&str>> = shown
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(
            lines,
            [
                &[][..],
                &["data.properties.sql", "SELECT", "1", "FROM", "a"],
                &["data.resolver", "sql"],
                &["notifiers.0.connector", "file"],
                &["notifiers.0.names", "a,", "b"],
                &["timeout_seconds", "300"],
            ]
        );
    }

    #[test]
    fn of_many_settings_the_first_are_shown_and_the_others_counted() {
        let many: serde_json::Map<String, Value> = (0..50).map(|n| (format!("k{n:02}"), json!(1))).collect();
        let shown = settings(&Value::Object(many), None);
        assert_eq!(shown.lines().count(), 42);
        assert!(shown.contains("and 10 settings more"), "{shown}");
    }
}
