//! Reasons of invocations: recorded and shown to people, hidden from reconcilers.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{CallId, Key, Uid};

/// The priority of a request when limits are reached: the least starts first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// For requests of callers, and for edits of the resource or of its refs.
    Requested,
    /// For requeues, nudges, finished parents, and obstacles that are gone.
    Normal,
    /// For starts of the controller, resyncs and retries.
    Background,
}

impl Priority {
    /// Returns the priority's name in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Priority::Requested => "requested",
            Priority::Normal => "normal",
            Priority::Background => "background",
        }
    }

    /// Returns the place in the order of starts before any wait; waiting lowers it, also below 0.
    pub(crate) fn level(self) -> i64 {
        match self {
            Priority::Requested => 0,
            Priority::Normal => 1,
            Priority::Background => 2,
        }
    }
}

/// Running invocations below a requested resource that the request cancels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Cancels {
    None,
    /// Invocations of kinds with `on_timed_ancestor: cancel`.
    Consenting,
    All,
}

/// The sort of a reason: one of the ways in which a reconcile is requested.
///
/// ```
/// use watershed_core::Trigger;
///
/// assert_eq!(Trigger::RefChanged.to_string(), "ref_changed");
/// assert!(Trigger::Edited.cancels() && !Trigger::Nudge.cancels());
/// assert!(Trigger::Nudge.is_timed());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// The controller started (request 1).
    Start,
    /// The resource was created by an edit (request 2).
    Created,
    /// The spec or refs changed (request 2).
    Edited,
    /// An edit gave the resource another name (request 2).
    Renamed,
    /// An edit marked the resource for deletion (request 2).
    Deleted,
    /// The target of a ref appeared or disappeared (request 2).
    RefChanged,
    /// A parent has finished a run (request 3).
    Parent,
    /// A caller requested a reconcile (request 4).
    Requested,
    /// A caller requested that the work be done again (request 4).
    Refresh,
    /// The requeue time was due (request 5).
    Retrigger,
    /// The resync interval passed (request 6).
    Resync,
    /// A failed run is retried (request 7).
    Retry,
    /// Something outside changed (request 8).
    Nudge,
    /// The obstacle to a run is gone (request 9).
    Recovered,
}

impl Trigger {
    /// All triggers, in order of declaration.
    pub const ALL: [Self; 14] = [
        Trigger::Start,
        Trigger::Created,
        Trigger::Edited,
        Trigger::Renamed,
        Trigger::Deleted,
        Trigger::RefChanged,
        Trigger::Parent,
        Trigger::Requested,
        Trigger::Refresh,
        Trigger::Retrigger,
        Trigger::Resync,
        Trigger::Retry,
        Trigger::Nudge,
        Trigger::Recovered,
    ];

