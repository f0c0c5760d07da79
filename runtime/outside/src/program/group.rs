//! The process group of a program.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

use super::marked;

/// The process group of a program and its marked descendants. Dropping the value kills them unless released.
#[derive(Debug)]
pub(super) struct Group {
    leader: Option<Pid>,
    mark: String,
    is_released: bool,
}

impl Group {
    pub(super) fn of(child: &Child, mark: &str) -> Self {
        let pid = child.id().and_then(|id| i32::try_from(id).ok());
        Self {
            leader: pid.and_then(Pid::from_raw),
            mark: mark.to_owned(),
            is_released: false,
        }
    }

    /// Sends `TERM` to the group and to all marked processes.
    pub(super) fn ask(&self) {
        self.signal(Signal::TERM);
    }

    /// Lets the processes go on after this value is dropped.
    pub(super) fn release(&mut self) {
        self.is_released = true;
    }

    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.leader {
            // All of it may have ended by itself.
            let _ = kill_process_group(leader, signal);
        }
        marked::signal(&self.mark, signal);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.is_released {
            self.signal(Signal::KILL);
        }
    }
}
