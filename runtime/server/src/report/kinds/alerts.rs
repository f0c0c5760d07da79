//! Alerts, reports and their messages in documents.

use serde_json::{Value, json};
use watershed_controller::Resource;
use watershed_controller::message::Message;
use watershed_core::{Row, Timestamp};
use watershed_delivery::{Notification, Record, Standing};
use watershed_reconcilers::alert::{self, record::AlertRecord, record::Entry, snooze};
use watershed_reconcilers::report::{self, record as made, record::ReportRecord};

use crate::documents::Time;

/// Returns the result of an alert, a report or a message; none of other kinds, and before there is one.
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

/// Returns true if a resource is an alert, a report or a message: a start looks at them, and neither asks nor sends once more what
/// has failed before somebody wants that.
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
    let snoozed = snooze::end(&row.labels);
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
