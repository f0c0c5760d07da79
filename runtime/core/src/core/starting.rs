//! The start of an invocation, with the inputs that its reconciler sees.

use std::sync::Arc;

use super::Core;
use crate::graph::lifecycle::Event;
use crate::schedule::retries::set_deadline;
use crate::types::index::Slot;
use crate::{Effect, InvocationId, Phase, Start};

impl Core {
    pub(super) fn start(&mut self, slot: Slot, phase: Phase) {
        let invocation = self.scheduler.enter(self.graph[slot].kind());
        // While a rename counts, the barrier keeps all regular work from starting, its ancestors included.
        let busy = phase == Phase::Reconcile
            || (phase == Phase::Rename && !self.barrier.op_holds(&self.graph[slot]));
        let seen = (phase == Phase::Reconcile).then(|| self.graph.see(slot));
        set_deadline(&self.graph, &mut self.timers, self.now.mono, (slot, invocation));
        let resource = &mut self.graph[slot];
        let running = resource.begin((invocation, phase), self.now, (seen, busy));
        let (row, reason) = (resource.row().clone(), running.reason().clone());
        self.on(slot, Event::Started(Box::new(running)));
        if busy {
            self.graph.count_running(slot);
        }
        let (refs, owned) = match phase {
            Phase::Reconcile => (self.graph.view_refs(slot), self.graph.view_owned(slot)),
            Phase::Delete | Phase::Rename => Default::default(),
        };
        let start = Start {
            invocation,
            phase,
            resource: row,
            refs,
            owned,
            reason,
            epoch: self.journal.epoch(),
        };
        self.out.push(Effect::Start(Box::new(start)));
    }

    /// Stores the progress text of an invocation, to show it to readers.
    pub(super) fn progress(&mut self, invocation: InvocationId, text: Arc<str>) {
        let Some(slot) = self.graph.run(invocation) else {
            return;
        };
        if let Some(run) = self.graph[slot].run_mut() {
            run.set_progress(text);
            self.graph.touch_status(slot);
        }
    }
}
