//! The data of the stages: pending resources and running invocations.

use std::sync::Arc;

use crate::types::index::NameId;
use crate::types::reason::Cancels;
use crate::{InvocationId, Mono, ObservedInputs, Phase, Priority, Reason, Timestamp, Trigger};

/// Asked for.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Pending {
    pub(super) reason: Arc<Reason>,
    /// A caller cancelled what was pending; it is released without an invocation.
    pub(super) cancelled: bool,
    /// The highest of its requests, or inherited from a request for a resource below.
    pub(super) priority: Priority,
    /// The same without what it owes to its parents alone: those don't inherit it back.
    pub(super) inheritable: Priority,
    /// The number of times that it was promoted for having waited for a place, and since when it has.
    pub(super) promoted: u32,
    pub(super) ready_since: Option<Mono>,
    /// Since when it has waited for a run that completes.
    pub(super) since: Mono,
    /// The cancels that have been made below it for such a request. Nothing more starts there.
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

    /// Takes over a priority, if it is higher; returns whether it was.
    pub(crate) fn inherit(&mut self, priority: Priority) -> bool {
        let higher = priority < self.inheritable;
        self.inheritable = self.inheritable.min(priority);
        self.priority = self.priority.min(priority);
        higher
    }
}

/// The origin of a cancel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cancelled {
    No,
    /// By a request or an edit: it runs again.
    ToRunAgain,
    /// `cancel(name)`: it does not, unless another request comes.
    ByCaller,
    /// It took too long: it has failed once it returns.
    ByDeadline,
    /// The controller is shutting down.
    ByShutdown,
}

/// The names that a resource had when its invocation started.
#[derive(Clone, Debug)]
pub(crate) struct Under {
    pub(super) name: NameId,
    /// Those that it claimed beside its own.
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

/// An invocation that has not returned.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Running {
    pub(super) invocation: InvocationId,
    pub(super) phase: Phase,
    pub(super) reason: Arc<Reason>,
    pub(super) started_at: Timestamp,
    /// The same on the other clock, and since when its resource had waited for it.
    pub(super) begun: Mono,
    pub(super) waited_since: Mono,
    pub(super) cancelled: Cancelled,
    /// Set when something requested the resource meanwhile.
    pub(super) rerun: Option<Arc<Reason>>,
    /// Every name that the resource had at the start.
    pub(super) under: Under,
    /// The inputs that it sees; none for deletes and renames.
    pub(super) seen: Option<ObservedInputs>,
    /// True if it answers a request of the resource's own.
    pub(super) answers: bool,
    /// True if it holds ancestors back (C3). Renames that others wait for anyway (C6) need not.
    pub(super) busy: bool,
    pub(super) progress: Option<Arc<str>>,
}
