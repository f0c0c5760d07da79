//! Counts of alerts and of the messages that they and reports send.

use std::collections::BTreeMap;

use watershed_controller::Resource;
use watershed_controller::resource::Row;
use watershed_delivery::{KIND, Record, Standing};
use watershed_reconcilers::alert::{self, policy::Verdict, record::AlertRecord};

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
