//! One resource in the core: its row and its stage.

use std::sync::Arc;
use std::time::Duration;

use super::lifecycle::Lifecycle;
pub(crate) use super::stages::{Cancelled, Pending, Running, Under};
use crate::types::index::{CycleId, KindId, NameId};
use crate::{
    Error, InvocationId, Mono, Name, NoOpRun, Now, ObservedInputs, Phase, Reason, Required, Revision, Row,
    Settled, Trigger,
};

/// One ref, bound to the name that it names. Parallel to `row.refs`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoundRef {
    pub(super) name: NameId,
    /// The index of this link among the name's referrers.
    pub(super) position: u32,
    pub(super) required: Required,
    /// True if it makes an edge when its name is live: not `exists`, and the first such ref of its name.
    pub(super) edge: bool,
    /// True if that edge is in the counts of its two ends.
    pub(super) counted: bool,
}

/// Tells whether a resource is part of the graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Life {
    /// Has its name; part of the graph.
    Live,
    /// Marked for deletion: stored, but no longer part of the graph.
    Deleted,
    /// No longer stored; its last invocation has yet to return.
    Gone,
}

/// The unfinished delete or rename of a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    None,
    /// Waits or runs. While it counts, others wait for it (C6).
    Due {
        counts: bool,
    },
    /// Failed; tried again by its timer.
    Failed,
}

/// Marks on a resource that say in which list it stands already.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Listed {
    pub(super) queued: bool,
    /// The phase whose queue holds it; an entry elsewhere is stale.
    pub(super) ready: Option<Phase>,
    pub(super) row_dirty: bool,
    pub(super) status_dirty: bool,
}

/// A transient failure, as far as its retry depends on it: another policy for it may come later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure {
    pub(super) at: Mono,
    pub(super) retry_after: Option<Duration>,
}

/// Cold fields: parts that only few resources have at a time.
#[derive(Default, Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Extra {
    /// The transient failure that stands, until its retry is taken up.
    pub(super) failure: Option<Failure>,
    /// Failures that the next wait is as long for: those before a success among them, until that has lasted. Where it is
    /// less than the failures in a row, those count.
    pub(super) backed_off: u32,
    /// Something requested it while it was paused.
    pub(super) missed: bool,
    /// To be run once although it is paused.
    pub(super) forced: bool,
    /// Deletes that its own waits for.
    pub(super) delete_waits: u32,
    /// The reason why its stored bytes are kept untouched.
    pub(super) unreadable: Option<Arc<Error>>,
}

static NOTHING_EXTRA: Extra = Extra {
    failure: None,
    backed_off: 0,
    missed: false,
    forced: false,
    delete_waits: 0,
    unreadable: None,
};

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Resource {
    pub(super) row: Arc<Row>,
    pub(super) kind: KindId,
    pub(super) name: NameId,
    pub(super) life: Life,
    pub(super) links: Box<[BoundRef]>,
    /// Other names that it still claims: those of its rename mark. Sorted, without its present name.
    pub(super) claims: Box<[NameId]>,
    pub(super) lifecycle: Lifecycle,
    pub(super) op: Op,
    /// A request of its own that no completed invocation has answered.
    pub(super) requested: bool,
    /// Not considered before this revision is committed.
    pub(super) hold: Revision,
    pub(super) cycle: Option<CycleId>,
    /// For a cycle, the next three stand with its first member.
    pub(super) unsettled_parents: u32,
    pub(super) busy_children: u32,
    pub(super) running: u32,
    /// Newly unsettled; `busy_children` is not summed up yet.
    pub(super) summing: bool,
    /// The time that its last completed reconcile took, and the longest way from it to a leaf, in ms (C12).
    pub(super) duration_ms: u32,
    pub(super) path_ms: u32,
    /// The time at which something other than a timed request last came for it.
    pub(super) disturbed: Mono,
    pub(super) extra: Option<Box<Extra>>,
    /// The last run, where it was a no-op: it goes into the row when that is written next.
    pub(super) no_op: Option<Arc<NoOpRun>>,
    /// Of a `first` kind and not settled once yet.
    pub(super) gates: bool,
    /// In some commit that was handed out; readers know it.
    pub(super) stored: bool,
    pub(super) published: bool,
    pub(super) listed: Listed,
}

