//! Transitions of jobs, services and replicas, reported once each.

use std::collections::HashMap;

use watershed_api::documents::{Event, ResourceName, Time};
use watershed_controller::Uid;
use watershed_controller::resource::Row;
use watershed_workloads::Transition;

use crate::report::kinds::programs::transitions;

/// The last reported transition of each program.
#[derive(Default)]
pub(super) struct Stories(HashMap<Uid, Transition>);

impl Stories {
    /// Creates the record with the last transition of each program, so that earlier transitions are not reported.
    pub(super) fn new<'a>(rows: impl Iterator<Item = &'a Row>) -> Self {
        let last = |row: &Row| Some((row.uid, transitions(row).pop()?));
        Self(rows.filter_map(last).collect())
    }

    /// Returns the transitions in a row that were not reported yet; of many, only those still in its record.
    pub(super) fn of(&mut self, row: &Row) -> Vec<Event> {
        let all = transitions(row);
        let Some(last) = all.last().cloned() else {
            return Vec::new();
        };
        let told = self.0.insert(row.uid, last);
        let told = told.and_then(|told| all.iter().rposition(|one| *one == told));
        let event = |one: Transition| Event::Transition {
            at: Time::from_millis(one.at.0),
            resource: ResourceName::new(row.kind.as_str(), row.name.as_str()),
            from: one.from,
            to: one.to,
            reason: one.reason,
            detail: one.detail,
        };
        all.into_iter()
            .skip(told.map_or(0, |told| told + 1))
            .map(event)
            .collect()
    }

    /// Forgets a program that is gone.
    pub(super) fn forget(&mut self, uid: Uid) {
        self.0.remove(&uid);
    }
}
