//! Alerts by their verdicts, and what became of the messages that they and reports send.

use std::collections::{BTreeMap, HashMap};

use serde_json::json;
use watershed_api::documents::RunDocument;

use watershed_controller::Resource;
use watershed_controller::resource::Row;
use watershed_delivery::{KIND, Record, Standing};
use watershed_reconcilers::alert::{self, policy::Verdict, record::AlertRecord};
use watershed_reconcilers::report;

use super::Entry;

/// Counts alerts by their last verdict; `none` stands for alerts without one.
pub(crate) fn alerts(entries: &[Entry]) -> BTreeMap<String, u64> {
    counted(entries, |row| {
        if row.kind.as_str() != alert::KIND {
            return None;
        }
        let record = Resource::state_of::<AlertRecord>(row).ok().flatten();
        let last = record.and_then(|record| record.memory.last);
        Some(last.map_or("none", Verdict::as_str))
    })
}

/// Adds to alerts and reports how many of their last messages have not arrived, and why.
pub(crate) fn show_undelivered(document: &mut RunDocument, entries: &[Entry]) {
    let mut known: Option<HashMap<&str, Record>> = None;
    for resource in &mut document.resources {
        let told = match resource.kind.as_str() {
            alert::KIND => "told",
            report::KIND => "sent",
            _ => continue,
        };
        let Some(result) = &mut resource.result else {
            continue;
        };
        let history = result["history"].as_array().into_iter().flatten();
        let mut sent = history.filter_map(|entry| entry[told].as_array());
        let Some(last) = sent.find(|keys| !keys.is_empty()) else {
            continue;
        };
        let known = known.get_or_insert_with(|| records(entries));
        let records = last.iter().filter_map(|key| known.get(key.as_str()?));
        let (mut waiting, mut dead, mut failure) = (0_u64, 0_u64, None);
        for record in records {
            match record.standing {
                Standing::Delivered { .. } => continue,
                Standing::Waiting => waiting += 1,
                Standing::Dead { .. } => dead += 1,
            }
            failure = failure.or_else(|| record.failure.clone());
        }
        if waiting + dead > 0 {
            result["undelivered"] = json!({ "waiting": waiting, "dead": dead, "failure": failure });
        }
    }
}

/// Returns the records of all messages by their keys.
fn records(entries: &[Entry]) -> HashMap<&str, Record> {
    let messages = entries.iter().filter(|entry| entry.row.kind.as_str() == KIND);
    let read = |row: &Row| {
        Resource::state_of::<Record>(row)
            .ok()
            .flatten()
            .unwrap_or_default()
    };
    messages
        .map(|entry| (entry.row.name.as_str(), read(&entry.row)))
        .collect()
}

/// Counts messages by their delivery state.
pub(crate) fn notifications(entries: &[Entry]) -> BTreeMap<String, u64> {
    counted(entries, |row| {
        if row.kind.as_str() != KIND {
            return None;
        }
        let record = Resource::state_of::<Record>(row).ok().flatten();
        Some(match record.unwrap_or_default().standing {
            Standing::Waiting => "waiting",
            Standing::Delivered { .. } => "delivered",
            Standing::Dead { .. } => "dead",
        })
    })
}

fn counted(entries: &[Entry], word: impl Fn(&Row) -> Option<&'static str>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for word in entries.iter().filter_map(|entry| word(&entry.row)) {
        *counts.entry(word.to_owned()).or_default() += 1;
    }
    counts
}
