//! Cancels of operations, and giving up on those that don't react.

use super::effects::Effect;
use super::{Phase, Planner};
use crate::operations::{Ending, OperationId, RunMode};
use crate::value::Value;

/// Error of an operation that did not react to its cancel.
const NO_REACTION: &str = "did not react to its cancel in time";

impl<V: Value> Planner<'_, V> {
    /// Stops starting operations and waiting for answers.
    pub(super) fn halt(&mut self) {
        self.is_halted = true;
        // Answers would only lead to operations, and none is to be started any more.
        self.awaited.clear();
        if matches!(self.phase, Phase::Observing | Phase::Asking) {
            self.phase = Phase::Running;
        }
    }

    /// Stops waiting for an operation that goes on in the background.
    pub(super) fn let_go(&mut self, id: OperationId) {
        self.operations.set_mode(id, RunMode::Background);
    }

    pub(super) fn cancel(&mut self, which: &[OperationId]) {
        let at = self.at;
        for &id in which {
            let Some(running) = self
                .operations
                .get(id)
                .filter(|running| running.ending == Ending::None)
                .cloned()
            else {
                continue;
            };
            let item_type = self.types.get(running.reference.type_name());
            let deadline = at.after_ms(item_type.map_or(0, |item_type| item_type.cancel_deadline_ms));
            let line = self.open_line(id, &running);
            if let Some(entry) = self.log.line(line) {
                entry.cancelled = Some(at);
            }
            self.operations.set_cancelled(id, at, line);
            self.operations.set_ending(id, Ending::Cancelled { at, deadline });
            self.effects.push(Effect::Cancel { id, deadline });
        }
    }

    /// Fails the cancelled operations whose deadline has passed. They stay registered until they return, and block
    /// other operations on their items.
    pub(super) fn expire(&mut self) {
        let late =
            |ending: Ending| matches!(ending, Ending::Cancelled { deadline, .. } if deadline <= self.now);
        let overdue: Vec<OperationId> = self
            .operations
            .iter()
            .filter(|(_, running)| late(running.ending))
            .map(|(id, _)| id)
            .collect();
        for id in overdue {
            self.operations.set_ending(id, Ending::Abandoned);
            if let Some(running) = self.operations.get(id).cloned() {
                self.relations.remove(&id);
                self.close(id, &running, Err(NO_REACTION.to_owned()));
            }
        }
    }
}
