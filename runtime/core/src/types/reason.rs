//! Reasons of invocations: recorded and shown to people, hidden from reconcilers.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{CallId, Key, Uid};

/// The priority of a request when limits are reached: the least starts first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// A caller requested it, or it or what it refers to was edited.
    Requested,
    /// A requeue or a nudge, its parents have finished, or what kept it from running is gone.
    Normal,
    /// The controller started, the resync interval passed, or a failed run is tried again.
    Background,
}

impl Priority {
    /// The word used in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Priority::Requested => "requested",
            Priority::Normal => "normal",
            Priority::Background => "background",
        }
    }

    /// The place in the order of starts of what has not waited yet; waiting lowers it, also below 0.
    pub(crate) fn level(self) -> i64 {
        match self {
            Priority::Requested => 0,
            Priority::Normal => 1,
            Priority::Background => 2,
        }
    }
}

/// The running invocations below its resource that a request cancels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Cancels {
    None,
    /// Those of kinds that say `on_timed_ancestor: cancel`.
    Consenting,
    All,
}

/// One of the ways in which a reconcile is requested.
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
    /// It was created (2).
    Created,
    /// Its spec or refs changed (2).
    Edited,
    /// It was renamed (2).
    Renamed,
    /// It was deleted (2).
    Deleted,
    /// A resource that one of its refs names appeared or went (2).
    RefChanged,
    /// Its parents have finished (3).
    Parent,
    /// A caller requested it (4).
    Requested,
    /// A caller requested its work to be done again (4).
    Refresh,
    /// Its requeue time fell due (5).
    Retrigger,
    /// The resync interval of its kind passed (6).
    Resync,
    /// A failed run is tried again (7).
    Retry,
    /// Something outside moved (8).
    Nudge,
    /// The obstacle to its run is gone (9).
    Recovered,
}

impl Trigger {
    /// All of them.
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

    /// The word used in documents.
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

    /// Returns the priority when limits are reached.
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

    /// Edits and requests of callers: they cancel what runs.
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

    /// Edits and refreshes: what failed was something else. A request to look again asks for the same.
    pub fn forgets_failures(self) -> bool {
        self.cancels() && self != Trigger::Requested
    }

    /// Requests that come by the clock, or because something outside moved.
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
    /// Another resource: the parent, the ref that changed, what held the name.
    Resource {
        /// Its uid.
        uid: Uid,
        /// The name that it had then.
        key: Key,
    },
    /// A caller's request or edit.
    Call(CallId),
    /// An edit made by another resource's invocation.
    Invocation {
        /// The resource that it ran for.
        uid: Uid,
        /// The name that it had then.
        key: Key,
    },
}

impl Cause {
    /// The resource that is meant, if one is.
    pub fn key(&self) -> Option<&Key> {
        match self {
            Cause::Resource { key, .. } | Cause::Invocation { key, .. } => Some(key),
            Cause::Call(_) => None,
        }
    }
}

/// The most links of a chain that are kept.
pub const CHAIN_MAX: usize = 8;

/// Of a chain that gets too long, so many of the latest links stay, and so many of the first ones.
const LATEST_KEPT: usize = 2;
const FIRST_KEPT: usize = 2;

/// Links of a chain that were left out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OmittedLinks {
    /// The number of links.
    pub links: u32,
    /// The resource that the link before them speaks of.
    pub key: Option<Key>,
}

/// The reason of an invocation with its cause, and the reason before: the latest link of a causal chain.
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
    /// The request.
    #[serde(rename = "why")]
    pub trigger: Trigger,
    /// The cause, if there is one.
    pub cause: Option<Cause>,
    /// The origin of the edit behind it, as its author gave it: the path of a file, for instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Arc<str>>,
    /// The reason why its cause ran, or was to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Arc<Reason>>,
    /// The links that were left out between the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Box<OmittedLinks>>,
}

/// One link of a chain, as people read it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link<'a> {
    /// The resource that was requested.
    pub key: &'a Key,
    /// The reason. Its cause is the link before.
    pub reason: &'a Reason,
    /// The number of links that were left out right before this one.
    pub omitted: u32,
}

impl Reason {
    /// A reason without a cause.
    pub fn bare(trigger: Trigger) -> Self {
        Self {
            trigger,
            cause: None,
            origin: None,
            before: None,
            cut: None,
        }
    }

    /// A reason with its cause.
    pub fn because(trigger: Trigger, cause: Cause) -> Self {
        Self {
            cause: Some(cause),
            ..Self::bare(trigger)
        }
    }

    /// Returns the priority when limits are reached. A retry by hand is a request.
    pub fn priority(&self) -> Priority {
        match (self.trigger, &self.cause) {
            // Somebody asked for this attempt, and not a timer.
            (Trigger::Retry, Some(Cause::Call(_))) => Priority::Requested,
            _ => self.trigger.priority(),
        }
    }

    /// The same, with what led to its cause.
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

    /// A further attempt at what was requested by this reason.
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

    /// The whole chain that ends in this reason for `key`, the first link first.
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

    /// Returns true if the whole chain says no more than that the controller started.
    pub(crate) fn is_only_the_start(&self) -> bool {
        let says_no_more =
            |link: &Reason| matches!(link.trigger, Trigger::Start | Trigger::Parent) && link.cut.is_none();
        self.links().all(says_no_more)
    }

    /// This reason and what led to it, the latest first.
    fn links(&self) -> impl Iterator<Item = &Reason> {
        std::iter::successors(Some(self), |reason| reason.before.as_deref())
    }

    /// The resource that the link before this one speaks of, unless it is the same.
    fn next_key(&self) -> Option<&Key> {
        match &self.cut {
            Some(cut) => cut.key.as_ref(),
            None => self.cause.as_ref().and_then(Cause::key),
        }
    }

    /// The same chain with so many of its latest links and the first ones; it speaks of `key`.
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
