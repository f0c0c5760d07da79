//! The standing of resources in the terms of readers.

use super::Graph;
use super::lifecycle::At;
use super::resource::Cancelled;
use crate::types::index::Slot;
use crate::{Settled, Standing, Status};

impl Graph {
    /// Returns the status of a resource: its standing, the reason, and the last progress of its invocation.
    pub(crate) fn status(&self, slot: Slot) -> Status {
        match self.slots[slot].lifecycle.at() {
            At::Settled(why) => Status {
                standing: Standing::Settled(Settled::clone(why)),
                reason: None,
                progress: None,
            },
            At::Pending(pending) => Status {
                standing: Standing::Pending,
                reason: Some(pending.reason.clone()),
                progress: None,
            },
            // Never seen between two inputs.
            At::Concluding => Status {
                standing: Standing::Pending,
                reason: None,
                progress: None,
            },
            At::Running(run) => Status {
                standing: Standing::Running {
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