    /// Returns the trigger's name in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Trigger::Start => "start",
            Trigger::Created => "created",
            Trigger::Edited => "edited",
            Trigger::Renamed => "renamed",
            Trigger::Deleted => "deleted",
            Trigger::RefChanged => "ref_changed",
            Trigger::Parent => "parent",
            Trigger::Requested => "requested",
            Trigger::Refresh => "refresh",
            Trigger::Retrigger => "retrigger",
            Trigger::Resync => "resync",
            Trigger::Retry => "retry",
            Trigger::Nudge => "nudge",
            Trigger::Recovered => "recovered",
        }
    }

    /// Returns the priority of requests with this trigger.
    pub fn priority(self) -> Priority {
        match self {
            Trigger::Requested
            | Trigger::Refresh
            | Trigger::Created
            | Trigger::Edited
            | Trigger::Renamed
            | Trigger::Deleted
            | Trigger::RefChanged => Priority::Requested,
            Trigger::Retrigger | Trigger::Nudge | Trigger::Parent | Trigger::Recovered => Priority::Normal,
            // Nobody waits for these at present, and there may be as many of them as resources.
            Trigger::Start | Trigger::Retry | Trigger::Resync => Priority::Background,
        }
    }

    pub(crate) fn cancels_below(self) -> Cancels {
        match self {
            _ if self.cancels() => Cancels::All,
            _ if self.is_timed() => Cancels::Consenting,
            _ => Cancels::None,
        }
    }

    /// Returns true for edits and requests of callers, which cancel running invocations.
    pub fn cancels(self) -> bool {
        matches!(
            self,
            Trigger::Created
                | Trigger::Edited
                | Trigger::Renamed
                | Trigger::Deleted
                | Trigger::RefChanged
                | Trigger::Requested
                | Trigger::Refresh
        )
    }

    /// Returns true for edits and refreshes, which reset the count of failures. A plain request asks for the same work
    /// again.
    pub fn forgets_failures(self) -> bool {
        self.cancels() && self != Trigger::Requested
    }

    /// Returns true for timed requests: by the clock, or after a change outside.
    pub fn is_timed(self) -> bool {
        matches!(
            self,
            Trigger::Retrigger | Trigger::Resync | Trigger::Retry | Trigger::Nudge
        )
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The cause of a reason: a parent, an edit, or a caller.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Another resource: the parent, the ref that changed, or the former holder of the name.
    Resource {
        /// Uid of the causing resource.
        uid: Uid,
        /// Kind and name of the causing resource at the time.
        key: Key,
    },
    /// A request or edit by a caller.
    Call(CallId),
    /// An edit by another resource's invocation.
    Invocation {
        /// Uid of the resource that ran.
        uid: Uid,
        /// Kind and name of that resource at the time.
        key: Key,
    },
}

impl Cause {
    /// Returns the resource behind the cause; none for a caller.
    pub fn key(&self) -> Option<&Key> {
        match self {
            Cause::Resource { key, .. } | Cause::Invocation { key, .. } => Some(key),
            Cause::Call(_) => None,
        }
    }
}

/// Maximum number of links kept in a causal chain.
pub const CHAIN_MAX: usize = 8;

/// Number of latest and of first links that remain of a chain that is too long.
const LATEST_KEPT: usize = 2;
const FIRST_KEPT: usize = 2;

/// A gap in a causal chain that was shortened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OmittedLinks {
    /// Number of links that are missing here.
    pub links: u32,
    /// Resource of the link before the omitted ones; none if it is the same.
    pub key: Option<Key>,
}

/// The reason of an invocation with its cause and the reason before: the latest link of a causal chain.
///
/// Links are shared: all children of a resource have one reason, and that has the one of their parent behind it. A
/// chain keeps its latest and its first links; of those between it is told how many there were. A link is always
/// older than the one that it led to, so there are no circles.
///
/// ```
/// use std::sync::Arc;
/// use watershed_core::{Cause, Key, Reason, Uid, Trigger};
///
/// let edited = Arc::new(Reason::bare(Trigger::Edited));
/// let parent = Cause::Resource { uid: Uid(uuid::Uuid::from_u128(1)), key: Key::new("page", "home") };
/// let below = Reason::because(Trigger::Parent, parent).after(Some(edited));
///
/// let index = Key::new("page", "index");
/// let whys: Vec<Trigger> = below.chain(&index).iter().map(|link| link.reason.trigger).collect();
/// assert_eq!(whys, [Trigger::Edited, Trigger::Parent]);
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reason {
    /// Trigger, such as an edit or a timer.
    #[serde(rename = "why")]
    pub trigger: Trigger,
    /// Cause of the reason; none if there is no other than the trigger.
    pub cause: Option<Cause>,
    /// Origin of the edit behind the reason, as its author named it: the path of a file, for instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Arc<str>>,
    /// Reason why the cause ran, or was about to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Arc<Reason>>,
    /// Links omitted between this reason and the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Box<OmittedLinks>>,
}

/// One link of a causal chain, as people read it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link<'a> {
    /// Resource that was requested.
    pub key: &'a Key,
    /// Reason of this link; its cause is the link before.
    pub reason: &'a Reason,
    /// Number of links omitted right before this one.
    pub omitted: u32,
}

impl Reason {
    /// Creates a reason without a cause.
    pub fn bare(trigger: Trigger) -> Self {
        Self {
            trigger,
            cause: None,
            origin: None,
            before: None,
            cut: None,
        }
    }

