//! Starting an invocation: what it gets to see.

use std::sync::Arc;

use crate::core::Core;
use crate::resource::lifecycle::Event;
use crate::resource::{Cancelled, Link, Running, Slot, Under};
use crate::{Effect, InvocationId, KindOptions, Phase, Reason, RefView, Seen, SeenRef, Start, Why};

impl Core {
    /// The options of its kind, if that is registered here.
    pub(crate) fn options(&self, slot: Slot) -> Option<&KindOptions> {
        self.kinds[self.slots[slot].kind].options.as_ref()
    }

    pub(crate) fn start(&mut self, slot: Slot, phase: Phase) {
        let invocation = self.next_invocation;
        self.next_invocation = invocation.next();
        self.counters.starts += 1;
        let busy = phase == Phase::Reconcile || (phase == Phase::Rename && !self.op_holds(slot));
        let seen = (phase == Phase::Reconcile).then(|| self.see(slot));
        let resource = &mut self.slots[slot];
        let now = self.now;
        let (reason, waited_since) = match resource.pending() {
            Some(pending) => (pending.reason.clone(), pending.since),
            None => (Arc::new(Reason::bare(Why::Recovered)), now.mono),
        };
        self.set_deadline(slot, invocation);
        let resource = &mut self.slots[slot];
        let answers = phase == Phase::Reconcile && std::mem::take(&mut resource.own);
        let running = Running {
            invocation,
            phase,
            reason: reason.clone(),
            started_at: now.wall,
            begun: now.mono,
            waited_since,
            cancelled: Cancelled::No,
            again: None,
            under: Under {
                name: resource.name,
                claims: resource.claims.clone(),
            },
            seen,
            answers,
            busy,
            progress: None,
        };
        let (kind, row) = (resource.kind, resource.row.clone());
        self.on(slot, Event::Started(Box::new(running)));
        self.kinds.enter(kind);
        self.runs.insert(invocation, slot);
        if busy {
            self.count_running(slot);
        }
        let refs = if phase == Phase::Reconcile {
            self.view_refs(slot)
        } else {
            Vec::new()
        };
        let start = Start {
            invocation,
            phase,
            resource: row,
            refs,
            reason,
            epoch: self.epoch,
        };
        self.out.push(Effect::Start(Box::new(start)));
    }

    fn view_refs(&self, slot: Slot) -> Vec<RefView> {
        let resource = &self.slots[slot];
        let view = |(reference, link): (&crate::Ref, &Link)| {
            let target = self.names[link.name].live.map(|target| &self.slots[target]);
            RefView {
                reference: reference.clone(),
                target: target.map(|target| target.row.clone()),
                failed: target.is_some_and(|target| target.is_failed()),
            }
        };
        resource
            .row
            .refs
            .iter()
            .zip(resource.links.iter())
            .map(view)
            .collect()
    }

    /// What a reconcile that starts now sees.
    pub(crate) fn see(&self, slot: Slot) -> Seen {
        let row = &self.slots[slot].row;
        Seen {
            spec_version: row.spec_version,
            refreshes: row.refreshes,
            formats: self.formats(slot),
            refs: self.seen_refs(slot),
        }
    }

    fn seen_refs(&self, slot: Slot) -> Arc<[SeenRef]> {
        if self.slots[slot].links.is_empty() {
            return Arc::default(); // needs no memory
        }
        self.refs_now(slot).collect()
    }

    /// Versions of the kind's messages; 0 for what is not registered.
    pub(crate) fn formats(&self, slot: Slot) -> (u32, u32) {
        self.options(slot)
            .map_or((0, 0), |options| (options.spec_format, options.state_format))
    }

    /// Its refs as they are now, in their order.
    pub(crate) fn refs_now(&self, slot: Slot) -> impl Iterator<Item = SeenRef> + '_ {
        self.slots[slot]
            .links
            .iter()
            .map(|link| match self.names[link.name].live {
                None => SeenRef {
                    target: None,
                    failed: false,
                },
                Some(target) => {
                    let target = &self.slots[target];
                    SeenRef {
                        target: Some((target.row.uid, target.row.state_version)),
                        failed: target.is_failed(),
                    }
                }
            })
    }

    /// An invocation says how far it is.
    pub(crate) fn progress(&mut self, invocation: InvocationId, text: Arc<str>) {
        let Some(slot) = self.runs.get(&invocation).copied() else {
            return;
        };
        if let Some(run) = self.slots[slot].run_mut() {
            run.progress = Some(text);
            self.touch_status(slot);
        }
    }
}
