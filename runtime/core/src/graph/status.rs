//! Stages of resources as readers see them.

use super::Graph;
use super::lifecycle::At;
use super::resource::Cancelled;
use crate::types::index::Slot;
use crate::{Settled, Stage, Status};

impl Graph {
    /// Returns the status of a resource: its stage, the reason, and the last progress of its invocation.
    pub(crate) fn status(&self, slot: Slot) -> Status {
        match self.slots[slot].lifecycle.at() {
            At::Settled(why) => Status {
                stage: Stage::Settled(Settled::clone(why)),
                reason: None,
                progress: None,
            },
            At::Pending(pending) => Status {
                stage: Stage::Pending,
                reason: Some(pending.reason.clone()),
                progress: None,
            },
            // Never seen between two inputs.
            At::Concluding => Status {
                stage: Stage::Pending,
                reason: None,
                progress: None,
            },
            At::Running(run) => Status {
                stage: Stage::Running {
                    invocation: run.invocation,
                    phase: run.phase,
                    since: run.started_at,
                    cancelled: run.cancelled != Cancelled::No,
                },
                reason: Some(run.reason.clone()),
                progress: run.progress.clone(),
            },
        }
    }
}
