//! Data of the stages: pending resources and running invocations.

use std::sync::Arc;

use crate::types::index::NameId;
use crate::types::reason::Cancels;
use crate::{InvocationId, Mono, ObservedInputs, Phase, Priority, Reason, Timestamp, Trigger};

/// A resource that is requested and not started.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Pending {
    pub(super) reason: Arc<Reason>,
    /// True if a caller cancelled the pending requests; the resource is then released without an invocation.
    pub(super) cancelled: bool,
    /// Highest priority of the resource's requests and of requests inherited from resources below.
    pub(super) priority: Priority,
    /// Priority that its parents inherit: without the share that comes from its parents alone.
    pub(super) inheritable: Priority,
    /// Number of promotions for the time spent waiting for a place.
    pub(super) promoted: u32,
    /// Time since which the resource has waited for a place; none before that.
    pub(super) ready_since: Option<Mono>,
    /// Time since which the resource has waited for a completed run.
    pub(super) since: Mono,
    /// Cancels already carried out below the resource. Nothing starts there while it is pending.
    pub(super) swept: Cancels,
}

impl Pending {
    pub(crate) fn new(reason: Arc<Reason>, since: Mono) -> Self {
        let priority = reason.priority();
        Self {
            inheritable: match reason.trigger {
                Trigger::Parent => Priority::Background,
                _ => priority,
            },
            priority,
            reason,
            cancelled: false,
            promoted: 0,
            ready_since: None,
            since,
            swept: Cancels::None,
        }
    }

    /// Takes over a priority if it is higher; returns whether it was.
    pub(crate) fn inherit(&mut self, priority: Priority) -> bool {
        let higher = priority < self.inheritable;
        self.inheritable = self.inheritable.min(priority);
        self.priority = self.priority.min(priority);
        higher
    }
}

/// Origin of a cancel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cancelled {
    No,
    /// Cancelled by a request or an edit: the resource runs again.
    ToRunAgain,
    /// Cancelled by `cancel(name)`: the resource runs again only after another request.
    ByCaller,
    /// Cancelled at its deadline: the run counts as failed once it returns.
    ByDeadline,
    /// Cancelled because the controller is shutting down.
    ByShutdown,
}

/// Names of a resource when its invocation started.
#[derive(Clone, Debug)]
pub(crate) struct Under {
    pub(super) name: NameId,
    /// Former names that the resource claimed at that time.
    pub(super) claims: Box<[NameId]>,
}

impl Under {
    pub(crate) fn iter(&self) -> impl Iterator<Item = NameId> + '_ {
        std::iter::once(self.name).chain(self.claims.iter().copied())
    }

    pub(crate) fn contains(&self, name: NameId) -> bool {
        self.iter().any(|one| one == name)
    }
}

/// An invocation that has started and not returned.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Running {
    pub(super) invocation: InvocationId,
    pub(super) phase: Phase,
    pub(super) reason: Arc<Reason>,
    pub(super) started_at: Timestamp,
    /// Monotonic time at which the invocation started.
    pub(super) begun: Mono,
    /// Time since which the resource had waited for this run.
    pub(super) waited_since: Mono,
    pub(super) cancelled: Cancelled,
    /// Reason to run again; none unless the resource was requested during the run.
    pub(super) rerun: Option<Arc<Reason>>,
    /// Names that the resource had or claimed at the start.
    pub(super) under: Under,
    /// Inputs that the run sees; none for deletes and renames.
    pub(super) seen: Option<ObservedInputs>,
    /// True if the run answers a direct request for its resource.
    pub(super) answers: bool,
    /// True if the invocation holds ancestors back (C3). Renames that count in the barrier (C6) don't.
    pub(super) busy: bool,
    pub(super) progress: Option<Arc<str>>,
}
