//! The core's record of a resource: row, stage, links and counts.

use std::sync::Arc;
use std::time::Duration;

use super::lifecycle::Lifecycle;
pub(crate) use super::stages::{Cancelled, Pending, Running, Under};
use crate::types::index::{CycleId, KindId, NameId};
use crate::{
    Error, InvocationId, Mono, Name, NoOpRun, Now, ObservedInputs, Phase, Reason, Required, Revision, Row,
    Settled, Trigger,
};

/// A ref bound to its name. Links are in the order of `row.refs`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoundRef {
    pub(super) name: NameId,
    /// Index of this link among the name's referrers.
    pub(super) position: u32,
    pub(super) required: Required,
    /// True if the ref makes an edge while its name has a live resource: it is not `exists`, and the first such ref to
    /// that name.
    pub(super) edge: bool,
    /// True if the edge is included in the counts of its two ends.
    pub(super) counted: bool,
}

/// Tells whether a resource is live, being deleted, or gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Life {
    /// The resource has its name and is part of the graph.
    Live,
    /// The resource is marked for deletion: still stored, but no longer part of the graph.
    Deleted,
    /// The resource is no longer stored, but its last invocation has yet to return.
    Gone,
}

/// The unfinished delete or rename of a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    None,
    /// The operation waits or runs. While it counts, others wait for it (C6).
    Due {
        counts: bool,
    },
    /// The operation failed, and a timer will retry it.
    Failed,
}

/// Flags and marks that say which lists a resource is in.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Listed {
    pub(super) queued: bool,
    /// Phase whose ready queue holds the resource; entries in other queues are stale.
    pub(super) ready: Option<Phase>,
    pub(super) row_dirty: bool,
    pub(super) status_dirty: bool,
}

/// A transient failure, with all that its retry depends on: the policy may still change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure {
    pub(super) at: Mono,
    pub(super) retry_after: Option<Duration>,
}

/// Rarely used fields of a resource, allocated on demand.
#[derive(Default, Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Extra {
    /// The present transient failure; none once its retry has begun.
    pub(super) failure: Option<Failure>,
    /// Number of failures that determines the next backoff, including failures before a recent success. If the failures
    /// in a row are more, that number counts instead.
    pub(super) backed_off: u32,
    /// The reason of the latest edit while the resource was paused, or else of the first request; none if there was none.
    pub(super) missed: Option<Arc<Reason>>,
    /// True if the resource is to run once although it is paused.
    pub(super) forced: bool,
    /// Number of deletes that this resource's delete waits for.
    pub(super) delete_waits: u32,
    /// Reason why the stored bytes can't be read and are left untouched; none if they can be read.
    pub(super) unreadable: Option<Arc<Error>>,
}

static NOTHING_EXTRA: Extra = Extra {
    failure: None,
    backed_off: 0,
    missed: None,
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
    /// Former names that the resource still claims, from its rename intent. Sorted, without the present name.
    pub(super) claims: Box<[NameId]>,
    pub(super) lifecycle: Lifecycle,
    pub(super) op: Op,
    /// True if the resource was requested directly and no completed invocation has answered that.
    pub(super) requested: bool,
    /// Revision that must be committed before the resource is evaluated.
    pub(super) hold: Revision,
    pub(super) cycle: Option<CycleId>,
    /// Number of counted edges from unsettled parents; on a cycle, kept by the first member for all.
    pub(super) unsettled_parents: u32,
    /// Number of counted edges to children with a running descendant or invocation; on a cycle, kept by the first member.
    pub(super) busy_children: u32,
    /// Number of running invocations that hold ancestors back; on a cycle, kept by the first member.
    pub(super) running: u32,
    /// True while the resource is newly unsettled and `busy_children` is not counted yet.
    pub(super) summing: bool,
    /// Duration of the last completed reconcile, in ms.
    pub(super) duration_ms: u32,
    /// Duration of the longest path from here to a leaf, in ms (C12).
    pub(super) path_ms: u32,
    /// Time of the last request that was not timed.
    pub(super) disturbed: Mono,
    pub(super) extra: Option<Box<Extra>>,
    /// The last run if it was a no-op; written to the row with the next change.
    pub(super) no_op: Option<Arc<NoOpRun>>,
    /// True for a resource of a `first` kind that has not settled yet.
    pub(super) gates: bool,
    /// True once a commit with the resource was handed to the store.
    pub(super) stored: bool,
    /// True once readers were shown the resource.
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

    /// Creates the invocation that starts now, with the pending reason, the direct request and the present names.
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

    /// Returns the reason why the resource is settled; none if it isn't.
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

    /// Returns the unreturned invocation, abandoned or not.
    pub(crate) fn unreturned(&self) -> Option<&Running> {
        self.run().or_else(|| self.lifecycle.abandoned())
    }

    /// Returns true if children see the resource as a failed parent.
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

    /// Returns true if others wait for this resource's delete or rename (C6).
    pub(crate) fn op_counts(&self) -> bool {
        self.op == Op::Due { counts: true }
    }

    pub(crate) fn has_op(&self) -> bool {
        self.op != Op::None
    }

    /// Lists every name that the resource has or claims.
    pub(crate) fn names(&self) -> impl Iterator<Item = NameId> + '_ {
        std::iter::once(self.name).chain(self.claims.iter().copied())
    }

    pub(crate) fn has_name(&self, name: &Name) -> bool {
        self.row.name == *name
    }
}
