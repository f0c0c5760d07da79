//! Alerts, reports and their messages in documents.

use serde_json::{Value, json};
use watershed_api::documents::{HistoryTransition, ResourceName, Time};
use watershed_controller::Resource;
use watershed_controller::message::Message;
use watershed_core::{Row, Timestamp};
use watershed_delivery::{Key, Notification, Record, Standing};
use watershed_reconcilers::alert::{self, record::AlertRecord, record::Entry, snooze};
use watershed_reconcilers::report::{self, record as made, record::ReportRecord};

use crate::report::Entry as Resources;

/// Returns the result of an alert, report or message; none for other kinds and before the first run.
pub(super) fn result(row: &Row) -> Option<Value> {
    match row.kind.as_str() {
        alert::KIND => Some(of_alert(row, &state::<AlertRecord>(row)?)),
        report::KIND => Some(of_report(&state::<ReportRecord>(row)?)),
        watershed_delivery::KIND => {
            let spec = Resource::spec_of::<Notification>(row).ok()?;
            Some(of_notification(&spec, &state::<Record>(row).unwrap_or_default()))
        }
        _ => None,
    }
}

/// Returns the evaluations of alerts and files of reports for `history`, of all resources or of one.
///
/// For all resources, an evaluation is left out unless it has a new verdict or sent a message.
pub(crate) fn past_questions(entries: &[Resources], of: Option<&Row>) -> Vec<HistoryTransition> {
    let rows = entries.iter().map(|entry| entry.row.as_ref());
    let meant = rows.filter(|row| of.is_none_or(|of| of.uid == row.uid));
    let told = |row: &Row| match row.kind.as_str() {
        alert::KIND => evaluations(row, of.is_some()),
        report::KIND => files(row),
        _ => Vec::new(),
    };
    meant.flat_map(told).collect()
}

/// Returns the evaluations of an alert, oldest first; unless `all`, only those with a new verdict or a message.
fn evaluations(row: &Row, all: bool) -> Vec<HistoryTransition> {
    let history = state::<AlertRecord>(row).unwrap_or_default().history;
    let mut before = None;
    let mut found = Vec::new();
    for entry in history.iter().rev() {
        let verdict = entry.verdict.as_str();
        let from = before.replace(verdict).unwrap_or(verdict);
        if !all && from == verdict && entry.told.is_empty() {
            continue;
        }
        found.push(HistoryTransition {
            from: from.to_owned(),
            to: verdict.to_owned(),
            detail: entry.error.clone(),
            rows: entry.rows.as_ref().map(|table| table.rows.len() as u64),
            messages: keys(&entry.told),
            ..question(row, "evaluated", entry.at, entry.moment)
        });
    }
    found
}

/// Returns the exported files of a report, oldest first.
fn files(row: &Row) -> Vec<HistoryTransition> {
    let history = state::<ReportRecord>(row).unwrap_or_default().history;
    let made = |entry: &made::Entry| {
        let (reason, detail) = match entry.error.is_empty() {
            true => ("made", &entry.file),
            false => ("failed", &entry.error),
        };
        HistoryTransition {
            detail: detail.clone(),
            rows: entry.rows,
            messages: keys(&entry.sent),
            ..question(row, reason, entry.at, entry.moment)
        }
    };
    history.iter().rev().map(made).collect()
}

fn keys(messages: &[Key]) -> Vec<String> {
    messages.iter().map(|key| key.as_str().to_owned()).collect()
}

fn question(row: &Row, reason: &str, at: Timestamp, moment: Timestamp) -> HistoryTransition {
    HistoryTransition {
        at: Time::from_millis(at.0),
        resource: ResourceName::new(row.kind.as_str(), row.name.as_str()),
        from: String::new(),
        to: String::new(),
        reason: reason.to_owned(),
        detail: String::new(),
        run: String::new(),
        moment: Some(Time::from_millis(moment.0)),
        rows: None,
        messages: Vec::new(),
    }
}

/// Returns true for alerts, reports and messages.
///
/// A start looks at them, and repeats no failed question or attempt before somebody asks for that.
pub(crate) fn is_alert_or_message(row: &Row) -> bool {
    [alert::KIND, report::KIND, watershed_delivery::KIND].contains(&row.kind.as_str())
}

fn state<M: Message>(row: &Row) -> Option<M> {
    Resource::state_of(row).ok().flatten()
}

fn time(at: Timestamp) -> Value {
    serde_json::to_value(Time::from_millis(at.0)).unwrap_or_default()
}

fn of_report(record: &ReportRecord) -> Value {
    let entry = |entry: &made::Entry| {
        json!({
            "at": time(entry.at),
            "moment": time(entry.moment),
            "file": Some(&entry.file).filter(|file| !file.is_empty()),
            "rows": entry.rows,
            "bytes": entry.bytes,
            "error": Some(&entry.error).filter(|error| !error.is_empty()),
            "sent": entry.sent,
        })
    };
    json!({ "history": record.history.iter().map(entry).collect::<Vec<_>>() })
}

fn of_alert(row: &Row, record: &AlertRecord) -> Value {
    let snoozed = snooze::end(&row.labels, Timestamp(Time::now().millis()));
    let memory = &record.memory;
    let told = memory
        .told
        .map(|(verdict, at)| json!({"verdict": verdict, "at": time(at)}));
    json!({
        "verdict": memory.last,
        "told": told,
        "suppressed": memory.suppressed,
        "snoozed_until": snoozed.map(time),
        "interval": record.interval.map(time),
        "suppressed_since": memory.suppressed_since.map(time),
        "history": record.history.iter().map(entry).collect::<Vec<_>>(),
    })
}

fn entry(entry: &Entry) -> Value {
    json!({
        "at": time(entry.at),
        "moment": time(entry.moment),
        "verdict": entry.verdict,
        "rows": entry.rows,
        "error": Some(&entry.error).filter(|error| !error.is_empty()),
        "left_out": Some(entry.left_out).filter(|left_out| *left_out > 0),
        "told": entry.told,
    })
}

fn of_notification(spec: &Notification, record: &Record) -> Value {
    let (standing, at) = match &record.standing {
        Standing::Waiting => ("waiting", None),
        Standing::Delivered { at, .. } => ("delivered", Some(*at)),
        Standing::Dead { at } => ("dead", Some(*at)),
    };
    json!({
        "sender": spec.message.sender,
        "receiver": spec.receiver.label(),
        "title": spec.message.title,
        "standing": standing,
        "at": at.map(time),
        "attempts": record.attempts,
        "next_attempt": record.next.map(time),
        "failure": record.failure,
    })
}
