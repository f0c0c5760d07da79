//! Verdicts on items, the jobs that follow, and the tasks of a job.

use super::chain::Chain;
use crate::reason::Unmet;

/// Index of a node in the course.
pub(super) type Id = u32;

/// Verdict on an item: whether it should exist after the call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Not judged: the item is as it should be.
    #[default]
    Unseen,
    /// Left alone: the item is external, or on a cycle.
    Untouched,
    /// The item should exist.
    In,
    /// The item is intended but can't exist, for lack of these dependencies.
    Out(Vec<Unmet>),
    /// The item is not intended.
    Gone,
}

/// Treatment of an item in a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Job {
    /// Nothing to do.
    #[default]
    Rest,
    /// Nothing in this call: the item failed, and its retry is not due.
    Hold,
    /// Nothing until the operation of an earlier call has ended.
    Wait,
    /// Nothing until the obstacle to its recreation has ended: a background operation, or a retry.
    Defer,
    /// Remove the item without an operation, with its external target.
    Vanish,
    Create,
    Modify,
    /// Change only the dependencies, or the record of them.
    Relink,
    /// Delete, then create.
    Remake,
    /// Create under the alias, delete, adopt.
    Replace,
    /// Adopt the replacement, because the old item is gone.
    Adopt,
    Delete,
    /// Delete the remains of a replacement.
    DropAlias,
    /// Delete the item, and then its replacement.
    DeleteBoth,
}

impl Job {
    pub(super) fn has_down(self) -> bool {
        matches!(
            self,
            Self::Remake | Self::Replace | Self::Delete | Self::DeleteBoth
        )
    }

    pub(super) fn has_up(self) -> bool {
        matches!(
            self,
            Self::Create | Self::Modify | Self::Relink | Self::Remake | Self::Replace
        )
    }

    pub(super) fn has_finish(self) -> bool {
        matches!(
            self,
            Self::Replace | Self::Adopt | Self::DropAlias | Self::DeleteBoth
        )
    }

    pub(super) fn is_active(self) -> bool {
        !matches!(self, Self::Rest | Self::Hold | Self::Vanish)
    }

    /// Returns true if the item is deleted, for good or before it exists again.
    pub(super) fn is_interrupted(self) -> bool {
        matches!(
            self,
            Self::Remake | Self::Delete | Self::DeleteBoth | Self::Vanish
        )
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Part {
    Down,
    Up,
    Finish,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct TaskId {
    pub(super) node: Id,
    pub(super) part: Part,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// The job has no such task.
    #[default]
    None,
    Waiting,
    Running,
    Done,
    Failed,
    /// The task does not run in this call, because something that it needs did not come about.
    Stopped,
}

impl Stage {
    pub(super) fn is_over(self) -> bool {
        !matches!(self, Self::Waiting | Self::Running)
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Task {
    pub(super) stage: Stage,
    /// Number of tasks that this one still waits for.
    pub(super) waits: u32,
    /// Tasks that wait for this one, as a list in [`Course::next`].
    pub(super) next: Chain,
}