impl Resource {
    pub(crate) fn new(row: Arc<Row>, kind: KindId, name: NameId, life: Life) -> Self {
        Self {
            row,
            kind,
            name,
            life,
            links: Box::default(),
            claims: Box::default(),
            lifecycle: Lifecycle::default(),
            op: Op::None,
            requested: false,
            hold: Revision(0),
            cycle: None,
            unsettled_parents: 0,
            busy_children: 0,
            running: 0,
            summing: false,
            duration_ms: 0,
            path_ms: 0,
            disturbed: Mono(0),
            extra: None,
            no_op: None,
            gates: false,
            stored: false,
            published: false,
            listed: Listed::default(),
        }
    }

    pub(super) fn extra(&self) -> &Extra {
        self.extra.as_deref().unwrap_or(&NOTHING_EXTRA)
    }

    pub(super) fn extra_mut(&mut self) -> &mut Extra {
        self.extra.get_or_insert_default()
    }

    pub(crate) fn unreadable(&self) -> Option<&Arc<Error>> {
        self.extra().unreadable.as_ref()
    }

    /// Takes what its next invocation starts with: the reason, its own request and the names of now.
    pub(crate) fn begin(
        &mut self,
        (invocation, phase): (InvocationId, Phase),
        now: Now,
        (seen, busy): (Option<ObservedInputs>, bool),
    ) -> Running {
        let (reason, waited_since) = match self.pending() {
            Some(pending) => (pending.reason.clone(), pending.since),
            None => (Arc::new(Reason::bare(Trigger::Recovered)), now.mono),
        };
        Running {
            invocation,
            phase,
            reason,
            started_at: now.wall,
            begun: now.mono,
            waited_since,
            cancelled: Cancelled::No,
            rerun: None,
            // A rename during the run changes the names of the resource, and not those that its reconciler writes under
            // (C1).
            under: Under {
                name: self.name,
                claims: self.claims.clone(),
            },
            seen,
            answers: phase == Phase::Reconcile && std::mem::take(&mut self.requested),
            busy,
            progress: None,
        }
    }

    pub(crate) fn is_live(&self) -> bool {
        self.life == Life::Live
    }

    pub(crate) fn is_unsettled(&self) -> bool {
        self.lifecycle.is_unsettled()
    }

    /// Returns the reason why it is settled, if it is.
    pub(crate) fn settled(&self) -> Option<&Settled> {
        self.lifecycle.settled()
    }

    pub(crate) fn pending(&self) -> Option<&Pending> {
        self.lifecycle.pending()
    }

    pub(crate) fn pending_mut(&mut self) -> Option<&mut Pending> {
        self.lifecycle.pending_mut()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.run().is_some()
    }

    pub(crate) fn run(&self) -> Option<&Running> {
        self.lifecycle.run()
    }

    pub(crate) fn run_mut(&mut self) -> Option<&mut Running> {
        self.lifecycle.run_mut()
    }

    /// An invocation that has not returned, abandoned or not.
    pub(crate) fn unreturned(&self) -> Option<&Running> {
        self.run().or_else(|| self.lifecycle.abandoned())
    }

    /// Returns true if to those below it is a failed parent.
    pub(crate) fn is_failed(&self) -> bool {
        // Settled as idle, paused or cancelled it is none: what it made last stands, and those below can use it.
        self.row.error.is_some()
            || self.unreadable().is_some()
            || matches!(
                self.settled(),
                Some(
                    Settled::WaitingForRef(_)
                        | Settled::Abandoned { .. }
                        | Settled::WaitingForName { .. }
                        | Settled::OnCycle
                        | Settled::Retrying
                )
            )
    }

    /// Returns true if a delete or rename is waited for by others (C6).
    pub(crate) fn op_counts(&self) -> bool {
        self.op == Op::Due { counts: true }
    }

    pub(crate) fn has_op(&self) -> bool {
        self.op != Op::None
    }

    /// Every name that it has or claims.
    pub(crate) fn names(&self) -> impl Iterator<Item = NameId> + '_ {
        std::iter::once(self.name).chain(self.claims.iter().copied())
    }

    pub(crate) fn has_name(&self, name: &Name) -> bool {
        self.row.name == *name
    }
}
