//! `partitions` for people.

use anstyle::Style;
use watershed_api::documents::{PartitionEntry, PartitionState, PartitionsDocument, Time};

use super::columns::{Cell, fitting};
use super::palette::{BAD, DIM, GOOD, STRONG, WARN};
use super::summary::first_line;
use super::units::{ago, count, duration};

/// Number of characters of a key that are shown, enough to tell keys apart.
const SHOWN_KEY: usize = 8;

/// Renders the table of partitions, the latest run last, and their counts.
pub(crate) fn partitions(document: &PartitionsDocument, now: Time, width: Option<u16>) -> String {
    let counts = document.counts;
    let total = counts.done + counts.staged + counts.failed + counts.asked + counts.gone;
    if total == 0 {
        return "no partition was built yet\n".to_owned();
    }
    let title = |text: &str| Cell::left(text, DIM);
    let mut rows = vec![vec![
        title("KEY"),
        title("STATE"),
        title("RAN"),
        Cell::right("TOOK", DIM),
        Cell::right("ROWS", DIM),
        title("DATA"),
        title(""),
    ]];
    rows.extend(document.partitions.iter().rev().map(|one| line(one, now)));
    let parts = [
        (counts.done, "done"),
        (counts.staged, "staged"),
        (counts.asked, "asked for"),
        (counts.failed, "failed"),
        (counts.gone, "gone"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| format!("{number} {word}"))
        .collect();
    let table = match document.partitions.is_empty() {
        true => String::new(),
        false => fitting("", &rows, width),
    };
    format!(
        "{table}{STRONG}{}{STRONG:#}: {}: {}\n",
        document.resource.name,
        count(total, "partition"),
        parts.join(", ")
    )
}

fn line(one: &PartitionEntry, now: Time) -> Vec<Cell> {
    let style = match one.phase {
        PartitionState::Done => GOOD,
        PartitionState::Failed => BAD,
        PartitionState::Staged | PartitionState::Asked => WARN,
        PartitionState::Gone => DIM,
    };
    let key: String = one.key.chars().take(SHOWN_KEY).collect();
    let rows = one.rows.map(|rows| rows.to_string()).unwrap_or_default();
    let data = one.data.as_object().map(|fields| {
        let text = |value: &serde_json::Value| match value {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let fields = fields
            .iter()
            .map(|(name, value)| format!("{name}={}", text(value)));
        fields.collect::<Vec<_>>().join(" ")
    });
    let error = one.error.as_deref().map(first_line).unwrap_or_default();
    vec![
        Cell::left(key, DIM),
        Cell::left(one.phase.as_str(), style),
        Cell::left(ago(one.ran_at, now), DIM),
        Cell::right(duration(one.duration_ms), Style::new()),
        Cell::right(rows, Style::new()),
        Cell::left(data.unwrap_or_default(), Style::new()),
        Cell::left(error, BAD),
    ]
}
