//! Verdicts on items, the jobs that follow from them, and the tasks of a job.

use super::chain::Chain;
use crate::reason::Unmet;

/// A node of the course.
pub(super) type Id = u32;

/// The verdict on an item: should it be there once everything is done?
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Not looked at: it is as it should be.
    #[default]
    Unseen,
    /// Not ours to judge, or on a cycle: it is left alone.
    Untouched,
    /// It should be there.
    In,
    /// It is intended but cannot be.
    Out(Vec<Unmet>),
    /// It is not intended.
    Gone,
}

/// The treatment of an item in a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Job {
    /// Nothing.
    #[default]
    Rest,
    /// Nothing in this call: it failed, and its time has not come.
    Hold,
    /// Nothing before the operation of an earlier call has ended.
    Wait,
    /// Nothing before something has ended that holds its recreation up: an operation in the background, or a retry.
    Defer,
    /// It leaves without an operation, with its external target.
    Vanish,
    Create,
    Modify,
    /// Only its dependencies or what is recorded about them change.
    Relink,
    /// Delete, then create.
    Remake,
    /// Create under the alias, delete, adopt.
    Replace,
    /// The replacement exists and the old one is gone: adopt.
    Adopt,
    Delete,
    /// Remove what is left of a replacement.
    DropAlias,
    /// Remove the replacement after the item itself.
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

    /// Returns true if the item is deleted before it is there again, or for good.
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
    /// There is no such task.
    #[default]
    None,
    Waiting,
    Running,
    Done,
    Failed,
    /// Something that it needs did not come about, so that it does not run in this call.
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
    /// The number of tasks that it still waits for.
    pub(super) waits: u32,
    /// The tasks that wait for it, in [`Course::next`].
    pub(super) next: Chain,
}
