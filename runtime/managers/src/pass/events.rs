//! The events that a resource owns. Each has its effect once.

use watershed_controller::resource::Row;
use watershed_controller::{Edit, Reconciler, Resource};

use super::Pass;
use crate::deliver::{EVENT_KIND, EVENTS_KEPT, Received};
use crate::event::EventMatch;
use crate::manager::Manager;
use crate::record::{ManagedState, StageOverride};

impl<M: Manager, R: Reconciler<State = ManagedState<M::Details>>> Pass<'_, M, R> {
    /// Returns the events that are stored for the resource, oldest first.
    fn kept_events(&self) -> Vec<&Row> {
        let owned = self.context.owned().iter().map(|view| &*view.resource);
        let mut rows: Vec<&Row> = owned
            .filter(|row| row.kind.as_str() == EVENT_KIND && !row.intents.is_deleted())
            .collect();
        rows.sort_by_key(|row| (row.created_at, row.uid));
        rows
    }

    /// Takes in the events since the last pass, and applies those for which there is a rule.
    pub(super) fn hear(&mut self) {
        let wanted = &self.subject.wanted.desired;
        // An edit ends it, also one that was taken back since.
        let record = &mut self.kept.record;
        record.stage_override = record
            .stage_override
            .take()
            .filter(|stage_override| stage_override.holds(wanted));
        let mut new = Vec::new();
        let mut still_kept = Vec::new();
        for row in self.kept_events() {
            if self.kept.record.handled.contains(&row.uid) {
                still_kept.push(row.uid);
            } else if let Ok(received) = Resource::spec_of::<Received>(row) {
                new.push((row.uid, received.event));
            }
        }
        self.kept.record.handled = still_kept;
        for (uid, event) in new {
            let rules = &self.subject.wanted.desired.on_events;
            let rule = rules
                .iter()
                .find(|rule| rule.on.matches(&event, self.subject.name.as_str()));
            let Some(rule) = rule else {
                self.events.push((uid, event));
                continue;
            };
            if let Some(stage) = rule
                .desired
                .clone()
                .filter(|stage| self.stages.index(stage).is_some())
            {
                self.kept.record.stage_override = Some(StageOverride {
                    stage,
                    instead_of: self.subject.wanted.desired.stage.clone(),
                    edits: self.subject.wanted.desired.edits,
                    by: event.identity(),
                });
            }
            self.kept.record.handled.push(uid);
            self.event = Some(event);
        }
    }

    /// Takes the first event that meets the condition. Returns false if there is none.
    pub(super) fn take_event(&mut self, meant: &EventMatch) -> bool {
        let name = self.subject.name.as_str();
        let found = self
            .events
            .iter()
            .position(|(_, event)| meant.matches(event, name));
        let Some(at) = found else { return false };
        let (uid, event) = self.events.remove(at);
        self.kept.record.handled.push(uid);
        self.event = Some(event);
        true
    }

    /// Marks the remaining events as handled, unless a step is under way whose result may be among them.
    pub(super) fn end_events(&mut self) {
        if self.kept.record.current.is_none() {
            let left = self.events.drain(..).map(|(uid, _)| uid);
            self.kept.record.handled.extend(left);
        }
    }

    /// Returns the edits that delete the oldest events beyond [`EVENTS_KEPT`].
    pub(super) fn old_events(&self) -> Vec<Edit> {
        let rows = self.kept_events();
        let excess = rows.len().saturating_sub(EVENTS_KEPT);
        let old = rows.into_iter().take(excess);
        old.map(|row| Edit::delete(row.uid)).collect()
    }
}