    /// Creates a reason with a trigger and the cause behind it.
    pub fn because(trigger: Trigger, cause: Cause) -> Self {
        Self {
            cause: Some(cause),
            ..Self::bare(trigger)
        }
    }

    /// Returns the priority of the request. A retry by a caller counts as requested.
    pub fn priority(&self) -> Priority {
        match (self.trigger, &self.cause) {
            // Somebody asked for this attempt, and not a timer.
            (Trigger::Retry, Some(Cause::Call(_))) => Priority::Requested,
            _ => self.trigger.priority(),
        }
    }

    /// Appends this reason to the chain that led to its cause.
    #[must_use]
    pub fn after(mut self, before: Option<Arc<Reason>>) -> Self {
        self.before = before.map(|before| {
            // Two resources that request each other would otherwise make a chain, and rows, without end.
            if before.links().nth(CHAIN_MAX - 2).is_none() {
                return before;
            }
            let key = self.cause.as_ref().and_then(Cause::key).cloned();
            before.shortened(LATEST_KEPT, key)
        });
        self
    }

    /// Creates the reason of a retry of what this reason requested.
    pub(crate) fn retried(failed: &Arc<Reason>) -> Self {
        match failed.trigger {
            // A retry of a retry has the reason of the first failure behind it, and not a link for each attempt.
            Trigger::Retry => Self {
                before: failed.before.clone(),
                ..Self::bare(Trigger::Retry)
            },
            _ => Self::bare(Trigger::Retry).after(Some(failed.clone())),
        }
    }

    /// Puts what the failed run was for behind this reason of a retry by a caller.
    pub(crate) fn retrying(self, failed: Option<&Arc<Reason>>) -> Self {
        let Self { cause, origin, .. } = self;
        let again = failed.map_or(Self::bare(Trigger::Retry), Self::retried);
        Self {
            cause,
            origin,
            ..again
        }
    }

    /// Returns the whole causal chain that ends in this reason for `key`, first link first.
    pub fn chain<'a>(&'a self, key: &'a Key) -> Vec<Link<'a>> {
        let mut key = key;
        let mut chain: Vec<Link<'a>> = Vec::new();
        for reason in self.links() {
            let omitted = reason.cut.as_ref().map_or(0, |cut| cut.links);
            chain.push(Link { key, reason, omitted });
            key = reason.next_key().unwrap_or(key);
        }
        chain.reverse();
        chain
    }

    /// Returns true if the chain says only that the controller started.
    pub(crate) fn is_only_the_start(&self) -> bool {
        let says_no_more =
            |link: &Reason| matches!(link.trigger, Trigger::Start | Trigger::Parent) && link.cut.is_none();
        self.links().all(says_no_more)
    }

    /// Lists this reason and its earlier causes, latest first.
    fn links(&self) -> impl Iterator<Item = &Reason> {
        std::iter::successors(Some(self), |reason| reason.before.as_deref())
    }

    /// Returns the resource of the link before this one; none if it is the same.
    fn next_key(&self) -> Option<&Key> {
        match &self.cut {
            Some(cut) => cut.key.as_ref(),
            None => self.cause.as_ref().and_then(Cause::key),
        }
    }

    /// Shortens the chain to some latest and first links; it then speaks of `key`.
    fn shortened(&self, latest: usize, key: Option<Key>) -> Arc<Self> {
        let next = self.next_key().cloned().or(key);
        let mut link = self.clone();
        if latest > 1 {
            link.before = link.before.map(|before| before.shortened(latest - 1, next));
            return Arc::new(link);
        }
        let left_out = self.links().count().saturating_sub(1 + FIRST_KEPT);
        let (mut at, mut next, mut links) = (self, next, self.cut.as_ref().map_or(0, |cut| cut.links));
        for _ in 0..left_out {
            let Some(before) = at.before.as_deref() else { break };
            at = before;
            next = at.next_key().cloned().or(next);
            links += 1 + at.cut.as_ref().map_or(0, |cut| cut.links);
        }
        link.before = at.before.clone();
        link.cut = Some(Box::new(OmittedLinks { links, key: next }));
        Arc::new(link)
    }
}
