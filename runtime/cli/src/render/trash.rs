//! `trash` for people.

use anstyle::Style;
use watershed_api::documents::{Time, TrashAction, TrashDocument, TrashedTable, WhyTrashed};
use watershed_drivers::volume::Bytes;

use super::columns::{Cell, fitting};
use super::palette::{BAD, DIM, GOOD, STRONG};
use super::units::{ago, ahead, count, grouped, kept_for};

/// Number of characters of an id that are shown.
const SHOWN_ID: usize = 8;

/// Renders the tables in the trash, or the result of restoring or deleting some.
pub(crate) fn trash(document: &TrashDocument, now: Time, width: Option<u16>) -> String {
    match document.action {
        TrashAction::List => list(document, now, width),
        TrashAction::Restore => restored(document),
        TrashAction::Empty => emptied(document, now, width),
    }
}

fn list(document: &TrashDocument, now: Time, width: Option<u16>) -> String {
    let limit = Bytes(document.limit_bytes);
    let keep = kept_for(document.keep_ms);
    let bounds = match document.limit_bytes {
        0 => "it keeps nothing".to_owned(),
        _ => format!("it keeps {limit} at most, for {keep}"),
    };
    if document.tables.is_empty() {
        return format!("the trash is empty; {bounds}\n");
    }
    let table = tables(document, now, width);
    let (number, bytes) = totals(document);
    format!(
        "{table}{STRONG}{}{STRONG:#}: {number}, {bytes}; {bounds}\n",
        document.project
    )
}

fn tables(document: &TrashDocument, now: Time, width: Option<u16>) -> String {
    let title = |text: &str| Cell::left(text, DIM);
    let mut rows = vec![vec![
        title("NAME"),
        title("ID"),
        title("WHY"),
        title("SINCE"),
        title("KEPT"),
        Cell::right("ROWS", DIM),
        Cell::right("SIZE", DIM),
    ]];
    rows.extend(document.tables.iter().map(|one| line(one, now)));
    fitting("", &rows, width)
}

fn line(one: &TrashedTable, now: Time) -> Vec<Cell> {
    let id: String = one.id.chars().take(SHOWN_ID).collect();
    let rows = one.rows.map(grouped).unwrap_or_default();
    let bytes = one
        .bytes
        .map(|bytes| Bytes(bytes).to_string())
        .unwrap_or_default();
    let kept = match one.until.millis() > now.millis() {
        true => ahead(one.until, now),
        false => "until the next look".to_owned(),
    };
    vec![
        Cell::left(one.name.clone(), STRONG),
        Cell::left(id, DIM),
        match one.why {
            WhyTrashed::Deleted => Cell::left("deleted", BAD),
            WhyTrashed::Replaced => Cell::left("replaced", DIM),
        },
        Cell::left(ago(one.at, now), DIM),
        Cell::left(kept, Style::new()),
        Cell::right(rows, Style::new()),
        Cell::right(bytes, Style::new()),
    ]
}

fn totals(document: &TrashDocument) -> (String, Bytes) {
    let bytes = document.tables.iter().filter_map(|it| it.bytes).sum();
    (count(document.tables.len() as u64, "table"), Bytes(bytes))
}

fn restored(document: &TrashDocument) -> String {
    let (Some(table), Some(name)) = (document.tables.first(), &document.restored_as) else {
        return String::new();
    };
    let rows = table.rows.map(|rows| count(rows, "row")).unwrap_or_default();
    match document.dry_run {
        true => format!("would restore {STRONG}{name}{STRONG:#} ({rows})\n"),
        false => format!(
            "{GOOD}✓{GOOD:#} {STRONG}{name}{STRONG:#} is a table again ({rows}): it is yours, no file of the project makes it\n"
        ),
    }
}

fn emptied(document: &TrashDocument, now: Time, width: Option<u16>) -> String {
    let (number, bytes) = totals(document);
    match (document.tables.is_empty(), document.dry_run) {
        (true, _) => "the trash is empty\n".to_owned(),
        (false, true) => format!(
            "{}would throw away {number} for good, {bytes}\n",
            tables(document, now, width)
        ),
        (false, false) => format!(
            "{GOOD}✓{GOOD:#} {number} thrown away for good, {bytes}; `watershed gc` gives the room back to the disk\n"
        ),
    }
}
